//! Runs the event queue alone on a bad pattern of times, and prints the operations as a line of JSON: `queue_cost PATTERN EVENTS`.
//!
//! It is made for callgrind, as `engine_cost`.

use std::error::Error;

use explicate_sim::adversaries::{ADVERSARIES, Alone, Pattern};

/// What is counted, under a name that callgrind finds.
#[inline(never)]
fn counted_span(queue: &mut Alone, pattern: Pattern, events: u64) {
    pattern(queue, events);
    queue.drain();
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let usage = "queue_cost PATTERN EVENTS";
    let (name, events) = args.next().zip(args.next()).ok_or(usage)?;
    let (_, pattern) = ADVERSARIES.into_iter().find(|(known, _)| *known == name).ok_or("no such pattern")?;
    let mut queue = Alone::new(1);
    counted_span(&mut queue, pattern, events.parse()?);
    #[expect(clippy::print_stdout, reason = "a program that prints figures")]
    {
        println!(r#"{{"operations": {}}}"#, queue.operations);
    }
    Ok(())
}

//! Hands on all frames between two interfaces and reads none of them: the least that forwarding by packet sockets costs, beside
//! which `bench/router_cost.py` puts the router.
//!
//! `bare_forward LEFT RIGHT US` takes a turn every `US` microseconds, prints what it counted when a signal ends it.
#![expect(clippy::print_stdout, reason = "its result")]

use std::error::Error;

use explicate_net::sys::{self, BATCH, PacketSocket};

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().collect();
    let [_, left, right, apart] = words.as_slice() else { return Err("say: bare_forward LEFT RIGHT US".into()) };
    let open = |name: &String| PacketSocket::open(name, sys::interface_index(name)?, 16 << 20);
    let mut sockets = [open(left)?, open(right)?];
    let apart = 1000 * apart.parse::<u64>()?;
    sys::catch_signals();
    sys::sharpen_timers();
    sys::go_first()?;
    let mut frames = vec![Vec::new(); BATCH];
    let (mut sent, mut turns, mut next) = (0, 0u64, sys::monotonic());
    let mut began = sys::thread_cpu();
    while !sys::stopped() {
        if sent == 0 {
            (turns, began) = (0, sys::thread_cpu()); // nothing has come yet
        }
        turns += 1;
        for from in [0, 1] {
            loop {
                let receive = |frame: &mut Vec<u8>| sockets[from].has_frame() && sockets[from].receive(frame).is_some();
                let count = frames.iter_mut().map(receive).take_while(|received| *received).count();
                let mut rest = &frames[..count];
                while !rest.is_empty() {
                    let taken = sockets[1 - from].send(rest.iter().map(Vec::as_slice)).unwrap_or(1).max(1);
                    (sent, rest) = (sent + taken, &rest[taken..]);
                }
                if count < BATCH {
                    break;
                }
            }
        }
        next = sys::monotonic().max(next + apart);
        sys::sleep_until(next);
    }
    let cost = (sys::thread_cpu() - began) as f64 / 1e3 / sent.max(1) as f64;
    println!("{{\"sent\": {sent}, \"turns\": {turns}, \"cpu_us_per_frame\": {cost:.3}}}");
    Ok(())
}

//! Who notes when the machine stands still: a thread for each processor that does nothing but wake up every millisecond.
//!
//! A virtual machine whose host takes a processor away, or a kernel that is busy, stops everything on it for some milliseconds.
//! Whatever was due meanwhile leaves in one burst, which queues at the next link: no property of the scenario, and nothing
//! that the simulator knows. So the times when that happened stand among the samples, as the variable `late_ms` of the object
//! `machine`.

use explicate_core::units::Time;

use super::host::Sample;
use crate::clock::Clock;
use crate::error::{Context, Result};
use crate::sys;

/// Between two wake-ups, and what is noted of their lateness.
const EVERY: Time = Time::millis(1);

/// Name of the machine among the objects of samples.
pub const MACHINE: &str = "machine";

/// Watches a processor until `end`; a sample for each time that it stood still.
pub(super) fn watch(processor: usize, clock: Clock, end: Time, stop: &dyn Fn() -> bool) -> Result<Vec<Sample>> {
    sys::stay_on(processor).or_fail(|| format!("stay on processor {processor}"))?;
    sys::sharpen_timers();
    let mut samples = Vec::new();
    // Before the scenario begins its clock stands still.
    let mut due = EVERY;
    while due < end && !stop() {
        clock.sleep_until(due);
        let now = clock.now();
        let late = now.since(due);
        if late > EVERY {
            let value = late.as_millis_f64();
            samples.push(Sample { at: due, object: MACHINE.to_string(), variable: "late_ms", value });
        }
        if now >= due {
            due = now + EVERY;
        }
    }
    Ok(samples)
}

//! Detects stalls of the machine: a thread per processor that wakes up every millisecond.
//!
//! A virtual machine whose host withdraws a processor, or a busy kernel, stops everything on it for some
//! milliseconds. Packets that were due meanwhile leave in one burst, which queues at the next link: an artefact that
//! the simulator does not have. So stalls are recorded among the samples, as the variable `late_ms` of the object
//! `machine`.

use explicate_core::units::Time;

use super::host::Sample;
use crate::clock::{Clock, Stalls};
use crate::error::{Context, Error, Result};
use crate::sys;

/// Interval between two wake-ups, and minimum lateness that is recorded.
const EVERY: Time = Time::millis(1);

/// Name of the machine among the objects of samples.
pub const MACHINE: &str = "machine";

/// An error if a part of the lab stood still for most of the measured span: what it reports would say nothing about the scenario.
pub(super) fn check(part: &str, stalls: &Stalls) -> Result<()> {
    let (lost, span) = (stalls.lost, stalls.span());
    if lost.0 <= span.0 / 2 {
        return Ok(());
    }
    let [lost, span] = [lost, span].map(Time::to_seconds);
    Err(Error::Failed(format!(
        "{part} stood still for {lost:.1} s of the {span:.1} s that are measured, so there are no results: the machine \
         was too busy or was stopped; repeat the run when less runs beside it"
    )))
}

/// Monitors a processor until `end`. Returns a sample for each stall.
pub(super) fn watch(
    processor: usize,
    start: &dyn Fn() -> Clock,
    end: Time,
    stop: &dyn Fn() -> bool,
) -> Result<Vec<Sample>> {
    sys::stay_on(processor).or_fail(|| format!("stay on processor {processor}"))?;
    sys::sharpen_timers();
    let clock = start();
    let mut samples = Vec::new();
    // The scenario's clock reads zero before the scenario begins.
    let mut due = EVERY;
    while due < end && !stop() {
        clock.sleep_until(due);
        let now = clock.now();
        let late = now.since(due);
        if late > EVERY {
            let value = late.to_millis();
            samples.push(Sample { at: due, object: MACHINE.to_string(), variable: "late_ms", value });
        }
        if now >= due {
            due = now + EVERY;
        }
    }
    Ok(samples)
}

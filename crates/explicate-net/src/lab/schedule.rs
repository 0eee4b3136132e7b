//! When a run is looked at: at the end of its warm-up, every period of its samples, at its end.

use explicate_core::units::Time;
use explicate_scenario::model::Scenario;

/// What is due.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Look {
    /// The measured span begins.
    Measure,
    /// A sample.
    Sample,
}

/// The looks of a run.
pub(super) struct Schedule {
    end: Time,
    warmup: Option<Time>,
    every: Time,
    sample: Time,
}

impl Schedule {
    /// Those of a scenario.
    pub(super) fn new(scenario: &Scenario) -> Schedule {
        let every = scenario.sampling.every.unwrap_or(Time::NEVER);
        Schedule { end: scenario.duration, warmup: Some(scenario.warmup.min(scenario.duration)), every, sample: every }
    }
    /// Until when to run next, and what is due then; `None` after the end.
    pub(super) fn next(&mut self) -> Option<(Time, Look)> {
        if let Some(at) = self.warmup.filter(|at| *at <= self.sample) {
            self.warmup = None;
            return Some((at, Look::Measure));
        }
        let at = self.sample;
        self.sample = at + self.every;
        (at <= self.end).then_some((at, Look::Sample))
    }
    /// The period of samples, seconds.
    pub(super) fn period(&self) -> f64 {
        self.every.as_secs_f64()
    }
    /// The end of the run.
    pub(super) fn end(&self) -> Time {
        self.end
    }
}

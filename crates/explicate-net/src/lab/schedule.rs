//! Times of measurements: the end of the warm-up, every sampling period, the end of the run.

use explicate_core::units::Time;
use explicate_scenario::model::Scenario;

/// The measurement that is due.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Action {
    /// The warm-up has ended.
    Measure,
    /// A sample.
    Sample,
}

/// The measurements of a run.
pub(super) struct Schedule {
    end: Time,
    warmup: Option<Time>,
    every: Time,
    sample: Time,
}

impl Schedule {
    /// The schedule of a scenario.
    pub(super) fn new(scenario: &Scenario) -> Schedule {
        let every = scenario.sampling.every.unwrap_or(Time::NEVER);
        Schedule { end: scenario.duration, warmup: Some(scenario.warmup.min(scenario.duration)), every, sample: every }
    }
    /// The time of the next measurement, and the measurement; `None` after the end.
    pub(super) fn next(&mut self) -> Option<(Time, Action)> {
        if let Some(at) = self.warmup.filter(|at| *at <= self.sample) {
            self.warmup = None;
            return Some((at, Action::Measure));
        }
        let at = self.sample;
        self.sample = at + self.every;
        (at <= self.end).then_some((at, Action::Sample))
    }
    /// The period of samples.
    pub(super) fn period(&self) -> Time {
        self.every
    }
    /// The end of the run.
    pub(super) fn end(&self) -> Time {
        self.end
    }
}

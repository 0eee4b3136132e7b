//! Values that change at given times.

use std::sync::Arc;

use explicate_core::params::Values;
use explicate_core::units::{Rate, Time};

/// Values with their start times.
pub(crate) type Steps = Vec<(Time, f64)>;

/// Nanoseconds in a second, and billionths in one.
pub(crate) const NANO: f64 = 1e9;

/// The parameter values of a quantity that changes: `first`, then `steps` as integers of a unit.
pub(crate) fn values_of(first: u64, steps: &Steps, per_unit: f64) -> Values {
    let mut list = vec![(Time::ZERO, Rate(first))];
    for &(at, value) in steps {
        let value = Rate((value * per_unit).round() as u64);
        // Of several changes at one time the last one holds.
        match list.last_mut().filter(|last| last.0 == at) {
            Some(last) => last.1 = value,
            None => list.push((at, value)),
        }
    }
    with_steps(list)
}

/// Parameter values with these steps and nothing else.
pub(crate) fn with_steps(steps: Vec<(Time, Rate)>) -> Values {
    let mut values = Values::default();
    values.steps = Some(steps.into());
    values
}

/// Looks up the present value in a list of steps.
pub(crate) struct Lookup {
    steps: Arc<[(Time, Rate)]>,
    index: usize,
}

impl Lookup {
    pub(crate) fn new(values: &Values) -> Lookup {
        let steps = values.steps.clone().unwrap_or_else(|| [(Time::ZERO, Rate(0))].into());
        Lookup { steps, index: 0 }
    }
    /// The value at `now`, which never goes back.
    pub(crate) fn at(&mut self, now: Time) -> u64 {
        while self.steps.get(self.index + 1).is_some_and(|next| next.0 <= now) {
            self.index += 1;
        }
        self.steps[self.index].1.0
    }
}

//! An oracle: the true available bandwidth of the path, with an error that parameters set.
//!
//! Source: paper I, section IV ("the available bandwidth is found by subtracting the incoming traffic load to the bottleneck
//! link capacity, which is known in the simulation") and IV-D ("we randomly overestimate or underestimate the available
//! bandwidth by a maximum of 10% and 20%").
//!
//! The idea: once per period the driver reports, for every link of the path, the bytes that it could have carried
//! since the last time and the bytes that arrived. The least difference is the available bandwidth. An error is drawn
//! for every estimate, or is kept for `estimate_hold`.
//!
//! | symbol | field | unit | value | source |
//! | --- | --- | --- | --- | --- |
//! | BW | `available` | bytes/s | min over links of capacity - load | IV |
//! | | `estimate_error` | 1 | 0; 0.1 and 0.2 in figure 13 | IV-D |
//!
//! Deviations:
//! 1. The distribution of the error is not given; it is uniform within its bound.
//! 2. If links are nearly full, an error of the available bandwidth is very small, yet the paper reports losses.
//!    `estimate_of = "capacity"` makes it an error of the capacity.
//! 3. If the load exceeds the capacity the estimate is negative, like the difference in the text.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::{Estimator, EstimatorInit, EstimatorKind};
use crate::agent::{Address, PathOracle};
use crate::params::{Fraction, Info, Seconds, choices, parameters};
use crate::rng::Rng;
use crate::units::Time;

/// The oracle.
pub struct Oracle;

choices! {
    /// The quantity that the oracle's error multiplies.
    pub enum EstimateOf { Available = "available", Capacity = "capacity" }
}

parameters! {
    /// Parameters; the router's list includes them.
    pub struct Params {
        /// Maximum error of the oracle, in either direction.
        estimate_error: Fraction = 0.0, in 0.0..=1.0, "paper I IV-D";
        /// The quantity that the oracle's error multiplies: the available bandwidth, or the capacity before the load
        /// is subtracted.
        estimate_of: EstimateOf = EstimateOf::Available, "paper I IV-D";
        /// Delay of the oracle's answer.
        estimate_delay: Seconds = 0.0, in 0.0..=100.0, "paper I IV";
        /// Time for which an error of the oracle is kept; 0s: a new error for every estimate.
        estimate_hold: Seconds = 0.0, in 0.0..=1000.0, "ours";
    }
}

impl EstimatorKind for Oracle {
    const INFO: Info = Info {
        name: "oracle",
        summary: "The true available bandwidth of the path, with an optional error",
        source: "paper I section IV",
        params: Params::PARAMS,
    };

    fn build(&self, init: EstimatorInit<'_>) -> Box<dyn Estimator> {
        let params = Params::of(init.values);
        Box::new(Asking {
            ends: (init.own, init.peer),
            error: params.estimate_error,
            of_capacity: params.estimate_of == EstimateOf::Capacity,
            delay: Time::from_secs_f64(params.estimate_delay),
            hold: Time::from_secs_f64(params.estimate_hold),
            factor: 1.0,
            redraw: init.now,
            period: init.period,
            asked: None,
            next: init.now,
            came: Vec::new(),
            pending: None,
            capacity: None,
            rng: init.rng,
        })
    }
}

struct Asking {
    ends: (Address, Address),
    error: f64,
    of_capacity: bool,
    delay: Time,
    /// How long an error is kept, the present error (a factor), and its end.
    hold: Time,
    factor: f64,
    redraw: Time,
    period: Time,
    /// When the oracle was last queried.
    asked: Option<Time>,
    next: Time,
    /// The links of the path then, and the bytes that had arrived at each.
    came: Vec<(u32, f64)>,
    /// The pending answer, and when it may be reported.
    pending: Option<(Time, f64)>,
    /// Capacity of the tight link at the last query, bytes/s.
    capacity: Option<f64>,
    rng: Rng,
}

/// The first query is answered after this time, because a load is bytes over time.
const FIRST: Time = Time::millis(10);

impl Estimator for Asking {
    fn set_period(&mut self, now: Time, period: Time) {
        self.period = period;
        self.next = self.next.min(now + period);
    }
    fn poll_timeout(&self) -> Time {
        self.next.min(self.pending.map_or(Time::NEVER, |(at, _)| at))
    }
    fn consult(&mut self, now: Time, oracle: &mut dyn PathOracle) {
        if now < self.next {
            return;
        }
        let since = self.asked.unwrap_or(now);
        let elapsed = now.since(since).as_secs_f64();
        if now >= self.redraw {
            self.factor = 1.0 + self.error * (2.0 * self.rng.uniform() - 1.0);
            self.redraw = now + self.hold;
        }
        let factor = self.factor;
        let (of_capacity, before) = (self.of_capacity, core::mem::take(&mut self.came));
        let (mut least, mut tight) = (f64::INFINITY, 0.0);
        let mut same = true;
        let came = &mut self.came;
        oracle.links(self.ends.0, self.ends.1, since, &mut |link, offered, bytes| {
            let known = before.get(came.len()).filter(|(number, _)| *number == link);
            same &= known.is_some();
            let load = bytes - known.map_or(bytes, |(_, bytes)| *bytes);
            came.push((link, bytes));
            let left = if of_capacity { offered * factor - load } else { (offered - load) * factor };
            if left < least {
                (least, tight) = (left, if of_capacity { offered * factor } else { offered });
            }
        });
        // The load of a new or changed path is not known yet.
        same &= came.len() == before.len() && elapsed > 0.0 && least.is_finite();
        if same {
            self.pending = Some((now + self.delay, least / elapsed));
            self.capacity = Some(tight / elapsed);
        }
        let again = !same && !self.came.is_empty();
        self.next = now + if again { self.period.min(FIRST) } else { self.period };
        self.asked = Some(now);
    }
    fn poll_estimate(&mut self, now: Time) -> Option<f64> {
        self.pending.take_if(|(at, _)| *at <= now).map(|(_, left)| left)
    }
    fn capacity(&self) -> Option<f64> {
        self.capacity
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    /// A link that carries 1000 bytes/s: bytes that arrive every 100 ms, and bytes that have arrived so far.
    struct Loaded(f64, f64);

    impl PathOracle for Loaded {
        fn links(&mut self, _: Address, _: Address, _: Time, report: &mut dyn FnMut(u32, f64, f64)) {
            self.1 += self.0;
            report(0, 100.0, self.1);
        }
    }

    /// The estimates of every 100 ms for 5 s on an idle link, bytes/s.
    fn estimates(given: &[(&str, f64)]) -> alloc::vec::Vec<f64> {
        estimates_under(0.0, given)
    }
    fn estimates_under(load: f64, given: &[(&str, f64)]) -> alloc::vec::Vec<f64> {
        let values = testing::values(&[Params::PARAMS], given);
        let (own, peer, period) = (Address(1), Address(2), Time::millis(100));
        let rng = Rng::stream(1, "test");
        let mut oracle = Oracle.build(EstimatorInit { values: &values, own, peer, period, rng, now: Time::ZERO });
        let (mut said, mut link) = (Vec::new(), Loaded(load, 0.0));
        for tick in 0..50 {
            let now = Time::millis(100 * tick);
            oracle.consult(now, &mut link);
            said.extend(oracle.poll_estimate(now));
        }
        said
    }
    fn distinct(estimates: &[f64]) -> usize {
        1 + estimates.windows(2).filter(|pair| (pair[0] - pair[1]).abs() > 1e-9).count()
    }

    #[test]
    fn an_error_stays_as_long_as_it_is_told_to() {
        let exact = estimates(&[]);
        assert!(exact.len() > 40 && exact.iter().all(|left| (left - 1000.0).abs() < 1e-6), "{exact:?}");
        let each = estimates(&[("estimate_error", 0.2)]);
        let held = estimates(&[("estimate_error", 0.2), ("estimate_hold", 2.0)]);
        assert!(each.iter().chain(&held).all(|left| (800.0..=1200.0).contains(left)));
        assert_eq!((distinct(&each), distinct(&held)), (each.len(), 3));
    }

    /// The difference has a sign (section IV): 250 bytes in a time in which the link carries 100 leave -1500 bytes/s.
    #[test]
    fn a_load_beyond_the_capacity_leaves_less_than_nothing() {
        let said = estimates_under(250.0, &[]);
        assert!(said.len() > 40 && said.iter().all(|left| (left + 1500.0).abs() < 1e-6), "{said:?}");
    }
}

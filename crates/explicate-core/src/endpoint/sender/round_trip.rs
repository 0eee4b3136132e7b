//! Round-trip times for the controller and its headers, if they have a resolution of their own (`rtt_resolution`). Every
//! acknowledgement of new data is a sample, smoothed as RFC 6298 (2.3) has it, whatever the rule of the retransmission timer.

use super::Params;
use crate::params::Values;
use crate::recovery::common::rtt::smoothed;
use crate::recovery::{Common, RtoRule};
use crate::units::Time;

/// A span that ends now, in whole ticks of a clock between its ends, at least one; `tick` in ns, zero is exact. The
/// span does not begin before time zero.
#[inline]
pub(super) fn in_ticks(tick: u32, now: Time, span: Time) -> Time {
    let tick = tick as u64;
    if tick == 0 {
        return span;
    }
    let ticks = now.0 / tick - now.0.wrapping_sub(span.0) / tick;
    Time(ticks.max(1) * tick)
}

/// The clock of a host, by which it measures round trips: its period, ns, at most a second; zero is exact. [`Clock::ROUNDS`] is one of its
/// bits, so that a flow needs no more memory.
#[derive(Clone, Copy)]
pub(super) struct Clock(u32);

impl Clock {
    /// Time stamps are exact, and the span between them is rounded to ticks: ns-2's, `rtt_update`.
    const ROUNDS: u32 = 1 << 31;

    /// The clock that the parameters of the recovery give.
    pub(super) fn new(values: &Values) -> Clock {
        let common = Common::of(values);
        let tick = Time::from_secs_f64(common.clock()).0 as u32;
        let rounds = tick > 0 && common.rto == RtoRule::Ns2Timestamps;
        Clock(tick | if rounds { Clock::ROUNDS } else { 0 })
    }
    #[inline]
    pub(super) fn is_exact(self) -> bool {
        self.0 == 0
    }
    /// Its period, ns.
    #[inline]
    pub(super) fn tick(self) -> u32 {
        self.0 & !Clock::ROUNDS
    }
    /// A span that ends now, by this clock.
    #[inline]
    pub(super) fn measure(self, now: Time, span: Time) -> Time {
        if self.0 & Clock::ROUNDS == 0 { in_ticks(self.0, now, span) } else { self.rounded(span) }
    }
    #[cold]
    fn rounded(self, span: Time) -> Time {
        let tick = self.tick() as u64;
        Time((span.0 + tick / 2) / tick * tick).max(Time(tick))
    }
}

/// A round-trip estimate with a resolution of its own.
pub(super) struct RoundTrip {
    /// Resolution, ns.
    tick: u32,
    /// Zero while unknown.
    pub(super) srtt: Time,
}

impl RoundTrip {
    /// `None` if no resolution is given: the estimate of the retransmission timer then serves both.
    pub(super) fn new(values: &Values) -> Option<RoundTrip> {
        let own = Params::of(values).rtt_resolution?;
        Some(RoundTrip { tick: Time::from_secs_f64(own).0 as u32, srtt: Time::ZERO })
    }
    /// An acknowledgement that arrives now, after a round trip of `exact`; with `counts` it acknowledges new data.
    /// Returns the sample.
    pub(super) fn take(&mut self, now: Time, exact: Time, counts: bool) -> Time {
        let sample = in_ticks(self.tick, now, exact);
        if self.srtt == Time::ZERO {
            self.srtt = sample;
        } else if counts {
            self.srtt = Time(smoothed(self.srtt.0, 0, sample.0.max(1), self.tick).0);
        }
        sample
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    fn with(given: &[(&str, f64)]) -> Option<RoundTrip> {
        let values = testing::values(&[Params::PARAMS, Common::PARAMS], given);
        RoundTrip::new(&values)
    }

    /// 31 ms from 7 ms to 38 ms pass three ticks of 10 ms, and one from 11 ms to 19 ms none: one at least.
    #[test]
    fn spans_are_counted_in_ticks() {
        let at = |tick, now, span| in_ticks(tick, Time::millis(now), Time::millis(span));
        assert_eq!([at(10_000_000, 38, 31), at(10_000_000, 19, 8)], [Time::millis(30), Time::millis(10)]);
        assert_eq!(at(0, 38, 31), Time::millis(31));
    }

    /// With time stamps the span alone counts, not when it begins: 36 ms are four ticks, 34 ms three, 3 ms one.
    #[test]
    fn time_stamps_are_rounded_to_ticks() {
        let of = |rule: RtoRule| {
            let given = [("rto", rule as u8 as f64)];
            let clock = Clock::new(&testing::values(&[Params::PARAMS, Common::PARAMS], &given));
            [(100, 36), (104, 36), (100, 34), (104, 34), (104, 3)]
                .map(|(now, span)| clock.measure(Time::millis(now), Time::millis(span)).to_millis())
        };
        assert_eq!(of(RtoRule::Ns2Timestamps), [40.0, 40.0, 30.0, 30.0, 10.0]);
        assert_eq!(of(RtoRule::Ns2), [40.0, 40.0, 40.0, 30.0, 10.0]);
        assert_eq!(of(RtoRule::Linux), [36.0, 36.0, 34.0, 34.0, 3.0]);
        let exact = [("rto", RtoRule::Ns2Timestamps as u8 as f64), ("clock_tick", 0.0)];
        assert!(Clock::new(&testing::values(&[Params::PARAMS, Common::PARAMS], &exact)).is_exact());
    }

    /// Exact: 40, then 7/8 of 40 and 1/8 of 48. In ticks of 10 ms: 40, then 32 + 4 - 4 eighths.
    #[test]
    fn the_estimate_has_its_own_resolution() {
        let after = |resolution: f64| {
            let mut own = with(&[("clock_tick", 0.1), ("rtt_resolution", resolution)]).expect("apart from the timer's");
            own.take(Time::millis(100), Time::millis(40), true);
            own.take(Time::millis(200), Time::millis(48), false);
            assert_eq!(own.srtt, Time::millis(40), "not of new data");
            own.take(Time::millis(208), Time::millis(48), true);
            own.srtt
        };
        assert_eq!((after(0.0), after(0.01)), (Time::millis(41), Time::millis(40)));
    }

    #[test]
    fn it_follows_the_timer_unless_set() {
        assert!(with(&[]).is_none() && with(&[("clock_tick", 0.01)]).is_none());
        assert!(with(&[("clock_tick", 0.01), ("rtt_resolution", 0.0)]).is_some());
        // The same ticks, but the timer's rule may take fewer samples.
        assert!(with(&[("clock_tick", 0.01), ("rtt_resolution", 0.01)]).is_some());
    }
}

//! Acknowledgements that arrive in bunches: how many segments more than expected are acknowledged at once, as BBR
//! measures it (Linux 6.18, `bbr_update_ack_aggregation`; draft-ietf-ccwg-bbr-06 section 5.5.9).
//!
//! A time of aggregation lasts while more segments have arrived than the bandwidth explains. The excess is
//! `extra_acked`. BBR uses its maximum over the last n round trips. As in Linux that maximum is kept in two numbers:
//! the maximum of up to n round trips until now, and of the n before these. The larger of the two therefore covers
//! the last n to 2 n round trips.

use crate::protocols::common::float::{greater, lesser, seconds};
use crate::units::Time;

/// Segments after which a time of aggregation ends in any case.
const MOST: u32 = 1 << 20;

/// The present time of aggregation, and the maxima of the last rounds.
#[derive(Default)]
pub(crate) struct Aggregation {
    since: Time,
    arrived: u32,
    extra: [f64; 2],
    rounds: u32,
}

impl Aggregation {
    /// A new time of aggregation begins.
    pub(crate) fn begin(&mut self, now: Time) {
        (self.since, self.arrived) = (now, 0);
    }

    /// `arrived` segments are acknowledged; `starts` if a round trip starts with them. The bandwidth is in
    /// segments/s. At most `cwnd` segments are extra, and each of the two maxima is of `rounds` round trips.
    #[inline(always)]
    pub(crate) fn take(&mut self, now: Time, starts: bool, arrived: u32, bandwidth: f64, cwnd: f64, rounds: u32) {
        if arrived == 0 {
            return;
        }
        if starts {
            self.rounds += 1;
            if self.rounds >= rounds {
                self.rounds = 0;
                self.extra = [0.0, self.extra[0]];
            }
        }
        // Rounded down; saturates far above MOST.
        let mut expected = (bandwidth * seconds(now.since(self.since))) as u32;
        let mut all = self.arrived.saturating_add(arrived);
        if self.arrived <= expected || all >= MOST {
            self.begin(now);
            (expected, all) = (0, arrived);
        }
        self.arrived = all;
        let extra = lesser((all - expected) as f64, cwnd);
        self.extra[0] = greater(self.extra[0], extra);
    }

    /// The maximum, segments.
    pub(crate) fn most(&self) -> f64 {
        greater(self.extra[0], self.extra[1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1000 segments/s; 30 segments arrive at once every 30 ms. In the first bunch 30 more than the none expected;
    /// those of later bunches were expected after the time before them.
    #[test]
    fn bunches_by_hand() {
        let mut aggregation = Aggregation::default();
        for bunch in 1..=6 {
            aggregation.take(Time::millis(30 * bunch), true, 30, 1000.0, 50.0, 5);
        }
        assert_eq!(aggregation.most(), 30.0);
        for bunch in 7..=16 {
            (0..30).for_each(|n| aggregation.take(Time::millis(30 * bunch + n), n == 0, 1, 1000.0, 50.0, 5));
        }
        assert!(aggregation.most() <= 2.0, "ten rounds later it is forgotten");
    }

    #[test]
    fn no_more_than_the_window_is_extra() {
        let mut aggregation = Aggregation::default();
        aggregation.take(Time::millis(30), true, 30, 1000.0, 20.0, 5);
        assert_eq!(aggregation.most(), 20.0);
    }

    /// A maximum of one round: that of the round before and of this one.
    #[test]
    fn a_maximum_of_one_round_is_forgotten_after_two() {
        let mut aggregation = Aggregation::default();
        let mut round = |ms: u64, arrived: u32| {
            aggregation.take(Time::millis(ms), true, arrived, 1000.0, 50.0, 1);
            aggregation.most()
        };
        assert_eq!([round(100, 30), round(200, 5), round(300, 4)], [30.0, 30.0, 5.0]);
    }
}

//! The estimate of the round-trip time and the timeout that it gives, by the rules of [`RtoRule`]. Nanoseconds.
//!
//! RTTVAR means the quarter of what the timeout has above SRTT, with every rule.

use crate::recovery::RtoRule;

/// A microsecond, the unit of Linux's estimates; 8 SRTT and 4 deviations are integers of it.
const MICROSECOND: u64 = 1000;
/// SRTT and RTTVAR of one of Linux's units.
const SRTT_UNIT: u64 = MICROSECOND / 8;
const RTTVAR_UNIT: u64 = MICROSECOND / 4;
/// The clock of Linux's timers, 1000 Hz, to whose next tick a timeout is rounded up.
const JIFFY: u64 = 1_000_000;

/// SRTT and RTTVAR after one more sample (RFC 6298 (2.3)): the variance first, from the old SRTT. With a clock that
/// ticks they are integers, as hosts with such clocks compute them.
#[inline(always)]
pub(crate) fn smoothed(srtt: u64, rttvar: u64, sample: u64, tick: u32) -> (u64, u64) {
    if tick > 0 {
        return smoothed_in_ticks(srtt, rttvar, sample, tick as u64);
    }
    (srtt - srtt / 8 + sample / 8, rttvar - rttvar / 4 + srtt.abs_diff(sample) / 4)
}
/// The same in Jacobson's integers (Congestion avoidance and control, 1988, appendix A): SRTT has units of an eighth
/// of a tick, RTTVAR of a quarter, and both are compared in whole ticks. BSD and ns-2 round like this, and so does
/// Linux 2.4 except for its variance. SRTT is then up to a tick above the mean: with samples of one tick and two it
/// stays close to two.
#[cold]
fn smoothed_in_ticks(srtt: u64, rttvar: u64, sample: u64, tick: u64) -> (u64, u64) {
    let whole = |estimate: u64| estimate - estimate % tick;
    let deviation = whole(srtt).abs_diff(sample);
    let next = srtt + sample / 8 - whole(srtt) / 8;
    (next, rttvar + deviation / 4 - whole(rttvar) / 4)
}
/// The timeout before its bounds (2.2). With clocks that tick RTTVAR is at least half a tick, so the minimum G of the
/// variance needs no code.
#[inline(always)]
pub(crate) fn timeout_of(srtt: u64, rttvar: u64) -> u64 {
    srtt + 4 * rttvar
}

/// How far round-trip times are from SRTT, and the rule by which both are estimated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spread {
    pub(crate) rttvar: u64,
    /// The present round trip ends when a segment after this one is acknowledged.
    round_end: u32,
    /// Linux: four times the mean deviation, and its maximum of this round trip, microseconds.
    mdev: u32,
    mdev_max: u32,
    /// Period of the clock; 0 is exact.
    pub(crate) tick: u32,
    pub(crate) rule: RtoRule,
}

impl Spread {
    /// Before the first sample.
    pub(crate) fn new(rule: RtoRule, tick: u32, rttvar: u64) -> Spread {
        Spread { rttvar, round_end: 0, mdev: 0, mdev_max: 0, tick, rule }
    }
    /// Whether the rule takes a sample that comes when all segments before this one are acknowledged.
    #[inline(always)]
    pub(crate) fn counts(&self, acked: u32) -> bool {
        self.rule != RtoRule::Ns2 || acked > self.round_end
    }
    /// Takes a sample, with the first unacknowledged segment after it, one past the highest sent, and the minimum of the timeout or of
    /// its margin. Returns SRTT.
    pub(crate) fn take(&mut self, srtt: u64, sample: u64, (acked, highest): (u32, u32), min: u64) -> u64 {
        let first = srtt == 0;
        let ends = acked > self.round_end || first;
        let outstanding = highest.saturating_sub(acked).max(1) as u64;
        let next = match self.rule {
            RtoRule::Linux => self.take_as_linux(srtt, sample / MICROSECOND, ends, min / MICROSECOND),
            _ if first => {
                self.rttvar = sample / 2;
                sample
            }
            RtoRule::Ns2 if !ends => srtt,
            RtoRule::Rfc6298 => {
                // RFC 7323, appendix G: the gains are those of RFC 6298 for a round trip.
                let expected = outstanding.div_ceil(2);
                let (alpha, beta) = (8 * expected, 4 * expected);
                self.rttvar = self.rttvar - self.rttvar / beta + srtt.abs_diff(sample) / beta;
                srtt - srtt / alpha + sample / alpha
            }
            RtoRule::Ns2 | RtoRule::Ns2Timestamps => {
                let (srtt, rttvar) = smoothed(srtt, self.rttvar, sample, self.tick);
                self.rttvar = rttvar;
                srtt
            }
        };
        if ends {
            self.round_end = highest;
        }
        next
    }

    /// Linux 6.18, `tcp_rtt_estimator`: a deviation that grows counts at once, RTTVAR keeps the largest one of a round trip, and
    /// goes down by a quarter of the difference once in a round trip. Microseconds.
    fn take_as_linux(&mut self, srtt: u64, sample: u64, ends: bool, min: u64) -> u64 {
        let sample = sample.max(1);
        let word = |value: u64| value.min(u32::MAX as u64) as u32;
        if srtt == 0 {
            self.mdev = word(2 * sample);
            self.mdev_max = word(2 * sample).max(word(min));
            self.rttvar = self.mdev_max as u64 * RTTVAR_UNIT;
            return 8 * sample * SRTT_UNIT;
        }
        let eighths = srtt / SRTT_UNIT;
        let error = sample as i64 - (eighths / 8) as i64;
        let mut change = error.abs() - (self.mdev / 4) as i64;
        if error < 0 && change > 0 {
            change /= 8; // a round trip that becomes shorter
        }
        self.mdev = word((self.mdev as i64 + change).max(0) as u64);
        self.mdev_max = self.mdev_max.max(self.mdev);
        let (mut margin, largest) = (self.rttvar / RTTVAR_UNIT, self.mdev_max as u64);
        margin = margin.max(largest);
        if ends {
            margin -= (margin - largest) / 4;
            self.mdev_max = word(min);
        }
        self.rttvar = margin * RTTVAR_UNIT;
        (eighths as i64 + error).max(1) as u64 * SRTT_UNIT
    }

    /// The timeout before its bounds.
    #[inline(always)]
    pub(crate) fn timeout(&self, srtt: u64) -> u64 {
        match self.rule {
            RtoRule::Ns2 | RtoRule::Ns2Timestamps => timeout_of(srtt, self.rttvar),
            RtoRule::Rfc6298 => srtt + (4 * self.rttvar).max(self.tick as u64),
            RtoRule::Linux => {
                let whole = srtt / (8 * SRTT_UNIT) * MICROSECOND;
                (whole + 4 * self.rttvar).next_multiple_of(JIFFY)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    /// The timeouts in microseconds after these samples in milliseconds, each with the first unacknowledged segment and one past
    /// the highest sent.
    fn timeouts(rule: RtoRule, tick: u32, min: u64, samples: &[(u64, u32, u32)]) -> Vec<u64> {
        let (mut spread, mut srtt) = (Spread::new(rule, tick, 0), 0);
        let mut after = |&(sample, acked, highest): &(u64, u32, u32)| {
            srtt = spread.take(srtt, sample * 1_000_000, (acked, highest), min);
            spread.timeout(srtt) / 1000
        };
        samples.iter().map(&mut after).collect()
    }

    /// 100 ms: a margin of 200 ms, twice the sample and the minimum. 900 ms: SRTT 200 ms, 4 mdev = 200 + 800 - 50 = 950 ms, which counts at once.
    /// Two of 200 ms: 4 mdev = 712.5 and 534.375 ms; the round trip, which ends with the second, had a maximum of 712.5 ms, so
    /// the margin goes down by a quarter of 237.5 ms to 890.625 ms, and the timer has ticks of 1 ms.
    #[test]
    fn linux_keeps_the_largest_deviation_of_a_round_trip() {
        let samples = [(100, 0, 0), (900, 1, 10), (200, 2, 11), (200, 11, 20)];
        assert_eq!(timeouts(RtoRule::Linux, 0, 200_000_000, &samples), [300_000, 1_150_000, 1_150_000, 1_091_000]);
    }

    /// A round trip that is shorter by 90 ms adds an eighth of 90 - 50 ms to 200 ms; SRTT is 88.75 ms.
    #[test]
    fn linux_takes_a_shorter_round_trip_for_less() {
        assert_eq!(timeouts(RtoRule::Linux, 0, 200_000_000, &[(100, 0, 0), (10, 1, 10)]), [300_000, 294_000]);
    }

    /// However many samples, and however alike: SRTT and 200 ms at least. Integers leave three microseconds more.
    #[test]
    fn linux_has_a_margin_of_its_minimum() {
        let alike: Vec<(u64, u32, u32)> = (0..50_000).map(|i| (600, i, i + 500)).collect();
        assert_eq!(timeouts(RtoRule::Linux, 0, 200_000_000, &alike).last(), Some(&801_000));
    }

    /// 20 segments are in flight, and 10 of them give samples: gains of 1/80 and 1/40. RTTVAR = 50 - 1.25 + 2, SRTT = 100 - 1.25 +
    /// 2.25 ms. Two in flight: the gains of RFC 6298, 57.5 and 110 ms.
    #[test]
    fn rfc7323_divides_the_gains_by_the_samples_of_a_round_trip() {
        let of = |highest| timeouts(RtoRule::Rfc6298, 0, 1, &[(100, 0, 0), (180, 1, highest)]);
        assert_eq!((of(21), of(3)), (std::vec![300_000, 304_000], std::vec![300_000, 340_000]));
    }

    /// Ticks of 10 ms. SRTT = 110, RTTVAR = 57.5 ms; then nothing until a segment after the tenth is acknowledged:
    /// SRTT = 110 + 37.5 - 13.75, RTTVAR = 57.5 + 47.5 - 12.5 ms.
    #[test]
    fn ns2_takes_one_sample_a_round_trip() {
        let samples = [(100, 0, 0), (180, 1, 10), (300, 2, 11), (300, 10, 19), (300, 11, 20)];
        let expected = [300_000, 340_000, 340_000, 340_000, 503_750];
        assert_eq!(timeouts(RtoRule::Ns2, 10_000_000, 200_000_000, &samples), expected);
    }

    /// The same samples, all taken: the third gives SRTT = 110 + 37.5 - 13.75, RTTVAR = 57.5 + 47.5 - 12.5 ms, the fourth 133.75 + 37.5 -
    /// 16.25 and 92.5 + 42.5 - 22.5 ms, the fifth 155 + 37.5 - 18.75 and 112.5 + 37.5 - 27.5 ms.
    #[test]
    fn ns2_with_time_stamps_takes_every_sample() {
        let samples = [(100, 0, 0), (180, 1, 10), (300, 2, 11), (300, 10, 19), (300, 11, 20)];
        let expected = [300_000, 340_000, 503_750, 605_000, 663_750];
        assert_eq!(timeouts(RtoRule::Ns2Timestamps, 10_000_000, 200_000_000, &samples), expected);
    }
}

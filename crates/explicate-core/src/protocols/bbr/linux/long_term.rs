//! Long-term sampling (`bbr_lt_bw_sampling` of Linux 6.18). Two intervals in a row with many losses and similar rates
//! show that a policer limits the flow. Then their rate is used as the bandwidth.
//!
//! | symbol | name here | unit | value |
//! | --- | --- | --- | --- |
//! | lt_bw, lt_use_bw | [`LongTerm::bandwidth`], [`LongTerm::uses`] | segments/s | |
//! | bbr_lt_intvl_min_rtts | [`FEWEST_ROUNDS`] | rounds | 4, at most 16 |
//! | bbr_lt_loss_thresh | [`POLICED_LOSS`] | | 50/256 |
//! | bbr_lt_bw_ratio, bbr_lt_bw_diff | [`ALIKE`], [`ALIKE_BYTES`] | | 1/8, 500 bytes/s |
//! | bbr_lt_bw_max_rtts | [`LONG_TERM_ROUNDS`] | rounds | 48 |

use super::{MARGIN, Round};
use crate::units::Time;

const FEWEST_ROUNDS: u32 = 4;
const POLICED_LOSS: f64 = 50.0 / 256.0;
const ALIKE: f64 = 0.125;
const ALIKE_BYTES: f64 = 500.0;
const LONG_TERM_ROUNDS: u32 = 48;

/// The state of this sampling.
#[derive(Default)]
pub(super) struct LongTerm {
    /// Bytes of a segment.
    packet: f64,
    pub(super) bandwidth: f64,
    pub(super) uses: bool,
    samples: bool,
    rounds: u32,
    /// Segments known to be lost.
    pub(super) lost: u64,
    // At the beginning of the interval.
    since: Time,
    since_delivered: u64,
    since_lost: u64,
}

impl LongTerm {
    /// Nothing is known of the path of segments of `packet` bytes.
    pub(super) fn new(packet: f64) -> LongTerm {
        LongTerm { packet, ..LongTerm::default() }
    }
    fn begin(&mut self, round: &Round) {
        (self.since, self.since_delivered, self.since_lost) = (round.now, round.delivered, self.lost);
        self.rounds = 0;
    }
    /// Forgets what was found.
    pub(super) fn reset(&mut self, round: &Round) {
        (self.bandwidth, self.uses, self.samples) = (0.0, false, false);
        self.begin(round);
    }

    /// Takes the acknowledgement of a round. Returns whether the rate counts no longer.
    pub(super) fn sample(&mut self, round: &Round, probes_bandwidth: bool) -> bool {
        if self.uses {
            return self.expires(round, probes_bandwidth);
        }
        if !self.samples {
            if round.losses == 0 {
                return false;
            }
            self.begin(round);
            self.samples = true;
        }
        self.rounds += (round.begins && !round.limited) as u32;
        if round.limited || self.rounds > 4 * FEWEST_ROUNDS {
            self.reset(round);
        } else if self.rounds >= FEWEST_ROUNDS && round.losses > 0 {
            self.end_interval(round);
        }
        false
    }
    /// Whether the rate has counted for long enough.
    fn expires(&mut self, round: &Round, probes_bandwidth: bool) -> bool {
        if !probes_bandwidth || !round.begins {
            return false;
        }
        self.rounds += 1;
        let over = self.rounds >= LONG_TERM_ROUNDS;
        if over {
            self.reset(round);
        }
        over
    }
    /// Ends the interval if enough was lost in it: its rate counts if it is like that of the one before.
    fn end_interval(&mut self, round: &Round) {
        let (lost, delivered) = (self.lost - self.since_lost, round.delivered - self.since_delivered);
        let span = round.now.since(self.since);
        let lossy = delivered > 0 && lost as f64 >= POLICED_LOSS * delivered as f64;
        if !lossy || span < Time::millis(1) {
            return;
        }
        let bandwidth = delivered as f64 / span.as_secs_f64();
        let apart = (bandwidth - self.bandwidth).abs();
        if self.bandwidth > 0.0 && (apart <= ALIKE * self.bandwidth || apart * self.packet * MARGIN <= ALIKE_BYTES) {
            (self.bandwidth, self.uses, self.rounds) = ((bandwidth + self.bandwidth) / 2.0, true, 0);
        } else {
            self.bandwidth = bandwidth;
            self.begin(round);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(ms: u64, begins: bool, delivered: u64, losses: u64) -> Round {
        Round { now: Time::millis(ms), begins, delivered, losses, limited: false }
    }

    /// Rounds of 100 ms in which 20 segments arrive and 5 are lost: 5 of 20 are more than 50/256. After four the first
    /// interval ends, after four more with the same rate it counts, for 48 rounds.
    #[test]
    fn policers_by_hand() {
        let mut l = LongTerm::new(1500.0);
        let mut step = |n: u64, losses: u64| {
            l.lost += losses;
            let over = l.sample(&round(100 * n, true, 20 * n, losses), true);
            (over, l.uses, libm::round(l.bandwidth * 1e6) / 1e6)
        };
        let first: alloc::vec::Vec<_> = (1..=8).map(|n| step(n, 5)).collect();
        assert_eq!(first[2], (false, false, 0.0));
        assert_eq!(first[3], (false, false, 200.0), "60 segments in 300 ms, since the first loss");
        assert_eq!(first[7], (false, true, 200.0));
        let later: alloc::vec::Vec<_> = (9..9 + 48).map(|n| step(n, 0)).collect();
        assert!(later[..47].iter().all(|at| *at == (false, true, 200.0)));
        assert_eq!(later[47], (true, false, 0.0));
    }

    /// One lost of 20 is no policer.
    #[test]
    fn few_losses_are_no_policer() {
        let mut l = LongTerm::new(1500.0);
        for n in 1..=40 {
            l.lost += 1;
            l.sample(&round(100 * n, true, 20 * n, 1), true);
            assert!(!l.uses && l.bandwidth == 0.0, "round {n}");
        }
    }
}

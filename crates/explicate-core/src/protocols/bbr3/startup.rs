//! Startup and Drain (sections 5.3.1 and 5.3.2).

use super::{Bbr3Sender, Full, Shown, State};

/// BBRStartupFullLossCnt: ranges of lost segments in a round that end Startup.
const RANGES: u32 = 6;

impl Bbr3Sender {
    /// ResetFullBW(), which begins with this bandwidth.
    pub(super) fn reset_full(&mut self, bandwidth: f64) {
        self.full = Full { bandwidth, reached: self.full.reached, ..Full::default() };
    }
    /// CheckFullBWReached() at the start of a round trip: three of them without an increase by a quarter.
    pub(super) fn check_full(&mut self, shown: &Shown) {
        if self.full.now || shown.limited {
            return;
        }
        if shown.rate >= 1.25 * self.full.bandwidth {
            return self.reset_full(shown.rate);
        }
        self.full.count += 1;
        self.full.now = self.full.count >= 3;
        self.full.reached |= self.full.now;
    }

    /// CheckStartupDone().
    pub(super) fn check_startup_done(&mut self, shown: &Shown) {
        if !self.full.reached {
            self.check_startup_high_loss(shown);
        }
        if self.state == State::Startup && self.full.reached {
            self.enter(State::Drain);
            self.drain_round = self.round;
        }
    }
    /// CheckStartupHighLoss() (section 5.3.1.3): a round of repair with more than 2 % lost in six ranges, or any loss
    /// where only one can be detected.
    fn check_startup_high_loss(&mut self, shown: &Shown) {
        self.congestion.ranges += (shown.newly_lost > 0) as u32;
        let round = self.congestion.round_start && self.congestion.ranges >= RANGES;
        let high = self.is_inflight_too_high(shown.tx_in_flight, shown.lost);
        if shown.recovering && (round || !self.selective) && high {
            self.congestion.undo.state = Some(State::Startup);
            (self.full.now, self.full.reached) = (true, true);
            self.inflight_longterm = libm::floor(self.product().max(self.congestion.inflight_latest));
        }
        if self.congestion.round_start {
            self.congestion.ranges = 0;
        }
    }

    /// CheckDrainDone().
    pub(super) fn check_drain_done(&mut self, shown: &Shown) {
        if self.state == State::Drain
            && (shown.in_flight <= self.inflight(self.bw, 1.0) || self.round > self.drain_round + 3)
        {
            self.start_down(shown.now);
        }
    }
}

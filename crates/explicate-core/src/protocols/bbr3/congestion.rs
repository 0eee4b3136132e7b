//! The responses to losses, and how they are taken back (sections 5.5.10 and 5.5.11).

use super::flight::Note;
use super::{Bbr3Sender, Shown, State};
use crate::protocols::common::float::greater;
use crate::units::Time;

/// What losses have shown, for the short term.
pub(super) struct Congestion {
    /// BBR.bw_shortterm, segments/s, and BBR.inflight_shortterm, segments.
    pub(super) bw_shortterm: f64,
    pub(super) inflight_shortterm: f64,
    /// BBR.bw_latest, segments/s, and BBR.inflight_latest, segments: maxima of a round.
    pub(super) bw_latest: f64,
    pub(super) inflight_latest: f64,
    /// BBR.is_loss_in_round.
    pub(super) lost: bool,
    /// BBR.loss_round_delivered and BBR.loss_round_start.
    pub(super) round_end: u64,
    pub(super) round_start: bool,
    /// Acknowledgements of this round that showed losses.
    pub(super) ranges: u32,
    pub(super) undo: Saved,
}

/// What an undo restores.
#[derive(Default)]
pub(super) struct Saved {
    /// BBR.undo_state.
    pub(super) state: Option<State>,
    bw_shortterm: f64,
    inflight_shortterm: f64,
    inflight_longterm: f64,
}

impl Default for Congestion {
    fn default() -> Congestion {
        Congestion {
            bw_shortterm: f64::INFINITY,
            inflight_shortterm: f64::INFINITY,
            bw_latest: 0.0,
            inflight_latest: 0.0,
            lost: false,
            round_end: 0,
            round_start: false,
            ranges: 0,
            undo: Saved::default(),
        }
    }
}

impl Congestion {
    /// ResetCongestionSignals().
    pub(super) fn reset_signals(&mut self) {
        (self.lost, self.bw_latest, self.inflight_latest) = (false, 0.0, 0.0);
    }
    /// ResetShortTermModel().
    pub(super) fn reset_short_term(&mut self) {
        (self.bw_shortterm, self.inflight_shortterm) = (f64::INFINITY, f64::INFINITY);
    }
}

impl Bbr3Sender {
    /// UpdateLatestDeliverySignals().
    pub(super) fn update_latest_delivery_signals(&mut self, shown: &Shown) {
        let signals = &mut self.congestion;
        signals.bw_latest = greater(signals.bw_latest, shown.rate);
        signals.inflight_latest = greater(signals.inflight_latest, shown.delivered);
        signals.round_start = shown.prior_delivered >= signals.round_end as i64;
        if signals.round_start {
            signals.round_end = self.delivery.delivered();
        }
    }
    /// AdvanceLatestDeliverySignals().
    pub(super) fn advance_latest_delivery_signals(&mut self, shown: &Shown) {
        if self.congestion.round_start {
            (self.congestion.bw_latest, self.congestion.inflight_latest) = (shown.rate, shown.delivered);
        }
    }

    /// UpdateCongestionSignals() and AdaptLowerBoundsFromCongestion().
    pub(super) fn update_congestion_signals(&mut self, shown: &Shown) {
        self.update_max_bw(shown);
        if !self.congestion.round_start {
            return;
        }
        if self.congestion.lost && !self.is_probing() {
            self.lower_bounds();
        }
        self.congestion.lost = false;
    }
    /// IsProbingBW().
    fn is_probing(&self) -> bool {
        matches!(self.state, State::Startup | State::Refill | State::Up)
    }
    /// InitLowerBounds() for a timeout, before the window falls.
    pub(super) fn bound_before_timeout(&mut self) {
        if !self.is_probing() && self.congestion.inflight_shortterm == f64::INFINITY {
            self.congestion.inflight_shortterm = self.cwnd.max(self.prior);
        }
    }
    /// InitLowerBounds() and LossLowerBounds().
    fn lower_bounds(&mut self) {
        let (signals, beta) = (&mut self.congestion, self.params.beta);
        let first = |bound: f64, value| if bound == f64::INFINITY { value } else { bound };
        let bandwidth = first(signals.bw_shortterm, self.max_bw);
        let volume = first(signals.inflight_shortterm, self.cwnd);
        signals.bw_shortterm = signals.bw_latest.max(beta * bandwidth);
        signals.inflight_shortterm = signals.inflight_latest.max(beta * volume);
    }

    /// HandleLostPacket(), for each of `count` packets.
    pub(super) fn lose(&mut self, count: u32, now: Time) {
        for _ in 0..count {
            let packet = self.flight.lose();
            if !self.congestion.lost {
                self.congestion.round_end = self.delivery.delivered();
            }
            self.congestion.lost = true;
            let lost = self.flight.lost_since(&packet);
            if self.cycle.is_sample && self.is_inflight_too_high(packet.in_flight as f64, lost) {
                self.handle_inflight_too_high(&packet, lost, now);
            }
        }
    }
    /// IsInflightTooHigh(): whether `lost` segments are too many of those in flight. Without SACK any loss is.
    pub(super) fn is_inflight_too_high(&self, in_flight: f64, lost: f64) -> bool {
        lost > 0.0 && (!self.selective || lost > in_flight * self.params.loss_threshold)
    }
    /// InflightAtLoss() and HandleInflightTooHigh().
    fn handle_inflight_too_high(&mut self, packet: &Note, lost: f64, now: Time) {
        self.cycle.too_high = true;
        self.cycle.is_sample = false;
        if !packet.limited {
            let share = self.params.loss_threshold;
            let (in_flight, lost) = (packet.in_flight as f64 - 1.0, lost - 1.0);
            // With a share of one there is no such prefix.
            let prefix = if share < 1.0 { (share * in_flight - lost) / (1.0 - share) } else { 0.0 };
            let volume = (in_flight + prefix).max(self.target_inflight() * self.params.beta);
            self.inflight_longterm = libm::floor(volume);
        }
        if self.state == State::Up {
            self.congestion.undo.state = Some(State::Up);
            self.start_down(now);
        }
    }

    /// SaveCwnd() and SaveStateUponLoss() (section 5.5.11.1).
    pub(super) fn save_upon_loss(&mut self) {
        self.save_cwnd();
        self.congestion.undo = Saved {
            state: None,
            bw_shortterm: self.congestion.bw_shortterm,
            inflight_shortterm: self.congestion.inflight_shortterm,
            inflight_longterm: self.inflight_longterm,
        };
    }
    /// HandleSpuriousLossDetection() (section 5.5.11.2).
    pub(super) fn undo(&mut self) {
        (self.recovers, self.repaired_at) = (false, 0);
        self.restore_cwnd();
        self.reset_full(0.0);
        let undo = core::mem::take(&mut self.congestion.undo);
        self.congestion.lost = false;
        self.congestion.bw_shortterm = self.congestion.bw_shortterm.max(undo.bw_shortterm);
        self.congestion.inflight_shortterm = self.congestion.inflight_shortterm.max(undo.inflight_shortterm);
        self.inflight_longterm = self.inflight_longterm.max(undo.inflight_longterm);
        match undo.state {
            Some(State::Startup) if self.state != State::Startup => {
                self.full.reached = false;
                if self.state != State::ProbeRtt {
                    self.enter(State::Startup);
                }
            }
            Some(State::Up) if self.state != State::Up && self.state != State::ProbeRtt => self.start_refill(),
            _ => {}
        }
    }
}

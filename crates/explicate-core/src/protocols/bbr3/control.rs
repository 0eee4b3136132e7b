//! Pacing rate and window (section 5.6).

use super::{Bbr3Sender, MIN_PIPE, Shown, State};
use crate::api::Ack;
use crate::protocols::common::float::{greater, lesser};

/// Pacing is this share of the bandwidth.
const MARGIN: f64 = 0.99;
/// Seconds, segments and bytes of a quantum.
const QUANTUM_S: f64 = 1e-3;
const LEAST_QUANTUM: f64 = 2.0;
const MOST_QUANTUM_BYTES: f64 = 65_536.0;

impl Bbr3Sender {
    /// SetPacingRateWithGain() (section 5.6.2).
    pub(super) fn set_pacing(&mut self, gain: f64) {
        let rate = gain * self.bw * MARGIN;
        if rate > 0.0 && (self.full.reached || rate > self.pacing) {
            self.pacing = rate;
        }
    }

    /// BBR.bdp, segments; zero while nothing is known.
    pub(super) fn product(&self) -> f64 {
        self.bw * self.rtt.min_s
    }
    /// BDPMultiple() (section 5.6.4.2), at this bandwidth.
    fn multiple(&self, bandwidth: f64, gain: f64) -> f64 {
        let segments = gain * bandwidth * self.rtt.min_s;
        // Zero while nothing is known.
        if segments > 0.0 { segments } else { self.initial_window }
    }
    /// QuantizationBudget() (section 5.6.4.2). Three packets, if they leave singly, are less than the least window.
    fn budget(&self, segments: f64) -> f64 {
        let mut least = MIN_PIPE;
        if self.bursts {
            let quantum = (self.pacing * QUANTUM_S).min(MOST_QUANTUM_BYTES / self.packet).max(LEAST_QUANTUM);
            least = least.max(3.0 * quantum);
        }
        greater(segments, least) + if self.state == State::Up { 2.0 } else { 0.0 }
    }
    /// Inflight(): segments to have in flight at this bandwidth.
    pub(super) fn inflight(&self, bandwidth: f64, gain: f64) -> f64 {
        self.budget(self.multiple(bandwidth, gain))
    }
    /// TargetInflight() (section 5.3.3.8.3).
    pub(super) fn target_inflight(&self) -> f64 {
        lesser(self.product(), self.cwnd)
    }
    /// InflightWithHeadroom() (section 5.3.3.9).
    pub(super) fn inflight_with_headroom(&self) -> f64 {
        let headroom = (self.params.headroom * self.inflight_longterm).max(1.0);
        if self.inflight_longterm == f64::INFINITY {
            f64::INFINITY
        } else {
            (self.inflight_longterm - headroom).max(MIN_PIPE)
        }
    }
    /// ProbeRTTCwnd() (section 5.6.4.5).
    pub(super) fn probe_rtt_cwnd(&self) -> f64 {
        self.multiple(self.bw, 0.5).max(MIN_PIPE)
    }

    /// SetCwnd() (sections 5.6.4.6 and 5.6.4.7).
    pub(super) fn set_cwnd(&mut self, shown: &Shown) {
        let arrived = shown.arrived as f64;
        let most = self.budget(self.multiple(self.bw, self.cwnd_gain) + self.aggregation.most());
        if self.full.reached {
            self.cwnd = lesser(self.cwnd + arrived, most);
        } else if self.cwnd < most || (self.delivery.delivered() as f64) < self.initial_window {
            self.cwnd += arrived;
        }
        self.cwnd = self.cwnd.max(MIN_PIPE);
        if self.state == State::ProbeRtt {
            self.cwnd = lesser(self.cwnd, self.probe_rtt_cwnd());
        }
        let bound = match self.state {
            State::Startup | State::Drain => f64::INFINITY,
            State::Down | State::Refill | State::Up => self.inflight_longterm,
            State::Cruise | State::ProbeRtt => self.inflight_with_headroom(),
        };
        let bound = lesser(bound, self.congestion.inflight_shortterm).max(MIN_PIPE);
        self.cwnd = lesser(self.cwnd, bound);
    }

    /// SaveCwnd() (section 5.6.4.4).
    pub(super) fn save_cwnd(&mut self) {
        let disturbed = self.recovers || self.state == State::ProbeRtt;
        self.prior = if disturbed { self.prior.max(self.cwnd) } else { self.cwnd };
    }
    /// RestoreCwnd().
    pub(super) fn restore_cwnd(&mut self) {
        self.cwnd = self.cwnd.max(self.prior);
    }
    /// The window returns when the repair is over.
    pub(super) fn follow_repair(&mut self, ack: &Ack<'_>) {
        if !self.recovers {
            return;
        }
        if self.repaired_at == u32::MAX {
            self.repaired_at = ack.highest_sent;
        }
        if !ack.recovering && ack.cumulative >= self.repaired_at {
            (self.recovers, self.repaired_at) = (false, 0);
            self.restore_cwnd();
        }
    }
}

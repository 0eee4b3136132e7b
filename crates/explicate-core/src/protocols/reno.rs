//! TCP's AIMD window (RFC 5681): slow start, congestion avoidance, halving on loss.
//!
//! | symbol | field | unit | value | source |
//! | --- | --- | --- | --- | --- |
//! | cwnd | `cwnd` | segments | | RFC 5681 section 3.1 |
//! | ssthresh | `ssthresh` | segments | infinite at first | section 3.1, equation 4 |
//!
//! Deviations: the window counts segments, not bytes (all but a flow's last are full). During a recovery the window
//! does not grow; inflation is recovery's.

use alloc::boxed::Box;

use crate::protocol::{Ack, Allowance, Loss, LossKind, Probe, Protocol, Sender, SenderInit};

/// TCP's AIMD window.
pub struct Reno;

impl Protocol for Reno {
    fn name(&self) -> &'static str {
        "reno"
    }
    fn summary(&self) -> &'static str {
        "TCP's AIMD window: slow start, one segment more per round trip, half on loss"
    }
    fn source(&self) -> &'static str {
        "RFC 5681"
    }
    fn sender(&self, init: &SenderInit<'_>) -> Box<dyn Sender> {
        Box::new(RenoSender { cwnd: init.initial_window, ssthresh: f64::INFINITY })
    }
}

struct RenoSender {
    cwnd: f64,
    ssthresh: f64,
}

impl Sender for RenoSender {
    fn allowance(&self) -> Allowance {
        Allowance { cwnd: self.cwnd, pacing: None }
    }

    fn on_ack(&mut self, ack: &Ack<'_>) {
        if ack.recovering || ack.app_limited || ack.newly_acked == 0 {
            return;
        }
        if self.cwnd < self.ssthresh {
            // Equation 2: at most one segment per acknowledgement, however much it covers.
            self.cwnd = (self.cwnd + 1.0).min(self.ssthresh.max(self.cwnd));
        } else {
            self.cwnd += ack.newly_acked as f64 / self.cwnd; // equation 3
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        if !loss.repeated {
            self.ssthresh = (loss.in_flight as f64 / 2.0).max(2.0); // equation 4
        }
        self.cwnd = if loss.kind == LossKind::Timeout { 1.0 } else { self.ssthresh };
    }

    fn probe(&self, put: Probe<'_>) {
        put("cwnd", self.cwnd);
        put("ssthresh", self.ssthresh);
    }
}

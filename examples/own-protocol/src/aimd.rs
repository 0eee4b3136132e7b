//! AIMD with a choice of pace: the window grows by `increase` segments a round trip and keeps the share `keep` on a loss.
//!
//! Deviations: none. It is the example of CONTRIBUTING.md: no slow start, and nothing that a router would have to do.

use alloc::boxed::Box;

use explicate_core::api::{Ack, Allowance, AnySender, Loss, LossKind, Probe, Protocol, Sender, SenderInit};
use explicate_core::params::{Fraction, Info, Packets, parameters};

/// Additive increase, multiplicative decrease.
pub struct Aimd;

parameters! {
    /// What a scenario can set.
    struct Params {
        /// Segments more each round trip.
        increase: Packets = 1.0, "Chiu and Jain 1989, section 3";
        /// What a loss leaves.
        keep: Fraction = 0.5, in 0.0..=1.0, "Chiu and Jain 1989, section 3";
    }
}

impl Protocol for Aimd {
    const INFO: Info = Info {
        name: "aimd",
        summary: "Additive increase, multiplicative decrease, both by parameter",
        source: "Chiu and Jain, Computer Networks and ISDN Systems 17, 1989",
        params: Params::PARAMS,
    };

    fn sender(&self, init: &SenderInit<'_>) -> Box<AnySender> {
        Box::new(AimdSender { cwnd: init.initial_window, params: Params::of(init.values) })
    }
}

struct AimdSender {
    cwnd: f64,
    params: Params,
}

impl Sender for AimdSender {
    fn allowance(&self) -> Allowance {
        Allowance { cwnd: self.cwnd, pacing: None }
    }
    fn on_ack(&mut self, ack: &Ack<'_>) {
        if !ack.recovering && !ack.app_limited {
            self.cwnd += self.params.increase * ack.newly_acked as f64 / self.cwnd;
        }
    }
    fn on_loss(&mut self, loss: &Loss) {
        let keep = if loss.kind == LossKind::Timeout { 0.0 } else { self.params.keep };
        self.cwnd = (self.cwnd * keep).max(1.0);
    }
    fn probe(&self, put: Probe<'_>) {
        put("cwnd", self.cwnd);
    }
}

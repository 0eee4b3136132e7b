//! A source without congestion control: packets leave at a constant rate, and losses do not change it.
//!
//! Source: none; it is the unresponsive traffic to which studies of congestion control compare their protocols (Floyd
//! and Fall, "Promoting the Use of End-to-End Congestion Control in the Internet", IEEE/ACM ToN 7(4), 1999).
//!
//! No window, no reaction to losses, marks or acknowledgements. Over the recovery `none`, as in the preset of this name, it
//! is UDP at a constant rate: it opens no connection, and nothing returns, so it needs no way back. What is measured
//! is measured at the receiver: goodput, throughput, `lost`; there is no round-trip time. A transfer with a `size` is
//! complete when its last segment has arrived. Over another recovery it retransmits lost packets, at the same rate.
//!
//! Deviations:
//! 1. Between real hosts (`explicated`) a handshake admits the flow, and its packets are acknowledged, so that a sender
//!    stops when there is no receiver.

use alloc::boxed::Box;

use crate::api::{Ack, Allowance, AnySender, Loss, Probe, Protocol, Sender, SenderInit};
use crate::params::{BitsPerSecond, Info, parameters};
use crate::protocols::video::UNLIMITED;
use crate::units::Rate;

/// A source without congestion control.
pub struct Greedy;

parameters! {
    /// What a scenario can set.
    struct Params {
        /// Sending rate, including all headers.
        rate: BitsPerSecond = 4e6, in 1e3..=1e12, "Floyd and Fall 1999";
    }
}

impl Protocol for Greedy {
    const INFO: Info = Info {
        name: "greedy",
        summary: "A source of constant rate that ignores losses, marks and feedback",
        source: "Floyd and Fall, IEEE/ACM ToN 7(4), 1999",
        params: Params::PARAMS,
    };
    const NEEDS_FEEDBACK: bool = false;

    fn sender(&self, init: &SenderInit<'_>) -> Box<AnySender> {
        Box::new(GreedySender { rate: Rate::from_bytes_per_sec(Params::of(init.values).rate / 8.0) })
    }
}

struct GreedySender {
    rate: Rate,
}

impl Sender for GreedySender {
    fn allowance(&self) -> Allowance {
        Allowance { cwnd: UNLIMITED, pacing: Some(self.rate) }
    }
    fn on_ack(&mut self, _ack: &Ack<'_>) {}
    fn on_loss(&mut self, _loss: &Loss) {}
    fn probe(&self, put: Probe<'_>) {
        put("rate_bps", self.rate.0 as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::LossKind;
    use crate::testing::{loss, sender};
    use crate::units::Time;

    #[test]
    fn nothing_slows_it_down() {
        let mut s = sender(&Greedy, 3.0, &[]);
        for kind in [LossKind::Duplicates, LossKind::Timeout, LossKind::Mark] {
            s.on_loss(&loss(Time::ZERO, kind, 10));
            assert_eq!(s.allowance(), Allowance { cwnd: UNLIMITED, pacing: Some(Rate::mbps(4)) });
        }
    }
}

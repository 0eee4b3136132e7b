//! DCTCP: M. Alizadeh, A. Javanmard, B. Prabhakar, "Analysis of DCTCP: Stability, Convergence, and Fairness",
//! SIGMETRICS 2011, equations 1 and 2, in the ratio of acknowledgements instead of W/R, with slow start.
//!
//! dW = (a - m) (s + (1 - s)/W) - alpha/2 W e,   d alpha = g (m - alpha a)/W
//!
//! | symbol | field | meaning |
//! | --- | --- | --- |
//! | W | `window` | packets, the mean of the class's flows |
//! | a, m | `acks.packets`, tag 0 | packets acknowledged in the step, per flow, and those of them that were marked |
//! | s | `starting` | share of the flows that are still in slow start: falls by e of itself |
//! | e | `losses.events` | reductions per flow in the step, once a round trip each (`losses.rs`) |
//! | g | `g` | 1/16 |
//!
//! Two differences from the paper, in which a marked round trip takes away alpha/2 W bit by bit and all packets let the
//! window grow: here, as in the sender, the first mark of a round trip takes it away at once, and acknowledgements of
//! marked packets let nothing grow. A loss takes half. Not modelled: timeouts.

use explicate_core::api::Probe;
use explicate_core::protocols::dctcp::Params;

use super::losses::Losses;
use crate::model::{Acks, Model, Sender, SenderInit};

/// DCTCP.
pub struct Dctcp;

impl Model for Dctcp {
    fn protocol(&self) -> &'static str {
        "dctcp"
    }
    fn summary(&self) -> &'static str {
        "mean window of a class: half of the averaged share of marks once a round trip, half for a loss; no timeouts"
    }
    fn reacts_to_marks(&self) -> bool {
        true
    }
    fn always_bears_marks(&self) -> bool {
        true
    }
    /// The queue passes its threshold, and comes back, within parts of a round trip.
    fn steps(&self) -> f64 {
        100.0
    }
    fn sender(&self, init: &SenderInit<'_>) -> Box<dyn Sender> {
        let (window, g) = (init.initial_window, Params::of(init.values).g);
        Box::new(DctcpSender { window, g, alpha: 1.0, starting: 1.0, losses: Losses::default() })
    }
}

struct DctcpSender {
    window: f64,
    g: f64,
    alpha: f64,
    starting: f64,
    losses: Losses,
}

impl Sender for DctcpSender {
    fn on_acks(&mut self, acks: &Acks) {
        let (lost, marked) = (acks.lost, acks.tags[0].min(acks.packets));
        let growth = self.starting + (1.0 - self.starting) / self.window;
        self.alpha += (self.g * (marked - self.alpha * acks.packets) / self.window).clamp(-1.0, 1.0);
        self.window += (acks.packets - marked) * growth;
        let events = self.losses.events(lost + marked, acks.dt, acks.rtt);
        if events > 0.0 {
            let of_losses = lost / (lost + marked);
            let cut = 0.5 * (of_losses + (1.0 - of_losses) * self.alpha);
            self.window = (self.window * (1.0 - cut * events)).max(2.0);
            self.starting *= 1.0 - events;
        }
    }
    fn window(&self) -> f64 {
        self.window
    }
    fn probe(&self, put: Probe<'_>) {
        put("cwnd", self.window);
        put("alpha", self.alpha);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn acks(packets: f64, marked: f64, lost: f64) -> Acks {
        Acks { now: 0.0, dt: 0.001, packets, lost, tags: [marked, 0.0], rtt: 0.1 }
    }

    /// From 100 packets out of slow start: one marked packet of one takes alpha/2 of them, the next of the same round trip
    /// takes none. Alpha goes a hundredth of a sixteenth towards 1.
    #[test]
    fn a_marked_round_trip_takes_half_of_alpha_once() {
        let mut s = DctcpSender { window: 100.0, g: 0.0625, alpha: 0.5, starting: 0.0, losses: Losses::default() };
        s.on_acks(&acks(1.0, 1.0, 0.0));
        let alpha = 0.5 + 0.0625 * 0.5 / 100.0;
        assert!((s.alpha - alpha).abs() < 1e-12, "{}", s.alpha);
        assert!((s.window - 100.0 * (1.0 - alpha / 2.0)).abs() < 1e-9, "{}", s.window);
        let before = s.window;
        s.on_acks(&acks(1.0, 1.0, 0.0));
        assert_eq!(s.window, before, "neither a second reduction nor growth");
        s.on_acks(&acks(1.0, 0.0, 0.0));
        assert!((s.window - before - 1.0 / before).abs() < 1e-12, "an unmarked one lets it grow: {}", s.window);
        let mut s = DctcpSender { window: 100.0, g: 0.0625, alpha: 0.1, starting: 0.0, losses: Losses::default() };
        s.on_acks(&acks(0.0, 0.0, 1.0));
        assert!((s.window - 50.0).abs() < 1e-9, "a loss takes half: {}", s.window);
    }
}

//! TCP's AIMD window: Misra, Gong, Towsley, "Fluid-based Analysis of a Network of AQM Routers Supporting TCP Flows with an
//! Application to RED", SIGCOMM 2000, equation 1, in the ratio of acknowledgements instead of W/R so that it holds while
//! queues change, and with slow start.
//!
//! dW = a (s + (1 - s)/W) (1 - r) - kappa/2 W e
//!
//! | symbol | field | meaning |
//! | --- | --- | --- |
//! | W | `window` | packets, the mean of the class's flows |
//! | a | `acks.packets` | packets acknowledged in the step, per flow |
//! | s | `starting` | share of the flows that are still in slow start: falls by e of itself |
//! | r | `losses.repairing()` | share of the flows that repair a loss, during which windows do not grow |
//! | e | `losses.events` | reactions per flow in the step (`losses.rs`) |
//! | kappa | `SPREAD` | E\[W^2\]/E\[W\]^2 of the flows |
//!
//! Losses hit large windows more often: on average a loss removes half of E\[W^2\]/E\[W\]. With random losses the
//! windows of a class are spread so that kappa = 2/1.3098^2 (Ott, Kemperman, Mathis, "The stationary behavior of
//! ideal TCP congestion avoidance", 1996: the mean window is 1.3098/sqrt(p)); Misra et al. take 1.
//!
//! Not modelled: timeouts, so the cost of many losses in a small window is too low.

use explicate_core::api::Probe;
use explicate_core::params::Values;
use explicate_core::protocols::reno::{OnDuplicates, Params};

use super::losses::Losses;
use crate::model::{Acks, Model, Sender, SenderInit};

/// TCP's AIMD window.
pub struct Reno;

/// E\[W^2\]/E\[W\]^2 where losses are random.
const SPREAD: f64 = 2.0 / (1.3098 * 1.3098);

impl Model for Reno {
    fn protocol(&self) -> &'static str {
        "reno"
    }
    fn summary(&self) -> &'static str {
        "mean window of a class: additive increase, half for each loss or mark; no timeouts"
    }
    fn refuses(&self, values: &Values) -> Option<(&'static str, &'static str)> {
        let restarts = Params::of(values).on_duplicates == OnDuplicates::Restart;
        restarts.then_some(("on_duplicates", "only `halve` has a fluid model"))
    }
    fn reacts_to_marks(&self) -> bool {
        true
    }
    fn sender(&self, init: &SenderInit<'_>) -> Box<dyn Sender> {
        Box::new(RenoSender { window: init.initial_window, starting: 1.0, losses: Losses::default() })
    }
}

struct RenoSender {
    window: f64,
    starting: f64,
    losses: Losses,
}

impl Sender for RenoSender {
    fn on_acks(&mut self, acks: &Acks) {
        let events = self.losses.events(acks.lost + acks.tags[0], acks.dt, acks.rtt);
        let growth = self.starting + (1.0 - self.starting) / self.window;
        self.window += acks.packets * growth * (1.0 - self.losses.repairing());
        if events > 0.0 {
            let kappa = 1.0 + (SPREAD - 1.0) * (1.0 - self.starting);
            self.window = (self.window * (1.0 - 0.5 * (kappa * events).min(1.0))).max(1.0);
            self.starting *= 1.0 - events;
        }
    }
    fn window(&self) -> f64 {
        self.window
    }
    fn probe(&self, put: Probe<'_>) {
        put("cwnd", self.window);
    }
}

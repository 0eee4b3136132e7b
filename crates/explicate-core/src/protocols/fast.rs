//! FAST TCP (D. X. Wei, C. Jin, S. H. Low, S. Hegde, "FAST TCP: motivation, architecture, algorithms, performance", IEEE/ACM
//! ToN 14(6), 2006): keeps alpha packets in the queue, going there in proportion to the distance.
//!
//! Like Vegas, FAST derives the queue from the round-trip time. But it does not move by steps of one: each update
//! goes the share gamma of the way from the present window to the one that would keep alpha packets in the queue, so
//! a distant goal is reached in a few round trips on any path. In equilibrium every flow has alpha packets in the
//! queue; shares are then equal, and independent of the round-trip time. The window at most doubles per update.
//!
//! | symbol | field | unit | value | source |
//! | --- | --- | --- | --- | --- |
//! | w | `window.cwnd` | segments | min{2w, (1-gamma) w + gamma (baseRTT/RTT w + alpha)} | ToN equation 6 |
//! | alpha | `alpha` | packets | 100 | a free parameter of the source; ours |
//! | gamma | `gamma` | | 0.5 | ToN section IV; ns-2 |
//! | baseRTT | `base` | time | least seen | section IV |
//! | RTT | `rtt` | s | mean with weight min{3/w, 1/4} | section IV |
//!
//! Deviations:
//! 1. The window is updated once per round trip, and growth is spread over the acknowledgements of the next, in place
//!    of the source's burstiness control; `paced` spreads all packets.
//! 2. The only slow start is the bound of 2w.
//! 3. A loss or mark halves the window, and a timeout resets it to one segment; then the equation applies again.

use alloc::boxed::Box;

use crate::api::{Ack, Allowance, AnySender, Loss, Probe, Protocol, Sender, SenderInit, Undo};
use crate::params::{Fraction, Info, Packets, parameters};
use crate::protocols::common::window::{Round, Window, grows};
use crate::units::Time;

/// FAST TCP.
pub struct Fast;

parameters! {
    /// What a scenario can set.
    struct Params {
        /// Packets of a flow in the queues of its path.
        alpha: Packets = 100.0, in 0.1..=1e6, "Wei et al., ToN 2006, equation 6; the value is ours";
        /// Share of the distance to the goal that is covered per round trip.
        gamma: Fraction = 0.5, in 0.01..=1.0, "Wei et al., ToN 2006";
    }
}

impl Protocol for Fast {
    const INFO: Info = Info {
        name: "fast",
        summary: "FAST TCP: the window approaches alpha packets of each flow in the queue",
        source: "Wei, Jin, Low, Hegde, IEEE/ACM ToN 2006",
        params: Params::PARAMS,
    };

    fn sender(&self, init: &SenderInit<'_>) -> Box<AnySender> {
        Box::new(FastSender {
            alpha: Params::of(init.values).alpha,
            gamma: Params::of(init.values).gamma,
            window: Window::new(init.initial_window),
            round: Round::default(),
            base: f64::INFINITY,
            rtt: 0.0,
            step: 0.0,
        })
    }
}

struct FastSender {
    alpha: f64,
    gamma: f64,
    window: Window,
    round: Round,
    /// Seconds.
    base: f64,
    rtt: f64,
    /// Growth in this round trip, segments for each acknowledged one.
    step: f64,
}

impl FastSender {
    fn measure(&mut self, rtt: Time) {
        let rtt = rtt.as_secs_f64();
        self.base = self.base.min(rtt);
        if self.rtt == 0.0 {
            self.rtt = rtt;
        }
        self.rtt += (3.0 / self.window.cwnd).min(0.25) * (rtt - self.rtt);
    }

    /// The goal for the next round trip.
    fn goal(&self) -> f64 {
        let w = self.window.cwnd;
        let there = self.base / self.rtt * w + self.alpha;
        ((1.0 - self.gamma) * w + self.gamma * there).min(2.0 * w)
    }
}

impl Sender for FastSender {
    fn allowance(&self) -> Allowance {
        Allowance { cwnd: self.window.cwnd, pacing: None }
    }

    fn on_ack(&mut self, ack: &Ack<'_>) {
        if ack.newly_acked == 0 || ack.rtt == Time::ZERO {
            return;
        }
        self.measure(ack.rtt);
        if !grows(ack) {
            return;
        }
        if self.round.ends(ack) {
            let goal = self.goal().max(1.0);
            self.window.cwnd = self.window.cwnd.min(goal);
            self.step = goal / self.window.cwnd - 1.0;
        }
        self.window.cwnd += self.step * ack.newly_acked as f64;
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.window.reduce(loss, 0.5);
        self.step = 0.0;
    }

    fn threshold(&self) -> f64 {
        self.window.ssthresh
    }
    fn on_undo(&mut self, undo: &Undo) {
        self.window.undo(undo);
    }

    fn probe(&self, put: Probe<'_>) {
        put("cwnd", self.window.cwnd);
        put("rtt_ms", if self.rtt > 0.0 { 1e3 * self.rtt } else { f64::NAN });
        put("base_rtt_ms", if self.base.is_finite() { 1e3 * self.base } else { f64::NAN });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::LossKind;
    use crate::testing;

    /// Round trips over a path of 100 ms that holds 1000 packets: what is beyond waits.
    fn windows(rounds: u32) -> alloc::vec::Vec<f64> {
        let (mut s, mut cumulative) = (testing::sender(&Fast, 4.0, &[]), 0);
        let mut round = |_| {
            let rtt = Time::from_secs_f64(0.1 * (s.allowance().cwnd / 1000.0).max(1.0));
            testing::round(&mut *s, &mut cumulative, rtt)
        };
        (0..rounds).map(&mut round).collect()
    }

    /// Doubling while alpha is far, then 50 a round trip (gamma alpha, with no queue), then an exponential approach to 1100:
    /// base/RTT w = 1000 whatever the window, so the distance halves in a round trip.
    #[test]
    fn it_settles_with_alpha_packets_in_the_queue() {
        let w = windows(60);
        assert!((w[3] / w[2] - 2.0).abs() < 0.05, "{w:?}");
        assert!(w[12] - w[11] > 46.0 && w[12] - w[11] < 51.0, "{w:?}");
        let late = *w.last().unwrap();
        assert!((late - 1100.0).abs() < 1.0, "{late}");
        let near = w.iter().position(|w| *w > 1020.0).unwrap();
        assert!(w[near + 8] > 1090.0, "{w:?}");
    }

    #[test]
    fn a_loss_halves() {
        let mut s = testing::sender(&Fast, 4.0, &[]);
        for (kind, w) in [(LossKind::Duplicates, 50.0), (LossKind::Mark, 50.0), (LossKind::Timeout, 1.0)] {
            s.on_loss(&testing::loss(Time::ZERO, kind, 100));
            assert_eq!(s.allowance().cwnd, w);
        }
    }
}

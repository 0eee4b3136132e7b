//! TCP Vegas (L. S. Brakmo, L. L. Peterson, "TCP Vegas: End to End Congestion Avoidance on a Global Internet", IEEE JSAC 13(8),
//! 1995): keeps between alpha and beta packets of its own in the queue.
//!
//! From the round-trip time of the empty path a sender can compute how many of its packets wait in queues: the window
//! divided by that time is the expected rate, the window divided by the present round-trip time is the actual rate,
//! and the difference times the empty round-trip time is the number of waiting packets. Once per round trip Vegas
//! compares this number with alpha and beta and changes the window by one segment, up, down or not at all. Slow start
//! doubles every other round trip, to measure in between, and ends when more than gamma packets wait.
//!
//! | symbol | field | unit | value | source |
//! | --- | --- | --- | --- | --- |
//! | BaseRTT | `base` | time | least seen | JSAC section III |
//! | Diff BaseRTT | `waiting` | packets | | section III |
//! | alpha, beta | `alpha`, `beta` | packets | 1, 3 | section III; ns-2 |
//! | gamma | `gamma` | packets | 1 | section III; ns-2 |
//!
//! Deviations:
//! 1. Vegas' own retransmission (a finer clock, checks after duplicates) would be a recovery; here it runs over any
//!    recovery.
//! 2. As in ns-2: the compared round-trip time is the mean over one round trip, slow start reduces the window by an
//!    eighth when it ends, and a fast retransmit keeps three quarters of the window. A mark counts as a fast
//!    retransmit.
//! 3. A base round-trip time measured with a queue, or a path that became longer, misleads it as it did the original.

use alloc::boxed::Box;

use crate::api::{Ack, Allowance, AnySender, Loss, LossKind, Probe, Protocol, Sender, SenderInit, Undo, measured_ms};
use crate::params::{Fraction, Info, Packets, parameters};
use crate::protocols::common::window::{Round, Window, WindowParams};
use crate::units::Time;

/// TCP Vegas.
pub struct Vegas;

parameters! {
    /// What a scenario can set.
    struct Params {
        /// The window grows with fewer packets in the queue.
        alpha: Packets = 1.0, in 0.1..=1e6, "Brakmo, Peterson, JSAC 1995 section III; ns-2";
        /// The window shrinks with more packets in the queue.
        beta: Packets = 3.0, in 0.1..=1e6, "Brakmo, Peterson, JSAC 1995 section III; ns-2";
        /// Slow start ends with more packets in the queue.
        gamma: Packets = 1.0, in 0.1..=1e6, "Brakmo, Peterson, JSAC 1995 section III; ns-2";
        /// Factor by which a fast retransmit multiplies the window.
        keep: Fraction = 0.75, in 0.1..=1.0, "ns-2 tcp-vegas";
        /// Start, growth and idle times.
        window: WindowParams = WindowParams::DEFAULT;
    }
}

impl Protocol for Vegas {
    const INFO: Info = Info {
        name: "vegas",
        summary: "TCP Vegas: keeps a few packets of each flow in the queue, by comparing round-trip times",
        source: "Brakmo, Peterson, IEEE JSAC 1995",
        params: Params::PARAMS,
    };

    fn sender(&self, init: &SenderInit<'_>) -> Box<AnySender> {
        let params = Params::of(init.values);
        Box::new(VegasSender {
            alpha: params.alpha,
            beta: params.beta.max(params.alpha),
            gamma: params.gamma,
            keep: params.keep,
            window: Window::of(init, params.window),
            round: Round::default(),
            base: Time::NEVER,
            sum: 0,
            samples: 0,
            waiting: 0.0,
            doubles: true,
            step: 0.0,
        })
    }
}

struct VegasSender {
    alpha: f64,
    beta: f64,
    gamma: f64,
    keep: f64,
    window: Window,
    round: Round,
    base: Time,
    /// Sum of the round-trip times measured in this round trip, nanoseconds, and their number.
    sum: u64,
    samples: u32,
    /// Own packets in the queue.
    waiting: f64,
    /// Slow start grows in this round trip.
    doubles: bool,
    /// Growth in this round trip of congestion avoidance, segments.
    step: f64,
}

impl VegasSender {
    /// A round trip is over: determines the next one.
    fn decide(&mut self) {
        let rtt = self.sum as f64 / self.samples as f64;
        let cwnd = self.window.cwnd;
        self.waiting = cwnd * (1.0 - self.base.0 as f64 / rtt);
        (self.sum, self.samples) = (0, 0);
        if cwnd < self.window.ssthresh {
            self.doubles = !self.doubles;
            if self.doubles && self.waiting > self.gamma {
                self.window.ssthresh = 2.0;
                self.window.cwnd = (cwnd - cwnd / 8.0).max(2.0);
                self.step = 0.0;
            }
            return;
        }
        self.step = 0.0;
        if self.waiting > self.beta {
            self.window.cwnd = (cwnd - 1.0).max(2.0);
        } else if self.waiting < self.alpha {
            self.step = 1.0;
        }
    }
}

impl Sender for VegasSender {
    fn allowance(&self) -> Allowance {
        Allowance { cwnd: self.window.cwnd, pacing: None }
    }

    fn on_ack(&mut self, ack: &Ack<'_>) {
        if ack.newly_acked == 0 {
            return;
        }
        self.base = self.base.min(ack.rtt);
        self.sum += ack.rtt.0;
        self.samples += 1;
        if self.round.ends(ack) && !ack.recovering && !ack.app_limited {
            self.decide();
        }
        if !self.window.grows(ack) {
            return;
        }
        if self.window.cwnd >= self.window.ssthresh {
            self.window.rise(self.step, ack.newly_acked);
        } else if self.doubles {
            self.window.slow_start(ack.newly_acked, 1.0);
        }
    }

    fn on_idle(&mut self, now: Time, idle: Time, timeout: Time) {
        self.window.on_idle(now, idle, timeout);
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.step = 0.0;
        self.window.reduce(loss, if loss.kind == LossKind::Timeout { 0.5 } else { self.keep });
    }

    fn threshold(&self) -> f64 {
        self.window.ssthresh
    }
    fn on_undo(&mut self, undo: &Undo) {
        self.window.undo(undo);
    }

    fn probe(&self, put: Probe<'_>) {
        self.window.probe(put);
        put("waiting_packets", self.waiting);
        put("base_rtt_ms", measured_ms(self.base));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{self, round};

    fn sender(window: f64) -> Box<AnySender> {
        testing::sender(&Vegas, window, &[])
    }

    /// A window of 100 over 100 ms: 100 (1 - 100/rtt) packets wait, 0.5 at 100.5 ms, 2 at 102 ms, 5 at 105.3 ms.
    #[test]
    fn between_alpha_and_beta_it_rests() {
        let mut s = sender(100.0);
        let mut at = 0;
        s.on_loss(&testing::loss(Time::ZERO, LossKind::Mark, 133));
        assert_eq!(s.allowance().cwnd, 99.75, "three quarters");
        round(&mut *s, &mut at, Time::millis(100));
        let settled = round(&mut *s, &mut at, Time::micros(102_000));
        assert!((settled - 101.7).abs() < 0.1, "it grew by one, twice, while nothing waited: {settled}");
        let same = round(&mut *s, &mut at, Time::micros(102_000));
        let rest = round(&mut *s, &mut at, Time::micros(102_000));
        assert!(rest - same < 0.05, "two packets wait: {same} {rest}");
        round(&mut *s, &mut at, Time::micros(105_300));
        let less = round(&mut *s, &mut at, Time::micros(105_300));
        assert!((rest - less - 1.0).abs() < 0.1, "five wait: one less, {rest} {less}");
        let waiting = testing::probed(|put| s.probe(put), "waiting_packets");
        assert!((waiting - 5.0).abs() < 0.2, "{waiting}");
    }

    #[test]
    fn slow_start_doubles_every_other_round_trip_and_ends_early() {
        let mut s = sender(4.0);
        let mut at = 0;
        let rtt = Time::millis(100);
        let windows: alloc::vec::Vec<f64> = (0..8).map(|_| round(&mut *s, &mut at, rtt)).collect();
        let doublings = windows.windows(2).filter(|w| w[1] > 1.7 * w[0]).count();
        let pauses = windows.windows(2).filter(|w| w[1] < w[0] + 2.0).count();
        assert!(doublings >= 3 && pauses >= 3, "{windows:?}");
        let before = s.allowance().cwnd;
        for _ in 0..3 {
            round(&mut *s, &mut at, Time::millis(110));
        }
        assert!(s.allowance().cwnd < 2.1 * before, "a tenth of the window waits: no doubling more");
    }
}

//! BIC, binary increase congestion control (L. Xu, K. Harfoush, I. Rhee, "Binary Increase Congestion Control for Fast
//! Long-Distance Networks", INFOCOM 2004).
//!
//! A loss shows that the window just before was too large, and that the reduced window is not. BIC searches between
//! these two as in a sorted list: every round trip goes half-way to the maximum, but by at most Smax, so growth is
//! linear far from the maximum and slow near it. Beyond the old maximum the search mirrors this: steps of 1, 2, 4 up
//! to Smax. A flow that is reduced below its last maximum aims half-way lower, which leaves room for new flows (fast
//! convergence). Small windows behave as Reno's.
//!
//! | symbol | field | unit | value | source |
//! | --- | --- | --- | --- | --- |
//! | beta | `beta`, the factor of a reduction | | 0.875 | the paper |
//! | Smax | `s_max` | segments per RTT | 32 | the paper |
//! | Smin | `s_min` | segments per RTT | 0.01 | the paper |
//! | low_window | `low_window` | segments | 14 | the paper |
//! | max_win | `max` | segments | | the paper |
//! | ss_cwnd | `probe_step` | segments per RTT | 1, 2, 4 .. Smax | the paper |
//!
//! Deviations:
//! 1. The step is chosen once per round trip, as the paper's text has it, and spread over its acknowledgements; its pseudo-code
//!    moves the goal with every acknowledgement, which closes in by a factor of .61 instead of .5 per round trip.
//! 2. Slow start at the beginning and after a timeout is that of RFC 5681.

use alloc::boxed::Box;

use crate::api::{Ack, Allowance, AnySender, Loss, Probe, Protocol, Sender, SenderInit, Undo};
use crate::params::{Flag, Fraction, Info, Packets, parameters};
use crate::protocols::common::window::{Round, Window, WindowParams};
use crate::units::Time;

/// BIC.
pub struct Bic;

const SOURCE: &str = "Xu, Harfoush, Rhee, INFOCOM 2004";

parameters! {
    /// What a scenario can set.
    struct Params {
        /// Factor by which a loss multiplies the window.
        beta: Fraction = 0.875, in 0.1..=0.99, SOURCE;
        /// Maximum growth per round trip.
        s_max: Packets = 32.0, in 1.0..=1e6, SOURCE;
        /// The search ends when a step is smaller than this.
        s_min: Packets = 0.01, in 1e-6..=1.0, SOURCE;
        /// Windows below this behave as Reno's.
        low_window: Packets = 14.0, in 1.0..=1e6, SOURCE;
        /// A flow that is reduced below its last maximum aims lower.
        fast_convergence: Flag = true, SOURCE;
        /// Start, growth and idle times.
        window: WindowParams = WindowParams::DEFAULT;
    }
}

impl Protocol for Bic {
    const INFO: Info = Info {
        name: "bic",
        summary: "BIC: binary search for the window, between its values before and after the last reduction",
        source: "Xu, Harfoush, Rhee, INFOCOM 2004",
        params: Params::PARAMS,
    };

    fn sender(&self, init: &SenderInit<'_>) -> Box<AnySender> {
        let params = Params::of(init.values);
        Box::new(BicSender {
            beta: params.beta,
            s_max: params.s_max,
            s_min: params.s_min,
            low_window: params.low_window,
            fast_convergence: params.fast_convergence,
            window: Window::of(init, params.window),
            round: Round::default(),
            max: 0.0,
            probe_step: 1.0,
            step: 1.0,
        })
    }
}

struct BicSender {
    beta: f64,
    s_max: f64,
    s_min: f64,
    low_window: f64,
    fast_convergence: bool,
    window: Window,
    round: Round,
    /// The window is searched up to this maximum, and beyond it once it is reached.
    max: f64,
    /// The next step beyond the maximum.
    probe_step: f64,
    /// Growth in this round trip, segments.
    step: f64,
}

impl BicSender {
    /// Segments for the next round trip.
    fn next_step(&mut self) -> f64 {
        if self.window.cwnd < self.low_window {
            return 1.0;
        }
        let half_way = (self.max - self.window.cwnd) / 2.0;
        if half_way >= self.s_min {
            return half_way.min(self.s_max);
        }
        let step = self.probe_step;
        self.probe_step = (2.0 * step).min(self.s_max);
        step
    }
}

impl Sender for BicSender {
    fn allowance(&self) -> Allowance {
        Allowance { cwnd: self.window.cwnd, pacing: None }
    }

    fn on_ack(&mut self, ack: &Ack<'_>) {
        if !self.window.grows(ack) || self.window.slow_start(ack.newly_acked, 1.0) {
            return;
        }
        if self.round.ends(ack) {
            self.step = self.next_step();
        }
        self.window.rise(self.step, ack.newly_acked);
    }

    fn on_idle(&mut self, now: Time, idle: Time, timeout: Time) {
        self.window.on_idle(now, idle, timeout);
    }

    fn on_loss(&mut self, loss: &Loss) {
        let w = loss.in_flight as f64;
        if !loss.repeated {
            let converge = self.fast_convergence && w < self.max;
            self.max = if converge { w * (1.0 + self.beta) / 2.0 } else { w };
        }
        self.window.reduce(loss, if w < self.low_window { 0.5 } else { self.beta });
        self.probe_step = 1.0;
        self.step = 0.0;
    }

    fn threshold(&self) -> f64 {
        self.window.ssthresh
    }
    fn on_undo(&mut self, undo: &Undo) {
        self.window.undo(undo);
    }

    fn probe(&self, put: Probe<'_>) {
        self.window.probe(put);
        put("max_win", self.max);
        put("step", self.step);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::LossKind;
    use crate::testing;

    fn sender() -> Box<AnySender> {
        testing::sender(&Bic, 3.0, &[])
    }
    fn lose(s: &mut AnySender, in_flight: u32) {
        s.on_loss(&testing::loss(Time::ZERO, LossKind::Duplicates, in_flight));
    }
    /// Windows at the ends of `n` round trips, from segment `from` on.
    fn rounds(s: &mut AnySender, from: &mut u32, n: u32) -> alloc::vec::Vec<f64> {
        (0..n).map(|_| testing::round(s, from, Time::millis(100))).collect()
    }

    /// From 875 towards 1000: 32 and then half of the rest (93, 61, 30.5, 15.25, ...) each round trip, until the step is
    /// below .01; then 1, 2, 4, 8, 16, 32, 32 beyond. A loss of 1000: 125 / 2 > 32, so the first two steps are linear.
    #[test]
    fn binary_search_and_max_probing() {
        let mut s = sender();
        lose(&mut *s, 1000);
        assert_eq!(s.allowance().cwnd, 875.0);
        let mut from = 0;
        let searched = rounds(&mut *s, &mut from, 12);
        let mut gap = 125.0_f64;
        for (i, w) in searched.iter().enumerate() {
            gap -= (gap / 2.0).min(32.0);
            // A little less than the step, since the window grows within the round trip.
            assert!((1000.0 - w - gap).abs() < 0.05 * (125.0 - gap), "round {i}: {w}, expected {}", 1000.0 - gap);
        }
        assert!((1000.0 - searched[11]) < 0.2, "125 -> 93 -> 61 -> 30.5, then nine halvings: {}", searched[11]);
        let more = rounds(&mut *s, &mut from, 12);
        let steps: alloc::vec::Vec<f64> = more.windows(2).map(|w| w[1] - w[0]).collect();
        let probing = steps.iter().position(|s| *s > 0.5).unwrap();
        for (step, expected) in steps[probing..].iter().zip([1.0, 2.0, 4.0, 8.0, 16.0, 32.0]) {
            assert!((step / expected - 1.0).abs() < 0.04, "{step} instead of {expected}");
        }
    }

    #[test]
    fn fast_convergence_and_small_windows() {
        let mut s = sender();
        lose(&mut *s, 1000);
        lose(&mut *s, 800);
        let max = testing::probed(|put| s.probe(put), "max_win");
        assert_eq!((max, s.allowance().cwnd), (750.0, 700.0), "800 (1 + .875) / 2, 800 * .875");
        lose(&mut *s, 12);
        assert_eq!(s.allowance().cwnd, 6.0);
        let mut from = 0;
        let w = rounds(&mut *s, &mut from, 3);
        assert!((w[2] - 9.0).abs() < 0.5, "a segment a round trip: {w:?}");
    }
}

//! HighSpeed TCP (S. Floyd, RFC 3649): a larger window grows faster and is reduced less by a loss.
//!
//! Standard TCP needs a loss rate of 1e-10 to sustain 10 Gbit/s over 100 ms. HighSpeed TCP keeps TCP's response up to
//! 38 segments, and above follows a flatter one, a straight line in log-log scale from 38 segments at a loss rate of
//! 1e-3 to 83000 at 1e-7. The increase a(w) per round trip and the decrease b(w) yield this line: b falls from a half
//! to a tenth with the logarithm of the window, and a follows from it. Apart from these two it is standard TCP.
//!
//! | symbol | field | unit | value | source |
//! | --- | --- | --- | --- | --- |
//! | w | `window.cwnd` | segments | | RFC 3649 section 5 |
//! | Low_Window | `low_window` | segments | 38 | section 5 |
//! | High_Window | `high_window` | segments | 83000 | section 5 |
//! | Low_P, High_P | `low_p`, `high_p` | | 1e-3, 1e-7 | section 5 |
//! | High_Decrease | `high_decrease` | | 0.1 | section 5 |
//! | a(w) | [`Response::increase`] | segments per RTT | w^2 p(w) 2 b(w) / (2 - b(w)) | section 5 |
//! | b(w) | [`Response::decrease`] | | | section 5 |
//! | p(w) | [`Response::loss_rate`] | | | section 5 |
//!
//! Deviations:
//! 1. a(w) is computed once per round trip; RFC 3649 uses a table.
//! 2. a(w) is at least 1: just above Low_Window the equations give .96, which the RFC's table rounds.
//! 3. Above High_Window b(w) stays at High_Decrease.
//! 4. Limited slow start (RFC 3742), which the RFC advises, is left out: slow start is that of RFC 5681.

use alloc::boxed::Box;

use crate::api::{Ack, Allowance, AnySender, Loss, Probe, Protocol, Sender, SenderInit, Undo};
use crate::params::{Fraction, Info, Packets, Values, parameters};
use crate::protocols::common::window::{Round, Window, WindowParams};
use crate::units::Time;

/// HighSpeed TCP.
pub struct Hstcp;

parameters! {
    /// What a scenario can set.
    struct Params {
        /// Up to this window it is standard TCP.
        low_window: Packets = 38.0, in 2.0..=1e6, "RFC 3649 section 5";
        /// The window at the loss rate `high_p`.
        high_window: Packets = 83_000.0, in 2.0..=1e9, "RFC 3649 section 5";
        /// Loss rate that keeps a window of `low_window`.
        low_p: Fraction = 1e-3, in 1e-12..=1.0, "RFC 3649 section 5";
        /// Loss rate that keeps a window of `high_window`.
        high_p: Fraction = 1e-7, in 1e-12..=1.0, "RFC 3649 section 5";
        /// Decrease b(w) at `high_window`.
        high_decrease: Fraction = 0.1, in 0.01..=0.5, "RFC 3649 section 5";
        /// Start, growth and idle times.
        window: WindowParams = WindowParams::DEFAULT;
    }
}

impl Protocol for Hstcp {
    const INFO: Info = Info {
        name: "hstcp",
        summary: "HighSpeed TCP: large windows grow faster and are reduced less",
        source: "RFC 3649",
        params: Params::PARAMS,
    };

    fn sender(&self, init: &SenderInit<'_>) -> Box<AnySender> {
        Box::new(HstcpSender {
            response: Response::new(init.values),
            window: Window::of(init, Params::of(init.values).window),
            round: Round::default(),
            increase: 1.0,
        })
    }
}

/// The response function of RFC 3649 section 5.
pub struct Response {
    low_window: f64,
    high_window: f64,
    low_p: f64,
    high_decrease: f64,
    /// log(High_Window / Low_Window), and 1/S: the slope of log p over log w.
    span: f64,
    slope: f64,
}

impl Response {
    fn new(values: &Values) -> Response {
        let params = Params::of(values);
        let low_window = params.low_window;
        let high_window = params.high_window.max(1.01 * low_window);
        let span = libm::log(high_window / low_window);
        let slope = libm::log(params.high_p / params.low_p) / span;
        Response { low_window, high_window, low_p: params.low_p, high_decrease: params.high_decrease, span, slope }
    }
    /// The loss rate at which the window is `w` segments.
    pub fn loss_rate(&self, w: f64) -> f64 {
        self.low_p * libm::pow(w / self.low_window, self.slope)
    }
    /// The share of the window that a loss removes.
    pub fn decrease(&self, w: f64) -> f64 {
        let w = w.clamp(self.low_window, self.high_window);
        0.5 + (self.high_decrease - 0.5) * libm::log(w / self.low_window) / self.span
    }
    /// Growth per round trip, segments.
    pub fn increase(&self, w: f64) -> f64 {
        if w <= self.low_window {
            return 1.0;
        }
        let b = self.decrease(w);
        (w * w * self.loss_rate(w) * (2.0 * b / (2.0 - b))).max(1.0)
    }
}

struct HstcpSender {
    response: Response,
    window: Window,
    round: Round,
    /// a(w) of this round trip.
    increase: f64,
}

impl Sender for HstcpSender {
    fn allowance(&self) -> Allowance {
        Allowance { cwnd: self.window.cwnd, pacing: None }
    }

    fn on_ack(&mut self, ack: &Ack<'_>) {
        if !self.window.grows(ack) || self.window.slow_start(ack.newly_acked, 1.0) {
            return;
        }
        if self.round.ends(ack) {
            self.increase = self.response.increase(self.window.cwnd);
        }
        self.window.rise(self.increase, ack.newly_acked);
    }

    fn on_idle(&mut self, now: Time, idle: Time, timeout: Time) {
        self.window.on_idle(now, idle, timeout);
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.window.reduce(loss, 1.0 - self.response.decrease(loss.in_flight as f64));
        self.increase = self.response.increase(self.window.cwnd);
    }

    fn threshold(&self) -> f64 {
        self.window.ssthresh
    }
    fn on_undo(&mut self, undo: &Undo) {
        self.window.undo(undo);
    }

    fn probe(&self, put: Probe<'_>) {
        self.window.probe(put);
        put("increase", self.increase);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::LossKind;
    use crate::testing;

    /// RFC 3649 appendix B: windows, increases, decreases.
    #[test]
    fn the_table_of_the_rfc() {
        let response = Response::new(&Values::default());
        for (w, a, b) in [
            (38.0, 1.0, 0.50),
            (118.0, 2.0, 0.44),
            (221.0, 3.0, 0.41),
            (1058.0, 8.1, 0.33),
            (10_661.0, 30.6, 0.21),
            (83_333.0, 72.6, 0.10),
        ] {
            let (got_a, got_b) = (response.increase(w), response.decrease(w));
            assert!((got_a / a - 1.0).abs() < 0.02, "a({w}) = {got_a}, table {a}");
            assert!((got_b - b).abs() < 0.006, "b({w}) = {got_b}, table {b}");
        }
        // 38 segments at 1e-3, 83000 at 1e-7: the two ends of the line.
        assert!((response.loss_rate(38.0) / 1e-3 - 1.0).abs() < 1e-12);
        assert!((response.loss_rate(83_000.0) / 1e-7 - 1.0).abs() < 1e-9);
        assert_eq!((response.increase(20.0), response.decrease(20.0)), (1.0, 0.5));
    }

    #[test]
    fn a_loss_takes_b_and_a_round_trip_gives_a() {
        let mut s = testing::sender(&Hstcp, 3.0, &[]);
        s.on_loss(&testing::loss(Time::ZERO, LossKind::Duplicates, 1058));
        // b(1058) = .327: 711.9 are left; a(711.9) = 6.25.
        let w = s.allowance().cwnd;
        assert!((w - 711.9).abs() < 0.5, "{w}");
        let (mut cumulative, mut last) = (0, w);
        for _ in 0..3 {
            let gained = testing::round(&mut *s, &mut cumulative, Time::millis(100)) - last;
            assert!((gained - 6.3).abs() < 0.15, "{gained} a round trip");
            last = s.allowance().cwnd;
        }
        s.on_loss(&testing::loss(Time::ZERO, LossKind::Timeout, 1000));
        assert_eq!(s.allowance().cwnd, 1.0);
    }
}

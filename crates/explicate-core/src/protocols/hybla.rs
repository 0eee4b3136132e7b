//! TCP Hybla (C. Caini, R. Firrincieli, "TCP Hybla: a TCP enhancement for heterogeneous networks", International
//! Journal of Satellite Communications and Networking 22, 2004): flows with long round trips grow as fast as one of
//! 25 ms.
//!
//! A window that grows once per round trip grows slowly where round trips are long, and its rate, window over
//! round-trip time, still more slowly. Hybla follows a reference connection of 25 ms: with rho the ratio of the
//! round-trip times, the window gains rho times as fast per second and aims rho times as high. Losses are treated as
//! in TCP. Since large windows are bursty and lose many packets at once, the authors recommend SACK, time stamps and
//! pacing.
//!
//! | symbol | field | unit | value | source |
//! | --- | --- | --- | --- | --- |
//! | RTT0 | `rtt0` | s | 0.025 | the paper |
//! | rho | `rho` | | max(RTT / RTT0, 1) | the paper |
//! | slow start | `doubling` | segments per ACK | 2^rho - 1 | the paper |
//! | congestion avoidance | `per_rtt` | segments per RTT | rho^2 | the paper |
//! | gamma | `ssthresh` | segments | rho times the reference's | the paper |
//!
//! Deviations:
//! 1. RTT is the minimum measured: with the mean, rho would grow with the queue that its own growth causes.
//! 2. The reference connection's first threshold is 65535 bytes, that is 45 segments of 1460 (RFC 2001), since 2^rho - 1
//!    segments for each acknowledgement overshoot by as much. The paper estimates the bandwidth at the start instead (J. Hoe).
//! 3. The exponent is at most 16.
//! 4. Pacing is the flow's (`paced`, on in the preset).

use alloc::boxed::Box;

use crate::api::{Ack, Allowance, AnySender, Loss, Probe, Protocol, Sender, SenderInit, Undo};
use crate::params::{Info, Packets, Seconds, parameters};
use crate::protocols::common::window::{Window, WindowParams};
use crate::units::Time;

/// TCP Hybla.
pub struct Hybla;

const SOURCE: &str = "Caini, Firrincieli 2004";

parameters! {
    /// What a scenario can set.
    struct Params {
        /// Round-trip time of the reference connection.
        rtt0: Seconds = 0.025, in 1e-4..=10.0, SOURCE;
        /// First slow start threshold of the reference connection; a flow's is rho times that.
        initial_ssthresh: Packets = 45.0, in 2.0..=1e9, "RFC 2001 section 1: 65535 bytes";
        /// Start, growth and idle times.
        window: WindowParams = WindowParams::DEFAULT;
    }
}

impl Protocol for Hybla {
    const INFO: Info = Info {
        name: "hybla",
        summary: "TCP Hybla: the window grows as if the round-trip time were 25 ms, for satellite paths",
        source: "Caini, Firrincieli, Int. J. Satellite Communications and Networking 2004",
        params: Params::PARAMS,
    };

    fn sender(&self, init: &SenderInit<'_>) -> Box<AnySender> {
        Box::new(HyblaSender {
            rtt0: Params::of(init.values).rtt0,
            initial_ssthresh: Params::of(init.values).initial_ssthresh,
            initial_window: init.initial_window,
            window: Window::of(init, Params::of(init.values).window),
            least: Time::NEVER,
            rho: 1.0,
            doubling: 1.0,
            per_rtt: 1.0,
        })
    }
}

struct HyblaSender {
    rtt0: f64,
    initial_ssthresh: f64,
    initial_window: f64,
    window: Window,
    /// The least round trip seen.
    least: Time,
    rho: f64,
    /// Growth in slow start, segments per acknowledgement, and in congestion avoidance, segments per round trip.
    doubling: f64,
    per_rtt: f64,
}

impl HyblaSender {
    fn take(&mut self, rtt: Time) {
        self.least = rtt;
        self.rho = (rtt.as_secs_f64() / self.rtt0).max(1.0);
        self.doubling = libm::exp2(self.rho.min(16.0)) - 1.0;
        self.per_rtt = self.rho * self.rho;
    }
}

impl Sender for HyblaSender {
    fn allowance(&self) -> Allowance {
        Allowance { cwnd: self.window.cwnd, pacing: None }
    }

    fn on_start(&mut self, _now: Time, rtt: Time) {
        self.take(rtt);
        self.window.cwnd = self.rho * self.initial_window;
        self.window.ssthresh = self.rho * self.initial_ssthresh;
    }

    fn on_ack(&mut self, ack: &Ack<'_>) {
        if ack.rtt < self.least {
            self.take(ack.rtt);
        }
        if !self.window.grows(ack) {
            return;
        }
        let window = &mut self.window;
        if window.cwnd < window.ssthresh {
            window.cwnd = (window.cwnd + self.doubling).min(window.ssthresh);
        } else {
            window.rise(self.per_rtt, ack.newly_acked);
        }
    }

    fn on_idle(&mut self, now: Time, idle: Time, timeout: Time) {
        self.window.on_idle(now, idle, timeout);
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.window.reduce(loss, 0.5);
    }

    fn threshold(&self) -> f64 {
        self.window.ssthresh
    }
    fn on_undo(&mut self, undo: &Undo) {
        self.window.undo(undo);
    }

    fn probe(&self, put: Probe<'_>) {
        self.window.probe(put);
        put("rho", self.rho);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::LossKind;
    use crate::testing;
    use crate::wire::Congestion;

    fn sender(rtt: Time) -> Box<AnySender> {
        let mut s = testing::sender(&Hybla, 2.0, &[]);
        s.on_start(Time::ZERO, rtt);
        s
    }
    fn ack(s: &mut AnySender, rtt: Time) {
        s.on_ack(&Ack { rtt, ..testing::ack(Time::ZERO, &Congestion::NONE) });
    }

    /// 75 ms are three times 25 ms: 2^3 - 1 = 7 segments per acknowledgement, then 9 per round trip.
    #[test]
    fn rho_three() {
        let rtt = Time::millis(75);
        let mut s = sender(rtt);
        assert!((s.allowance().cwnd - 6.0).abs() < 1e-9);
        ack(&mut *s, rtt);
        assert!((s.allowance().cwnd - 13.0).abs() < 1e-9);
        (0..20).for_each(|_| ack(&mut *s, rtt));
        // The threshold is 135; the reference connection's is 45. The last two acknowledgements are beyond it.
        let expected = 135.0 + 9.0 / 135.0 + 9.0 / (135.0 + 9.0 / 135.0);
        assert!((s.allowance().cwnd - expected).abs() < 1e-9, "{} {expected}", s.allowance().cwnd);
        s.on_loss(&testing::loss(Time::ZERO, LossKind::Duplicates, 300));
        assert_eq!(s.allowance().cwnd, 150.0);
        (0..150).for_each(|_| ack(&mut *s, rtt));
        assert!((s.allowance().cwnd - 159.0).abs() < 0.3, "{}", s.allowance().cwnd);
    }

    /// Short paths are TCP's; a shorter round trip than the first lowers rho, a longer one does not raise it.
    #[test]
    fn rho_follows_the_least_round_trip() {
        let mut s = sender(Time::millis(5));
        ack(&mut *s, Time::millis(5));
        assert_eq!(s.allowance().cwnd, 3.0);
        let rho = |s: &AnySender| testing::probed(|put| s.probe(put), "rho");
        let mut s = sender(Time::millis(100));
        ack(&mut *s, Time::millis(400));
        assert_eq!(rho(&*s), 4.0);
        ack(&mut *s, Time::millis(50));
        assert_eq!(rho(&*s), 2.0);
        let mut s = sender(Time::secs(60));
        (0..100).for_each(|_| ack(&mut *s, Time::secs(60)));
        assert!(s.allowance().cwnd.is_finite());
    }
}

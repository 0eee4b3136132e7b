//! TCP Westwood+ (S. Mascolo, C. Casetti, M. Gerla, M. Y. Sanadidi, R. Wang, MobiCom 2001; L. A. Grieco, S. Mascolo,
//! "Performance evaluation and comparison of Westwood+, New Reno and Vegas TCP congestion control", ACM CCR 34(2), 2004).
//!
//! Halving the window after a loss is a guess at the capacity of the path. Westwood measures it: acknowledgements
//! show how fast data arrive, and after a loss the window becomes what that rate needs to fill the path without a
//! queue, bandwidth times the least round-trip time. A random loss on a radio link then costs little, while a loss
//! from a full queue empties the queue. Westwood+ counts arrivals over a round trip before it takes a sample, since a
//! sample per acknowledgement overestimates where acknowledgements are compressed. Growth is TCP's.
//!
//! | symbol | field | unit | value | source |
//! | --- | --- | --- | --- | --- |
//! | d_k | `arrived` | segments | | CCR 2004 |
//! | Delta_k | from `began` | s | one RTT, at least 50 ms | CCR 2004; Linux for the least |
//! | BWE | `bwe` | segments/s | | CCR 2004 |
//! | alpha | `alpha` | | 0.9 | CCR 2004 |
//! | RTTmin | `rtt_min` | time | | CCR 2004 |
//! | AckedCount | `Arrivals` | | | MobiCom 2001 |
//!
//! Deviations:
//! 1. The filter starts with its first sample, and an interval in which the window was never full gives no sample: an
//!    idle application does not measure the path.
//! 2. A mark is treated like a loss.
//! 3. Duplicates of needless retransmissions are given back (`Arrivals`); in Linux they stay counted.

use alloc::boxed::Box;

use crate::api::{Ack, Allowance, AnySender, Loss, Probe, Protocol, Sender, SenderInit, Undo, measured_ms};
use crate::params::{Fraction, Info, Seconds, parameters};
use crate::protocols::common::delivery::Arrivals;
use crate::protocols::common::window::{Window, WindowParams};
use crate::units::Time;

/// TCP Westwood+.
pub struct Westwood;

parameters! {
    /// What a scenario can set.
    struct Params {
        /// Weight of the old estimate of the bandwidth.
        alpha: Fraction = 0.9, in 0.0..=0.999, "Grieco, Mascolo, CCR 2004";
        /// A sample lasts a round trip, but at least this time.
        min_interval: Seconds = 0.05, in 1e-4..=10.0, "Linux tcp_westwood";
        /// Start, growth and idle times.
        window: WindowParams = WindowParams::DEFAULT;
    }
}

impl Protocol for Westwood {
    const INFO: Info = Info {
        name: "westwood",
        summary: "TCP Westwood+: a loss reduces the window to the measured bandwidth times the least round-trip time",
        source: "Mascolo et al., MobiCom 2001; Grieco, Mascolo, ACM CCR 2004",
        params: Params::PARAMS,
    };

    fn sender(&self, init: &SenderInit<'_>) -> Box<AnySender> {
        Box::new(WestwoodSender {
            alpha: Params::of(init.values).alpha,
            min_interval: Time::from_secs_f64(Params::of(init.values).min_interval),
            window: Window::of(init, Params::of(init.values).window),
            arrivals: Arrivals::default(),
            arrived: 0,
            used: false,
            began: Time::ZERO,
            bwe: 0.0,
            rtt_min: Time::NEVER,
        })
    }
}

struct WestwoodSender {
    alpha: f64,
    min_interval: Time,
    window: Window,
    arrivals: Arrivals,
    /// Segments that arrived in this interval.
    arrived: u64,
    /// The window was full in this interval.
    used: bool,
    began: Time,
    /// Segments/s; zero while unknown.
    bwe: f64,
    rtt_min: Time,
}

impl WestwoodSender {
    /// Takes a sample if the interval is over.
    fn measure(&mut self, ack: &Ack<'_>) {
        self.rtt_min = self.rtt_min.min(ack.rtt);
        self.arrived += self.arrivals.count(ack) as u64;
        self.used |= !ack.app_limited;
        let interval = ack.now.since(self.began);
        if interval < ack.rtt.max(self.min_interval) {
            return;
        }
        if self.used {
            let sample = self.arrived as f64 / interval.as_secs_f64();
            self.bwe = if self.bwe == 0.0 { sample } else { self.alpha * self.bwe + (1.0 - self.alpha) * sample };
        }
        (self.arrived, self.began, self.used) = (0, ack.now, false);
    }
}

impl Sender for WestwoodSender {
    fn allowance(&self) -> Allowance {
        Allowance { cwnd: self.window.cwnd, pacing: None }
    }

    fn on_start(&mut self, now: Time, _rtt: Time) {
        self.began = now;
    }

    fn on_ack(&mut self, ack: &Ack<'_>) {
        self.measure(ack);
        if self.window.grows(ack) && !self.window.slow_start(ack.newly_acked, 1.0) {
            self.window.rise(1.0, ack.newly_acked);
        }
    }

    fn on_idle(&mut self, now: Time, idle: Time, timeout: Time) {
        self.window.on_idle(now, idle, timeout);
    }

    fn on_loss(&mut self, loss: &Loss) {
        if self.bwe == 0.0 {
            return self.window.reduce(loss, 0.5);
        }
        self.window.reduce_to(loss, self.bwe * self.rtt_min.as_secs_f64());
    }

    fn threshold(&self) -> f64 {
        self.window.ssthresh
    }
    fn on_undo(&mut self, undo: &Undo) {
        self.window.undo(undo);
    }

    fn probe(&self, put: Probe<'_>) {
        self.window.probe(put);
        put("bwe_segments_per_s", self.bwe);
        put("rtt_min_ms", measured_ms(self.rtt_min));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::LossKind;
    use crate::testing;
    use crate::wire::Congestion;

    fn sender() -> Box<AnySender> {
        let mut s = testing::sender(&Westwood, 3.0, &[]);
        s.on_start(Time::ZERO, Time::millis(80));
        s
    }
    /// One acknowledgement per `gap` from `from` to `until`; the least round-trip time is 80 ms, the present one 100
    /// ms.
    fn acks(s: &mut AnySender, from: Time, until: Time, gap: Time) {
        let mut now = from + gap;
        while now <= until {
            let rtt = if now < Time::millis(200) { Time::millis(80) } else { Time::millis(100) };
            s.on_ack(&Ack { rtt, recovering: true, ..testing::ack(now, &Congestion::NONE) });
            now += gap;
        }
    }

    /// A segment a millisecond for 3 s, least round trip 80 ms: a loss leaves 1000/s * 80 ms = 80 segments.
    #[test]
    fn a_loss_leaves_bandwidth_times_the_least_round_trip() {
        let mut s = sender();
        acks(&mut *s, Time::ZERO, Time::secs(3), Time::millis(1));
        for (kind, cwnd) in [(LossKind::Duplicates, 80.0), (LossKind::Mark, 80.0), (LossKind::Timeout, 1.0)] {
            s.on_loss(&testing::loss(Time::secs(3), kind, 500));
            assert!((s.allowance().cwnd - cwnd).abs() < 1e-6, "{kind:?} {}", s.allowance().cwnd);
        }
        // Five times slower from 3 s on. Samples end at 3.06 s, with 40 + 12 segments in 100 ms, and nine times more.
        acks(&mut *s, Time::secs(3), Time::secs(4), Time::millis(5));
        s.on_loss(&testing::loss(Time::secs(4), LossKind::Duplicates, 500));
        let first = 0.9 * 1000.0 + 0.1 * 520.0;
        let expected = 0.08 * (200.0 + (first - 200.0) * libm::pow(0.9, 9.0));
        assert!((s.allowance().cwnd - expected).abs() < 0.01, "{} {expected}", s.allowance().cwnd);
    }

    #[test]
    fn without_a_sample_it_halves() {
        let mut s = sender();
        s.on_loss(&testing::loss(Time::ZERO, LossKind::Duplicates, 20));
        assert_eq!(s.allowance().cwnd, 10.0);
    }
}

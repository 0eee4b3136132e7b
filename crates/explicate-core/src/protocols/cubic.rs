//! CUBIC (RFC 9438): the window grows as a cubic function of the time since the last reduction.
//!
//! After a reduction the window first returns quickly to where the loss occurred, stays there, and then probes beyond
//! it with increasing speed. Growth depends on time, not on round trips, so flows with different RTTs grow alike.
//! Where this is slower than Reno (small windows, short paths), an estimate of Reno's window is used. The cube root
//! that places the plateau is computed once per reduction; an acknowledgement costs one division.
//!
//! | symbol | field | unit | value | source |
//! | --- | --- | --- | --- | --- |
//! | beta_cubic | `beta` | | 0.7 | RFC 9438 section 4.6 |
//! | C | `c` | segments/s^3 | 0.4 | section 5 |
//! | alpha_cubic | `alpha` | segments per RTT | 3(1-beta)/(1+beta), then 1 | section 4.3 |
//! | W_max | `w_max` | segments | | section 4.1.2 |
//! | K | `k` | s | cbrt((W_max - cwnd_epoch)/C) | section 4.2, equation 2 |
//! | W_cubic(t) | `w_cubic` | segments | C(t-K)^3 + W_max | section 4.2, equation 1 |
//! | W_est | `w_est` | segments | | section 4.3, equation 4 |
//! | cwnd_prior | `prior` | segments | | section 4.1.2 |
//! | t_epoch | `epoch` | time | | section 4.1.2 |
//!
//! `variant` selects RFC 9438 or what Linux 6.18 does; start and idle times are parameters of their own.
//!
//! | | `rfc` | `linux` |
//! | --- | --- | --- |
//! | a reduction multiplies | the segments in flight by 0.7 | the window by 717/1024 |
//! | slow start counts per acknowledgement | one segment | all that it covers |
//! | the curve is aimed ahead by | the smoothed round-trip time | the least round-trip time |
//! | at most per round trip | half a window | half a window |
//! | before the first reduction | the convex part from the present window | the same, or a twentieth of a window per round trip if that is more |
//! | Reno's window | alpha per round trip, 1 above the window of the last reduction | 8/15 of a segment per round trip |
//! | after a timeout | the threshold is the plateau | no plateau, as before the first reduction |
//! | a timeout within a repair | reduces again | keeps the threshold |
//! | window | fractions of segments | whole segments |
//! | time | exact | milliseconds |
//!
//! Deviations:
//! 1. Without `hystart`, slow start ends with a loss or mark, as in RFC 5681.
//! 2. The epoch begins with the first acknowledgement after the repair of a loss, not with the loss.
//! 3. Spurious reductions are not undone (section 4.9).
//! 4. The window counts segments. It never falls below one, and below two only by a mark or timeout.

use alloc::boxed::Box;

use crate::api::{Ack, Allowance, AnySender, Loss, LossKind, Probe, Protocol, Sender, SenderInit, Sent, Undo};
use crate::params::{Flag, Fraction, Info, Number, choices, parameters};
use crate::protocols::common::usage::counts;
use crate::protocols::common::window::{Window, WindowParams};
use crate::units::Time;
use crate::wire::Packet;

mod linux;

/// CUBIC.
pub struct Cubic;

choices! {
    /// Which CUBIC.
    enum Variant { Rfc = "rfc", Linux = "linux" }
}

parameters! {
    /// What a scenario can set.
    struct Params {
        /// RFC 9438, or what Linux computes.
        variant: Variant = Variant::Rfc, "RFC 9438; Linux 6.18, tcp_cubic.c";
        /// Factor by which a reduction multiplies the window.
        beta: Fraction = 0.7, in 0.1..=0.99, "RFC 9438 section 4.6";
        /// Scale of the cubic, segments/s^3.
        C: Number = 0.4, in 1e-6..=1e6, "RFC 9438 section 5";
        /// A flow that is reduced below its last plateau aims lower, which leaves room for new flows.
        fast_convergence: Flag = true, "RFC 9438 section 4.7";
        /// Start, growth and idle times.
        window: WindowParams = WindowParams::DEFAULT;
    }
}

impl Protocol for Cubic {
    const INFO: Info = Info {
        name: "cubic",
        summary: "CUBIC: the window grows with the time since the last loss, for fast long paths",
        source: "RFC 9438",
        params: Params::PARAMS,
    };

    fn sender(&self, init: &SenderInit<'_>) -> Box<AnySender> {
        match Params::of(init.values).variant {
            Variant::Rfc => Box::new(CubicSender::new(init)),
            Variant::Linux => Box::new(linux::LinuxSender::new(init)),
        }
    }
}

struct CubicSender {
    beta: f64,
    c: f64,
    fast_convergence: bool,
    window: Window,
    w_max: f64,
    /// Seconds.
    k: f64,
    w_est: f64,
    alpha: f64,
    prior: f64,
    /// When the present stage of congestion avoidance began; `None` before it.
    epoch: Option<Time>,
    /// No plateau is ahead: the epoch starts at one (after a timeout, or before any loss).
    level: bool,
    /// The last acknowledgement or transmission. Time from it to the next window-limited one does not count as growth
    /// time.
    last: Time,
}

impl CubicSender {
    fn new(init: &SenderInit<'_>) -> CubicSender {
        let params = Params::of(init.values);
        CubicSender {
            beta: params.beta,
            c: params.C,
            fast_convergence: params.fast_convergence,
            window: Window::of(init, params.window),
            w_max: 0.0,
            k: 0.0,
            w_est: 0.0,
            alpha: 0.0,
            prior: 0.0,
            epoch: None,
            level: true,
            last: Time::ZERO,
        }
    }

    /// Begins a stage of congestion avoidance (section 4.2, and 4.8 after a timeout).
    fn begin(&mut self, now: Time) {
        if self.level || self.w_max <= self.window.cwnd {
            self.w_max = self.window.cwnd;
            self.k = 0.0;
        } else {
            self.k = libm::cbrt((self.w_max - self.window.cwnd) / self.c);
        }
        self.w_est = self.window.cwnd;
        self.alpha = 3.0 * (1.0 - self.beta) / (1.0 + self.beta);
        self.epoch = Some(now);
    }

    /// Equation 1, `t` seconds after the epoch.
    fn w_cubic(&self, t: f64) -> f64 {
        let d = t - self.k;
        self.c * (d * d * d) + self.w_max
    }

    /// An acknowledgement of `n` segments in congestion avoidance.
    fn avoid(&mut self, n: f64, t: f64, rtt: f64) {
        let per_window = n / self.window.cwnd;
        if self.w_est >= self.prior {
            self.alpha = 1.0;
        }
        self.w_est += self.alpha * per_window;
        if self.w_cubic(t) < self.w_est {
            self.window.cwnd = self.window.cwnd.max(self.w_est); // Reno-friendly region, section 4.3
            return;
        }
        // Sections 4.4 and 4.5: towards the value of the cubic one RTT ahead.
        let target = self.w_cubic(t + rtt).clamp(self.window.cwnd, 1.5 * self.window.cwnd);
        self.window.cwnd += (target - self.window.cwnd) * per_window.min(1.0);
    }

    /// The time since `last` was not limited by the window: the epoch is shifted by it (section 5.8).
    fn pause(&mut self, now: Time) {
        if let Some(epoch) = &mut self.epoch {
            *epoch += now.since(self.last);
        }
        self.last = now;
    }
}

impl Sender for CubicSender {
    fn allowance(&self) -> Allowance {
        Allowance { cwnd: self.window.cwnd, pacing: None }
    }

    fn on_idle(&mut self, now: Time, idle: Time, timeout: Time) {
        self.window.on_idle(now, idle, timeout);
    }

    fn on_send(&mut self, _packet: &mut Packet, sent: &Sent) {
        if sent.in_flight == 0 {
            self.pause(sent.now); // the flow was idle
        }
    }

    fn on_ack(&mut self, ack: &Ack<'_>) {
        if !self.window.grows(ack) {
            if counts(ack) {
                self.pause(ack.now); // the window was not the limit
            }
            return;
        }
        self.last = ack.now;
        let n = ack.newly_acked as f64;
        if self.window.slow_start(ack.newly_acked, 1.0) {
            return;
        }
        if self.epoch.is_none() {
            self.begin(ack.now);
        }
        let t = self.epoch.map_or(0.0, |epoch| ack.now.since(epoch).as_secs_f64());
        self.avoid(n, t, ack.srtt.as_secs_f64());
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.epoch = None;
        self.level = loss.kind == LossKind::Timeout;
        if !loss.repeated {
            self.prior = self.window.cwnd;
            let converge = self.fast_convergence && self.window.cwnd < self.w_max;
            self.w_max = if converge { self.window.cwnd * (0.5 * (1.0 + self.beta)) } else { self.window.cwnd };
            self.window.ssthresh = loss.in_flight as f64 * self.beta;
        }
        self.window.cwnd = match loss.kind {
            LossKind::Timeout => 1.0,
            LossKind::Mark => self.window.ssthresh.max(1.0),
            LossKind::Duplicates => self.window.ssthresh.max(2.0),
        };
        self.window.ssthresh = self.window.ssthresh.max(2.0);
        if self.level {
            self.window.forget();
        }
    }

    fn threshold(&self) -> f64 {
        self.window.ssthresh
    }
    fn on_undo(&mut self, undo: &Undo) {
        self.window.undo(undo);
    }

    fn probe(&self, put: Probe<'_>) {
        self.window.probe(put);
        put("w_max", self.w_max);
        put("k_s", self.k);
        put("w_est", self.w_est);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::Values;
    use crate::testing;
    use crate::units::Rate;
    use crate::wire::Congestion;

    fn sender(window: f64) -> CubicSender {
        let values = Values::default();
        let init = SenderInit { values: &values, packet: 1500.0, initial_window: window, interface: Rate::mbps(1000) };
        CubicSender::new(&init)
    }
    fn loss(kind: LossKind, in_flight: u32) -> Loss {
        testing::loss(Time::ZERO, kind, in_flight)
    }
    fn ack(s: &mut CubicSender, now: Time, rtt: Time, app_limited: bool) {
        s.on_ack(&Ack { srtt: rtt, app_limited, ..testing::ack(now, &Congestion::NONE) });
    }
    /// A round trip's acknowledgements.
    fn round(s: &mut CubicSender, now: &mut Time, rtt: Time) {
        let n = s.window.cwnd as u64;
        for i in 1..=n {
            ack(s, *now + Time(rtt.0 * i / n), rtt, false);
        }
        *now += rtt;
    }

    /// W_max 1000, cwnd 700: K = cbrt(300/0.4) = 9.0856 s; W(0) = 700; W(K) = 1000; W(K + 5) = 1000 + 0.4 * 125.
    #[test]
    fn the_curve_by_hand() {
        let mut s = sender(1000.0);
        s.on_loss(&loss(LossKind::Duplicates, 1000));
        assert_eq!((s.window.cwnd, s.window.ssthresh, s.w_max), (700.0, 700.0, 1000.0));
        s.begin(Time::secs(1));
        assert!((s.k - 9.085_602_964).abs() < 1e-8, "{}", s.k);
        assert!((s.w_cubic(0.0) - 700.0).abs() < 1e-9);
        assert_eq!(s.w_cubic(s.k), 1000.0);
        assert!((s.w_cubic(s.k + 5.0) - 1050.0).abs() < 1e-9);
        assert!((s.alpha - 0.9 / 1.7).abs() < 1e-15);
        s.w_est = 0.0;
        // One acknowledgement at t = 0, RTT 100 ms: the target is W(0.1) = 1000 - 0.4 * 8.9856^3 = 709.796.
        s.avoid(1.0, 0.0, 0.1);
        assert!((s.window.cwnd - (700.0 + 9.796 / 700.0)).abs() < 1e-5, "{}", s.window.cwnd);
    }

    #[test]
    fn fast_to_the_plateau_slow_on_it_fast_beyond() {
        let mut s = sender(1000.0);
        s.on_loss(&loss(LossKind::Duplicates, 1000));
        let (mut now, rtt) = (Time::secs(1), Time::millis(100));
        let mut growth = alloc::vec::Vec::new();
        for _ in 0..180 {
            let before = s.window.cwnd;
            round(&mut s, &mut now, rtt);
            growth.push(s.window.cwnd - before);
            let t = now.since(Time::secs(1)).as_secs_f64();
            assert!((s.window.cwnd - s.w_cubic(t + 0.05)).abs() < 12.0, "follows the curve: {} at {t}", s.window.cwnd);
        }
        assert!(growth[2] > 3.0 * growth[50] && growth[50] > 3.0 * growth[85].max(0.01), "concave {growth:?}");
        assert!(growth[170] > 3.0 * growth[110], "convex");
    }

    /// At a small product of bandwidth and delay the window grows as Reno's: alpha an RTT, then one above the prior window.
    #[test]
    fn reno_friendly_on_small_paths() {
        let mut s = sender(20.0);
        s.on_loss(&loss(LossKind::Duplicates, 20));
        let (mut now, rtt) = (Time::secs(1), Time::millis(5));
        for _ in 0..10 {
            round(&mut s, &mut now, rtt);
        }
        assert!((s.window.cwnd - (14.0 + 10.0 * 0.9 / 1.7)).abs() < 0.4, "{}", s.window.cwnd);
        while s.window.cwnd < 20.5 {
            round(&mut s, &mut now, rtt);
        }
        let before = s.window.cwnd;
        for _ in 0..5 {
            round(&mut s, &mut now, rtt);
        }
        assert!((s.window.cwnd - before - 5.0).abs() < 0.3, "{before} {}", s.window.cwnd);
    }

    #[test]
    fn reductions() {
        let mut s = sender(100.0);
        s.on_loss(&loss(LossKind::Duplicates, 100));
        s.on_loss(&loss(LossKind::Mark, 70));
        assert!((s.w_max - 70.0 * 0.85).abs() < 1e-9 && (s.window.cwnd - 49.0).abs() < 1e-9, "fast convergence");
        s.on_loss(&loss(LossKind::Mark, 1));
        assert_eq!((s.window.cwnd, s.window.ssthresh), (1.0, 2.0));
        let mut s = sender(100.0);
        s.on_loss(&loss(LossKind::Timeout, 100));
        assert_eq!((s.window.cwnd, s.window.ssthresh), (1.0, 70.0));
        s.on_loss(&Loss { repeated: true, ..loss(LossKind::Timeout, 1) });
        assert_eq!((s.window.cwnd, s.window.ssthresh), (1.0, 70.0));
        let (mut now, rtt) = (Time::secs(1), Time::millis(10));
        while s.epoch.is_none() {
            round(&mut s, &mut now, rtt);
        }
        assert_eq!((s.k, s.w_max), (0.0, 70.0), "section 4.8");
    }

    #[test]
    fn time_without_a_full_window_does_not_count() {
        let mut s = sender(1000.0);
        s.on_loss(&loss(LossKind::Duplicates, 1000));
        let rtt = Time::millis(100);
        ack(&mut s, Time::secs(1), rtt, false);
        ack(&mut s, Time::secs(9), rtt, true);
        let before = s.window.cwnd;
        s.on_send(&mut Packet::EMPTY.clone(), &testing::sent(Time::secs(19), 0));
        assert_eq!((s.window.cwnd, s.epoch), (before, Some(Time::secs(19))));
    }
}

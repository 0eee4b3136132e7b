//! CUBIC as Linux 6.18 computes it (`tcp_cubic.c`): in whole segments, milliseconds and 1024ths. Where it differs from
//! RFC 9438 is in the table of [`super`].
//!
//! | symbol | field | unit |
//! | --- | --- | --- |
//! | cnt | `per_segment` | segments to acknowledge for one more |
//! | last_max_cwnd | `last_max` | segments |
//! | bic_origin_point | `origin` | segments |
//! | bic_K | `k` | 1/1024 s |
//! | delay_min | `least_rtt` | time |
//! | tcp_cwnd, ack_cnt | `reno`, `reno_acked` | segments |
//!
//! Deviation: the kernel's cube root is a table with one step of Newton's method, off by a few tenths of a percent; here it
//! is exact to the unit of K.

use super::Params;
use crate::api::{Ack, Allowance, Loss, LossKind, Probe, Sender, SenderInit, Undo, Writes};
use crate::protocols::common::window::{Additive, Window};
use crate::units::Time;

/// BICTCP_HZ: the curve's time is in 1024ths of a second.
const TIME_SHIFT: u32 = 10;
/// Samples of the round-trip time do not count this long after a reduction.
const DISCARDED: Time = Time::secs(1);
/// Most of `cnt` before the first reduction.
const MOST_BEFORE_LOSS: u32 = 20;

pub(super) struct LinuxSender {
    window: Window,
    additive: Additive,
    /// Of 1024.
    beta: u64,
    /// Segments/s^3, of 1024.
    scale: u64,
    fast_convergence: bool,
    per_segment: u32,
    last_max: u32,
    /// Window and time, ms, of the last update.
    last_window: u32,
    last_ms: u64,
    origin: u32,
    k: u64,
    least_rtt: Time,
    epoch: Option<Time>,
    reno: u32,
    reno_acked: u32,
    /// A loss was being repaired at the last acknowledgement.
    repairing: bool,
}

impl LinuxSender {
    pub(super) fn new(init: &SenderInit<'_>) -> LinuxSender {
        let params = Params::of(init.values);
        LinuxSender {
            window: Window::of(init, params.window),
            additive: Additive::default(),
            beta: libm::round(params.beta * 1024.0) as u64,
            // The kernel's scale is ten times a rounded number.
            scale: 10 * libm::round(params.C * 102.4).max(1.0) as u64,
            fast_convergence: params.fast_convergence,
            per_segment: 0,
            last_max: 0,
            last_window: 0,
            last_ms: 0,
            origin: 0,
            k: 0,
            least_rtt: Time::NEVER,
            epoch: None,
            reno: 0,
            reno_acked: 0,
            repairing: false,
        }
    }

    /// `bictcp_reset`.
    fn reset(&mut self) {
        (self.per_segment, self.last_max, self.last_window, self.last_ms) = (0, 0, 0, 0);
        (self.origin, self.k, self.least_rtt, self.epoch) = (0, 0, Time::NEVER, None);
        (self.reno, self.reno_acked) = (0, 0);
    }

    /// `bictcp_update`: sets `per_segment`.
    fn update(&mut self, now: Time, acked: u32) {
        let (cwnd, ms) = (self.window.cwnd as u32, now.0 / 1_000_000);
        self.reno_acked = self.reno_acked.saturating_add(acked);
        if self.last_window == cwnd && ms <= self.last_ms + 31 {
            return;
        }
        if self.epoch.is_none() || ms != self.last_ms {
            (self.last_window, self.last_ms) = (cwnd, ms);
            let epoch = *self.epoch.get_or_insert_with(|| {
                (self.reno_acked, self.reno) = (acked, cwnd);
                let below = self.last_max.saturating_sub(cwnd) as f64;
                // The unit of K is 1024ths of a second.
                let cubed = below * (1u64 << (4 * TIME_SHIFT)) as f64 / self.scale as f64;
                (self.k, self.origin) = (libm::cbrt(cubed) as u64, self.last_max.max(cwnd));
                now
            });
            self.per_segment = self.on_curve(now, epoch, cwnd);
        }
        self.as_reno(cwnd);
        self.per_segment = self.per_segment.max(2); // at most half a window per round trip
    }

    /// Segments to acknowledge for each by which the window grows, to be on the curve a round trip later.
    fn on_curve(&self, now: Time, epoch: Time, cwnd: u32) -> u32 {
        let least = if self.least_rtt == Time::NEVER { Time::ZERO } else { self.least_rtt };
        let ms = now.0 / 1_000_000 - epoch.0.min(now.0) / 1_000_000 + least.0 / 1_000_000;
        let t = (ms << TIME_SHIFT) / 1000;
        let off = t.abs_diff(self.k) as f64;
        let delta = (self.scale as f64 * off * off * off / (1u64 << (4 * TIME_SHIFT)) as f64) as u32;
        let target = if t < self.k { self.origin.saturating_sub(delta) } else { self.origin.saturating_add(delta) };
        let per_segment = if target > cwnd { cwnd / (target - cwnd) } else { cwnd.saturating_mul(100) };
        if self.last_max == 0 { per_segment.min(MOST_BEFORE_LOSS) } else { per_segment }
    }

    /// The window that Reno would have; where it is larger, growth reaches it within a round trip.
    fn as_reno(&mut self, cwnd: u32) {
        let beta_scale = 8 * (1024 + self.beta) / 3 / (1024 - self.beta);
        let per_segment = ((cwnd as u64 * beta_scale) >> 3).clamp(1, u32::MAX as u64) as u32;
        if self.reno_acked > per_segment {
            let more = (self.reno_acked - 1) / per_segment;
            self.reno_acked -= more * per_segment;
            self.reno = self.reno.saturating_add(more);
        }
        if self.reno > cwnd {
            self.per_segment = self.per_segment.min(cwnd / (self.reno - cwnd));
        }
    }
}

impl Sender for LinuxSender {
    const WRITES: Writes = Writes::Nothing;
    const HAS_TIMER: bool = false;

    fn allowance(&self) -> Allowance {
        Allowance { cwnd: self.window.cwnd, pacing: None }
    }

    fn on_idle(&mut self, now: Time, idle: Time, timeout: Time) {
        if let Some(epoch) = &mut self.epoch {
            *epoch = (*epoch + idle).min(now);
        }
        self.window.on_idle(now, idle, timeout);
    }

    fn on_ack(&mut self, ack: &Ack<'_>) {
        if self.epoch.is_none_or(|epoch| ack.now.since(epoch) >= DISCARDED) {
            self.least_rtt = self.least_rtt.min(ack.rtt);
        }
        self.repairing = ack.recovering;
        if !self.window.grows(ack) {
            return;
        }
        let left = self.window.slow_start_by(ack.newly_acked as f64) as u32;
        if left > 0 {
            self.update(ack.now, left);
            self.additive.rise(&mut self.window, self.per_segment, left);
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        let timeout = loss.kind == LossKind::Timeout;
        // A timeout within a repair has its reduction.
        if !(loss.repeated || timeout && self.repairing) {
            let cwnd = self.window.cwnd as u32;
            self.epoch = None;
            let converge = self.fast_convergence && cwnd < self.last_max;
            self.last_max = if converge { (cwnd as u64 * (1024 + self.beta) / 2048) as u32 } else { cwnd };
            self.window.ssthresh = ((cwnd as u64 * self.beta / 1024) as f64).max(2.0);
        }
        self.additive = Additive::default();
        self.window.cwnd = self.window.ssthresh;
        if timeout {
            self.window.cwnd = 1.0;
            self.reset();
            self.window.forget();
        }
    }

    fn resume(&mut self, _now: Time, window: f64, _srtt: Time) {
        self.reset();
        (self.window.cwnd, self.window.ssthresh) = (libm::floor(window).max(1.0), libm::floor(window).max(2.0));
    }

    fn threshold(&self) -> f64 {
        self.window.ssthresh
    }
    fn on_undo(&mut self, undo: &Undo) {
        self.window.undo(undo);
    }

    fn probe(&self, put: Probe<'_>) {
        self.window.probe(put);
        put("w_max", self.last_max as f64);
        put("k_s", self.k as f64 / (1 << TIME_SHIFT) as f64);
        put("w_est", self.reno as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use crate::units::Rate;
    use crate::wire::Congestion;

    fn sender(window: f64) -> LinuxSender {
        let values = testing::values(&[Params::PARAMS], &[]);
        LinuxSender::new(&SenderInit {
            values: &values,
            packet: 1500.0,
            initial_window: window,
            interface: Rate::mbps(1000),
        })
    }
    fn ack(s: &mut LinuxSender, ms: u64, newly_acked: u32) {
        let rtt = Time::millis(100);
        s.on_ack(&Ack { newly_acked, rtt, srtt: rtt, ..testing::ack(Time::millis(ms), &Congestion::NONE) });
    }
    fn lose(s: &mut LinuxSender, kind: LossKind) {
        s.on_loss(&testing::loss(Time::ZERO, kind, 1));
    }

    /// 1000 * 717 / 1024 = 700, whatever is in flight; then fast convergence: 700 * 1741 / 2048 = 595.
    #[test]
    fn reductions_by_hand() {
        let mut s = sender(1000.0);
        lose(&mut s, LossKind::Duplicates);
        assert_eq!((s.window.cwnd, s.window.ssthresh, s.last_max), (700.0, 700.0, 1000));
        lose(&mut s, LossKind::Mark);
        assert_eq!((s.window.cwnd, s.last_max), (490.0, 595));
        lose(&mut s, LossKind::Timeout);
        assert_eq!((s.window.cwnd, s.window.ssthresh, s.last_max), (1.0, 343.0, 0), "everything is forgotten");
        s.on_loss(&Loss { repeated: true, ..testing::loss(Time::ZERO, LossKind::Timeout, 1) });
        assert_eq!((s.window.cwnd, s.window.ssthresh), (1.0, 343.0));
        assert_eq!((sender(2.0).beta, sender(2.0).scale), (717, 410));
    }

    /// W_max 1000, window 700: K = cbrt(300 * 2^40 / 410) = 9300 of 1024ths. With 100 ms ahead t = 102, off = 9198, delta =
    /// 410 * 9198^3 / 2^40 = 290: the target is 710, and 700 / 10 acknowledgements make one segment.
    #[test]
    fn the_curve_by_hand() {
        let mut s = sender(1000.0);
        s.least_rtt = Time::millis(100);
        lose(&mut s, LossKind::Duplicates);
        ack(&mut s, 1000, 1);
        assert_eq!((s.k, s.origin, s.per_segment, s.reno), (9300, 1000, 70, 700));
        // 69 more and the window is 701: the first counts too.
        (0..68).for_each(|_| ack(&mut s, 1001, 1));
        assert_eq!(s.window.cwnd, 700.0);
        ack(&mut s, 1001, 1);
        assert_eq!(s.window.cwnd, 701.0);
        // At K: t = 9300 - 102 + 102. The target is 1000, 299 away from 701: 701 / 299 = 2.
        ack(&mut s, 1000 + 8983, 1);
        assert_eq!(s.per_segment, 2);
    }

    /// Without a reduction before, a segment for 20 at least; past slow start what is left over counts.
    #[test]
    fn before_the_first_loss() {
        let mut s = sender(10.0);
        s.window.ssthresh = 12.0;
        ack(&mut s, 0, 22);
        assert_eq!((s.window.cwnd, s.per_segment), (13.0, 20), "two in slow start, 20 make one more");
    }

    /// The curve gives 22 / (23 - 22): a segment for 22. Reno's window grows by one for 15/8 of a window: 23 * 15 / 8 = 43.
    #[test]
    fn reno_friendly_by_hand() {
        let mut s = sender(32.0);
        lose(&mut s, LossKind::Duplicates);
        assert_eq!(s.window.cwnd, 22.0);
        s.least_rtt = Time::millis(1);
        ack(&mut s, 1, 1);
        (0..42).for_each(|_| ack(&mut s, 1, 1));
        assert_eq!((s.per_segment, s.window.cwnd, s.reno), (22, 23.0, 22));
        ack(&mut s, 1, 1);
        assert_eq!(s.reno, 23);
    }

    #[test]
    fn an_idle_time_does_not_count() {
        let mut s = sender(100.0);
        lose(&mut s, LossKind::Duplicates);
        ack(&mut s, 1000, 1);
        s.on_idle(Time::secs(9), Time::secs(5), Time::secs(1));
        assert_eq!(s.epoch, Some(Time::secs(6)));
    }
}

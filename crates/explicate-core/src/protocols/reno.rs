//! TCP's AIMD window (RFC 5681): slow start, congestion avoidance, halving on loss.
//!
//! | symbol | field | unit | value | source |
//! | --- | --- | --- | --- | --- |
//! | cwnd | `cwnd` | segments | | RFC 5681 section 3.1 |
//! | ssthresh | `ssthresh` | segments | infinite at first | section 3.1, equation 4 |
//! | L | `abc_limit` | segments | 1 | RFC 3465 section 2.2 |
//!
//! A fast retransmit halves the window, or with `on_duplicates = "restart"` sets it to one segment, as TCP did before fast
//! recovery: over the recovery `tahoe` that is 4.3BSD-Tahoe (V. Jacobson, "Congestion Avoidance and Control", SIGCOMM 1988).
//! A mark is taken like a loss (RFC 3168 section 6.1.2).
//!
//! Deviations:
//! 1. The window counts segments, not bytes (all but a flow's last are full); in congestion avoidance an acknowledgement
//!    counts for all that it covers (RFC 3465 section 2.1).
//! 2. During a recovery the window does not grow; inflation is recovery's.
//! 3. Marks do not take the window below two segments, so no timer has to slow down a window of one (RFC 3168 section 6.1.2).
//! 4. After an idle time the window is what it was, unless `after_idle` is set (RFC 5681 section 4.1 restarts it after a
//!    retransmission timeout). It is so for all laws of TCP here.
//! 5. A SYN that was lost does not shrink the first window (RFC 5681 section 3.1).

use alloc::boxed::Box;

use crate::api::{Ack, Allowance, AnySender, Loss, LossKind, Probe, Protocol, Sender, SenderInit, Undo, Writes};
use crate::params::{Info, Packets, choices, parameters};
use crate::protocols::common::window::{Additive, Window, WindowParams};
use crate::units::Time;

/// TCP's AIMD window.
pub struct Reno;

choices! {
    /// What a fast retransmit leaves of the window.
    pub enum OnDuplicates { Halve = "halve", Restart = "restart" }
}

choices! {
    /// How acknowledgements are counted.
    pub enum Variant { Rfc = "rfc", Linux = "linux" }
}

parameters! {
    /// What a scenario can set.
    pub struct Params {
        /// RFC 5681, or what Linux does: slow start by all that an acknowledgement covers, whole segments, and half of
        /// the window after a loss, not of what is in flight.
        variant: Variant = Variant::Rfc, "RFC 5681; Linux 6.18, tcp_cong.c";
        /// What a fast retransmit leaves of the window: half, or one segment and slow start to half.
        on_duplicates: OnDuplicates = OnDuplicates::Halve, "RFC 5681 section 3.2; Jacobson 1988";
        /// Most segments that an acknowledgement adds in slow start, however much it covers.
        abc_limit: Packets = 1.0, in 1.0..=1e3, "RFC 3465 section 2.2";
        /// Start, growth and idle times.
        window: WindowParams = WindowParams::DEFAULT;
    }
}

impl Protocol for Reno {
    const INFO: Info = Info {
        name: "reno",
        summary: "TCP's AIMD window: slow start, one segment more per round trip, half on loss",
        source: "RFC 5681",
        params: Params::PARAMS,
    };

    fn sender(&self, init: &SenderInit<'_>) -> Box<AnySender> {
        let params = Params::of(init.values);
        let (window, abc_limit) = (Window::of(init, params.window), params.abc_limit);
        if params.variant == Variant::Linux {
            let restart = params.on_duplicates == OnDuplicates::Restart;
            return Box::new(LinuxSender { window, additive: Additive::default(), restart, repairing: false });
        }
        match params.on_duplicates {
            OnDuplicates::Restart => Box::new(RenoSender::<true> { window, abc_limit }),
            OnDuplicates::Halve => Box::new(RenoSender::<false> { window, abc_limit }),
        }
    }
}

/// `RESTART`: a fast retransmit sets the window to one segment.
struct RenoSender<const RESTART: bool> {
    window: Window,
    abc_limit: f64,
}

impl<const RESTART: bool> Sender for RenoSender<RESTART> {
    const WRITES: Writes = Writes::Nothing;
    const HAS_TIMER: bool = false;

    fn allowance(&self) -> Allowance {
        Allowance { cwnd: self.window.cwnd, pacing: None }
    }

    fn on_ack(&mut self, ack: &Ack<'_>) {
        if self.window.grows(ack) && !self.window.slow_start(ack.newly_acked, self.abc_limit) {
            self.window.rise(1.0, ack.newly_acked);
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.window.reduce(loss, 0.5);
        if RESTART && loss.kind == LossKind::Duplicates {
            self.window.cwnd = 1.0;
        }
    }

    fn on_idle(&mut self, now: Time, idle: Time, timeout: Time) {
        self.window.on_idle(now, idle, timeout);
    }

    fn resume(&mut self, _now: Time, window: f64, _srtt: Time) {
        (self.window.cwnd, self.window.ssthresh) = (window.max(1.0), window.max(2.0));
    }

    fn threshold(&self) -> f64 {
        self.window.ssthresh
    }
    fn on_undo(&mut self, undo: &Undo) {
        self.window.undo(undo);
    }

    fn probe(&self, put: Probe<'_>) {
        self.window.probe(put);
    }
}

/// Reno as Linux 6.18 has it (`tcp_cong.c`).
struct LinuxSender {
    window: Window,
    additive: Additive,
    /// A fast retransmit sets the window to one segment.
    restart: bool,
    /// A loss was being repaired at the last acknowledgement.
    repairing: bool,
}

impl Sender for LinuxSender {
    const WRITES: Writes = Writes::Nothing;
    const HAS_TIMER: bool = false;

    fn allowance(&self) -> Allowance {
        Allowance { cwnd: self.window.cwnd, pacing: None }
    }

    fn on_ack(&mut self, ack: &Ack<'_>) {
        self.repairing = ack.recovering;
        if self.window.grows(ack) {
            let left = self.window.slow_start_by(ack.newly_acked as f64) as u32;
            if left > 0 {
                let cwnd = self.window.cwnd as u32;
                self.additive.rise(&mut self.window, cwnd, left);
            }
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        // A timeout within a repair has its reduction.
        let repeated = loss.repeated || loss.kind == LossKind::Timeout && self.repairing;
        self.additive = Additive::default();
        self.window.reduce_to(&Loss { repeated, ..*loss }, libm::floor(self.window.cwnd / 2.0));
        if self.restart && loss.kind == LossKind::Duplicates {
            self.window.cwnd = 1.0;
        }
    }

    fn on_idle(&mut self, now: Time, idle: Time, timeout: Time) {
        self.window.on_idle(now, idle, timeout);
    }

    fn resume(&mut self, _now: Time, window: f64, _srtt: Time) {
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
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use crate::wire::Congestion;

    fn sender(given: &[(&str, f64)]) -> Box<AnySender> {
        testing::sender(&Reno, 3.0, given)
    }
    fn ack(s: &mut AnySender, newly_acked: u32) -> f64 {
        s.on_ack(&Ack { newly_acked, ..testing::ack(Time::ZERO, &Congestion::NONE) });
        s.allowance().cwnd
    }

    #[test]
    fn doubling_then_one_segment_a_round_trip() {
        let mut s = sender(&[]);
        assert_eq!((ack(&mut *s, 1), ack(&mut *s, 9)), (4.0, 5.0), "one for an acknowledgement, whatever it covers");
        s.on_loss(&testing::loss(Time::ZERO, LossKind::Duplicates, 20));
        assert_eq!(s.allowance().cwnd, 10.0);
        for _ in 0..10 {
            ack(&mut *s, 1);
        }
        // Ten steps of 1/w from 10: a little less than one.
        assert!((s.allowance().cwnd - 10.96).abs() < 0.01, "{}", s.allowance().cwnd);
        s.on_loss(&testing::loss(Time::ZERO, LossKind::Timeout, 12));
        assert_eq!(s.allowance().cwnd, 1.0);
        for _ in 0..5 {
            ack(&mut *s, 1);
        }
        assert_eq!((s.allowance().cwnd, ack(&mut *s, 3)), (6.0, 6.5), "doubling up to half of 12, then 3/6");
    }

    /// Linux's response: window and threshold before the loss, unless they have grown since.
    #[test]
    fn a_wrong_response_is_taken_back() {
        let mut s = sender(&[]);
        s.on_loss(&testing::loss(Time::ZERO, LossKind::Timeout, 20));
        s.on_undo(&Undo::new(Time::ZERO, 20.0, f64::INFINITY, Time::millis(100)));
        assert_eq!((s.allowance().cwnd, s.threshold()), (20.0, f64::INFINITY));
        s.on_loss(&testing::loss(Time::ZERO, LossKind::Duplicates, 20));
        s.on_undo(&Undo::new(Time::ZERO, 8.0, 6.0, Time::millis(100)));
        assert_eq!((s.allowance().cwnd, s.threshold()), (10.0, 10.0));
    }

    /// RFC 5681 section 3.1: growth is for what is acknowledged cumulatively, whatever a duplicate reports.
    #[test]
    fn duplicates_do_not_grow_the_window() {
        let mut s = sender(&[]);
        let duplicate = Ack { newly_acked: 1, duplicate: true, ..testing::ack(Time::ZERO, &Congestion::NONE) };
        s.on_ack(&duplicate);
        assert_eq!(s.allowance().cwnd, 3.0, "slow start");
        s.on_loss(&testing::loss(Time::ZERO, LossKind::Duplicates, 20));
        s.on_ack(&duplicate);
        assert_eq!(s.allowance().cwnd, 10.0, "congestion avoidance");
    }

    /// From 10: 6 acknowledged, two of them up to the threshold of 12; the other four and eight more make one segment.
    #[test]
    fn linux_counts_all_that_is_acknowledged() {
        let mut s = sender(&[("variant", 1.0)]);
        assert_eq!((ack(&mut *s, 1), ack(&mut *s, 17)), (4.0, 21.0), "slow start by all of it");
        s.on_loss(&testing::loss(Time::ZERO, LossKind::Timeout, 7));
        assert_eq!(s.allowance().cwnd, 1.0);
        assert_eq!(ack(&mut *s, 8), 9.0);
        assert_eq!(
            (ack(&mut *s, 6), ack(&mut *s, 4), ack(&mut *s, 1)),
            (10.0, 10.0, 11.0),
            "half of 21 is 10; 5 are left"
        );
        s.on_loss(&testing::loss(Time::ZERO, LossKind::Duplicates, 7));
        assert_eq!(s.allowance().cwnd, 5.0, "half of the window, rounded down");
        s.on_ack(&Ack { recovering: true, ..testing::ack(Time::ZERO, &Congestion::NONE) });
        s.on_loss(&testing::loss(Time::ZERO, LossKind::Timeout, 7));
        assert_eq!((ack(&mut *s, 9), ack(&mut *s, 6)), (6.0, 7.0), "the threshold is still 5: 4 and 5 of 9, then 6");
    }

    #[test]
    fn restart_and_byte_counting() {
        let mut s = sender(&[("on_duplicates", 1.0), ("abc_limit", 2.0)]);
        assert_eq!(ack(&mut *s, 2), 5.0, "RFC 3465: L = 2");
        s.on_loss(&testing::loss(Time::ZERO, LossKind::Duplicates, 20));
        assert_eq!(s.allowance().cwnd, 1.0, "as 4.3BSD-Tahoe");
        assert_eq!((ack(&mut *s, 2), ack(&mut *s, 5)), (3.0, 5.0), "in slow start again");
        s.on_loss(&testing::loss(Time::ZERO, LossKind::Mark, 20));
        assert_eq!(s.allowance().cwnd, 10.0, "nothing was lost: a mark halves");
    }
}

//! Whether the window limits a flow, and what remains of it after an idle time: code for every controller with a
//! [`Window`](super::window::Window).
//!
//! A window that is not used says nothing about the path. If it grows nevertheless, the flow can later send a burst that
//! no acknowledgement has justified (RFC 7661 section 1).
//!
//! | symbol | field | unit | source |
//! | --- | --- | --- | --- |
//! | is_cwnd_limited | `limited` | | Linux 6.18, `tcp_cwnd_validate` |
//! | max_packets_out | `most_out` | segments | the same |
//! | cwnd_usage_seq | `until` | segment | the same |
//! | snd_cwnd_used | `used` | segments | the same, after RFC 2861 |
//! | pipeACK | `pipe_ack` | segments | RFC 7661 section 4.2 |
//!
//! Deviations:
//! 1. Linux judges after each transmission. Between two acknowledgements the packets outstanding only increase, so the
//!    judgement at the next acknowledgement is the same.
//! 2. Linux compares the packets in flight with the window; here the endpoint reports whether the window stopped the last attempt
//!    to send, and a window above the receiver's is not the limit.
//! 3. While a flow sends less than its window, Linux shrinks the window once per retransmission timeout. The timeout is
//!    taken as the smoothed round-trip time plus 200 ms there.
//! 4. pipeACK is the largest number of segments acknowledged in a round trip, of the present period and the one before; a
//!    period is the pipeACK Sampling Period, three round trips or one second (section 4.2).
//! 5. After a loss in the non-validated phase the window follows the segments in flight, as after every loss; it does not
//!    use pipeACK (section 4.4.1).
//! 6. Linux does not shrink the window of a sender whose application waits for room in the send buffer (`SOCK_NOSPACE`). There is no
//!    such buffer here: the application waits if a window or pacing stopped the last attempt to send.

use crate::api::Ack;
use crate::params::{choices, parameters};
use crate::units::Time;

use super::window::{Round, Window, grows};

choices! {
    /// When a window may grow.
    pub enum Growth { Asked = "asked", Linux = "linux", Rfc7661 = "rfc7661" }
}

choices! {
    /// What a retransmission timeout without a transmission leaves of the window.
    pub enum AfterIdle { Keep = "keep", Linux = "linux", Rfc5681 = "rfc5681" }
}

parameters! {
    /// What a scenario can set.
    pub struct UsageParams {
        /// When the window may grow: `asked`, if it or pacing stopped the last attempt to send; `linux`, if it was full within
        /// the last window of data, in slow start also if more than half of it was used; `rfc7661`, if more than half of it was
        /// acknowledged in a round trip.
        growth: Growth = Growth::Asked, "RFC 7661; Linux 6.18, tcp_is_cwnd_limited";
        /// What an idle time longer than the retransmission timeout leaves of the window: all, half per timeout, or the
        /// initial window.
        after_idle: AfterIdle = AfterIdle::Keep, "RFC 5681 section 4.1; Linux 6.18, tcp_slow_start_after_idle";
    }
}

/// Non-validated phase after which a window shrinks (RFC 7661 section 4.4.3).
const NON_VALIDATED_PERIOD: Time = Time::secs(300);
/// What Linux adds to the smoothed round-trip time for its least timeout.
const LINUX_RTO_MARGIN: Time = Time::millis(200);

/// How much of the window a flow uses.
pub(crate) struct Usage {
    growth: Growth,
    after_idle: AfterIdle,
    initial_window: f64,
    // Linux.
    limited: bool,
    most_out: u32,
    until: u32,
    /// The cumulative acknowledgement before this one.
    acked: u32,
    used: u32,
    /// When the window was last the limit.
    limited_at: Time,
    // RFC 7661.
    round: Round,
    /// Segments acknowledged in this round trip; `None` before the first.
    in_round: Option<u32>,
    /// Largest number in a round trip, of this period and of the one before; `None` before the first round trip.
    pipe_ack: [Option<u32>; 2],
    period_ends: Time,
    /// When the window was last validated.
    validated_at: Time,
}

impl Usage {
    /// `None` if the parameters are the defaults, which need no state.
    pub(crate) fn new(params: UsageParams, initial_window: f64) -> Option<Usage> {
        (params != UsageParams::DEFAULT).then_some(Usage {
            growth: params.growth,
            after_idle: params.after_idle,
            initial_window,
            limited: false,
            most_out: 0,
            until: 0,
            acked: 0,
            used: 0,
            limited_at: Time::ZERO,
            round: Round::default(),
            in_round: None,
            pipe_ack: [None; 2],
            period_ends: Time::ZERO,
            validated_at: Time::ZERO,
        })
    }

    /// An acknowledgement arrived: whether the window may grow. It may shrink here.
    pub(crate) fn grows(&mut self, ack: &Ack<'_>, cwnd: &mut f64, ssthresh: &mut f64) -> bool {
        if self.growth == Growth::Linux || self.after_idle == AfterIdle::Linux {
            self.validate(ack, cwnd, ssthresh);
        }
        match self.growth {
            Growth::Asked => grows(ack),
            Growth::Linux => counts(ack) && self.is_limit(*cwnd, *ssthresh),
            Growth::Rfc7661 => self.is_validated(ack, cwnd, ssthresh) && counts(ack),
        }
    }

    /// `tcp_is_cwnd_limited`.
    fn is_limit(&self, cwnd: f64, ssthresh: f64) -> bool {
        self.limited || cwnd < ssthresh && cwnd < 2.0 * self.most_out as f64
    }

    /// `tcp_cwnd_validate`, for the transmissions since the acknowledgement before this one.
    fn validate(&mut self, ack: &Ack<'_>, cwnd: &mut f64, ssthresh: &mut f64) {
        let limited = !ack.app_limited && *cwnd <= ack.transport.window() as f64;
        let out = ack.highest_sent.saturating_sub(self.acked);
        if self.acked >= self.until || limited || !self.limited && out > self.most_out {
            (self.limited, self.most_out, self.until) = (limited, out, ack.highest_sent);
        }
        self.acked = ack.cumulative.max(self.acked);
        if self.is_limit(*cwnd, *ssthresh) || self.limited_at == Time::ZERO {
            (self.used, self.limited_at) = (0, ack.now);
            return;
        }
        self.used = self.used.max(out);
        let timeout = ack.srtt + LINUX_RTO_MARGIN;
        if self.after_idle == AfterIdle::Linux && ack.now.since(self.limited_at) >= timeout {
            let used = (self.used as f64).max(self.initial_window);
            // A sender whose application waits for room is limited by the receiver (`SOCK_NOSPACE`).
            if ack.app_limited && !ack.recovering && used < *cwnd {
                *ssthresh = three_quarters(*cwnd, *ssthresh);
                *cwnd = libm::floor((*cwnd + used) / 2.0).max(1.0);
            }
            (self.used, self.limited_at) = (0, ack.now);
        }
    }

    /// RFC 7661 section 4.3; shrinks a window that was not validated for five minutes.
    fn is_validated(&mut self, ack: &Ack<'_>, cwnd: &mut f64, ssthresh: &mut f64) -> bool {
        self.in_round = self.in_round.map(|segments| segments.saturating_add(ack.newly_acked));
        if self.round.ends(ack) {
            if ack.now >= self.period_ends {
                self.pipe_ack = [None, self.pipe_ack[0]];
                self.period_ends = ack.now + Time(ack.srtt.0.saturating_mul(3)).max(Time::secs(1));
            }
            self.pipe_ack[0] = self.pipe_ack[0].max(self.in_round);
            self.in_round = Some(0);
        }
        let pipe_ack = self.pipe_ack[0].max(self.pipe_ack[1]);
        if pipe_ack.is_none_or(|segments| 2.0 * segments as f64 >= *cwnd) {
            self.validated_at = ack.now;
            return true;
        }
        self.lapse(ack.now, cwnd, ssthresh);
        false
    }
    /// The end of the non-validated phase (RFC 7661 section 4.4.3).
    fn lapse(&mut self, now: Time, cwnd: &mut f64, ssthresh: &mut f64) {
        if now.since(self.validated_at) >= NON_VALIDATED_PERIOD {
            *ssthresh = three_quarters(*cwnd, *ssthresh);
            *cwnd = (*cwnd / 2.0).max(self.initial_window).min(*cwnd);
            self.validated_at = now;
        }
    }

    /// The flow sends again, `idle` after its last packet; nothing was outstanding. `timeout` is its retransmission timeout.
    pub(crate) fn on_idle(&mut self, now: Time, idle: Time, timeout: Time, window: &mut Window) {
        let (cwnd, ssthresh) = (&mut window.cwnd, &mut window.ssthresh);
        if self.growth == Growth::Rfc7661 {
            self.pipe_ack = if idle > Time::secs(1) { [Some(0); 2] } else { self.pipe_ack };
            self.lapse(now, cwnd, ssthresh);
        }
        if idle <= timeout || self.after_idle == AfterIdle::Keep {
            return;
        }
        let least = self.initial_window.min(*cwnd);
        if self.after_idle == AfterIdle::Rfc5681 {
            *cwnd = least;
            return;
        }
        // `tcp_cwnd_restart`.
        *ssthresh = three_quarters(*cwnd, *ssthresh);
        let mut left = idle;
        loop {
            left = left.since(timeout);
            if left == Time::ZERO || *cwnd <= least {
                break;
            }
            *cwnd = libm::floor(*cwnd / 2.0);
        }
        *cwnd = cwnd.max(least);
        (self.used, self.limited_at) = (0, now);
    }
}

/// Whether growth is for this acknowledgement, if the window was used.
#[inline]
pub(crate) fn counts(ack: &Ack<'_>) -> bool {
    !(ack.recovering | ack.duplicate) && ack.newly_acked > 0
}

/// `tcp_current_ssthresh`: a threshold of three quarters of the window at least.
fn three_quarters(cwnd: f64, ssthresh: f64) -> f64 {
    ssthresh.max(0.75 * cwnd)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::SenderInit;
    use crate::params::Values;
    use crate::protocols::common::window::WindowParams;
    use crate::testing;
    use crate::units::Rate;
    use crate::wire::{Congestion, Transport};

    /// A window of 10 with the initial window 10, in slow start.
    fn window(given: &[(&str, f64)]) -> Window {
        let values: Values = testing::values(&[WindowParams::PARAMS], given);
        let init = SenderInit { values: &values, packet: 1500.0, initial_window: 10.0, interface: Rate::mbps(1000) };
        Window::of(&init, WindowParams::of(&values))
    }
    const LINUX: &[(&str, f64)] = &[("growth", 1.0), ("after_idle", 1.0)];

    /// The acknowledgement of all below `cumulative`, when all below `highest_sent` have left.
    fn ack(ms: u64, cumulative: u32, highest_sent: u32, app_limited: bool) -> Ack<'static> {
        let mut transport = Transport::EMPTY;
        transport.set_window(1_000_000);
        let transport = alloc::boxed::Box::leak(alloc::boxed::Box::new(transport));
        let now = Time::millis(ms);
        Ack { cumulative, highest_sent, app_limited, transport, ..testing::ack(now, &Congestion::NONE) }
    }

    #[test]
    fn without_rules_there_is_no_state() {
        assert!(Usage::new(UsageParams::DEFAULT, 10.0).is_none());
        let mut w = window(&[]);
        assert!(w.grows(&ack(0, 1, 10, false)) && !w.grows(&ack(0, 2, 10, true)));
    }

    /// In slow start a window of 10 grows if more than five segments were outstanding in this window of data; in congestion
    /// avoidance only if it was full.
    #[test]
    fn growth_of_linux_by_hand() {
        let mut w = window(LINUX);
        assert!(!w.grows(&ack(0, 1, 5, true)), "5 of 10");
        assert!(!w.grows(&ack(1, 2, 6, true)), "5 again");
        assert!(w.grows(&ack(2, 3, 8, true)), "6 of 10: 2 * 6 > 10");
        w.ssthresh = 5.0;
        assert!(!w.grows(&ack(3, 4, 9, true)), "not in congestion avoidance");
        assert!(w.grows(&ack(4, 5, 14, false)), "full");
        assert!(w.grows(&ack(5, 13, 14, true)), "and so for the rest of this window of data");
        assert!(w.grows(&ack(6, 14, 14, true)), "up to its last segment");
        assert!(!w.grows(&ack(7, 15, 16, true)), "the next window of data");
        let mut narrow = ack(8, 16, 26, false);
        narrow.transport = &Transport::EMPTY;
        assert!(!w.grows(&narrow), "the receiver's window was the limit");
        assert!(!w.grows(&Ack { duplicate: true, ..ack(9, 16, 26, false) }), "a duplicate");
    }

    /// After three timeouts' time without a packet: 80 / 2 / 2 = 20 at 2.5 timeouts, the initial window at the least. The threshold
    /// is three quarters of 80.
    #[test]
    fn idle_times_by_hand() {
        let after = |given: &[(&str, f64)], idle: u64| {
            let mut w = window(given);
            (w.cwnd, w.ssthresh) = (80.0, 40.0);
            w.on_idle(Time::secs(100), Time::millis(idle), Time::millis(400));
            (w.cwnd, w.ssthresh)
        };
        assert_eq!(after(LINUX, 400), (80.0, 40.0), "not longer than the timeout");
        assert_eq!([after(LINUX, 401).0, after(LINUX, 1000).0, after(LINUX, 90_000).0], [40.0, 20.0, 10.0]);
        assert_eq!(after(LINUX, 1000).1, 60.0);
        assert_eq!(after(&[("after_idle", 2.0)], 401), (10.0, 40.0), "RFC 5681");
        assert_eq!(after(&[("growth", 1.0)], 90_000), (80.0, 40.0), "kept");
    }

    /// 10 of 100 are used: after a timeout of 100 + 200 ms the window is halfway to what was used, and the threshold three quarters.
    #[test]
    fn a_window_that_is_not_used_shrinks() {
        let mut w = window(LINUX);
        (w.cwnd, w.ssthresh) = (100.0, 50.0);
        w.grows(&ack(1000, 1, 101, false));
        // Another window of data, of 20 segments.
        for n in 0..29 {
            w.grows(&ack(1100 + 10 * n, 101 + n as u32, 121 + n as u32, true));
        }
        assert_eq!(w.cwnd, 100.0);
        w.grows(&ack(1500, 131, 151, true));
        assert_eq!((w.cwnd, w.ssthresh), ((100.0 + 22.0) / 2.0, 75.0), "segments 129 to 150 were outstanding");
    }

    /// The same, but the receiver's window is the limit: the application has more.
    #[test]
    fn a_window_that_the_receiver_does_not_let_use_remains() {
        let mut w = window(LINUX);
        (w.cwnd, w.ssthresh) = (100.0, 50.0);
        w.grows(&ack(1000, 1, 101, false));
        let mut transport = Transport::EMPTY;
        transport.set_window(20);
        for n in 0..100 {
            let mut narrow = ack(1100 + 10 * n, 101 + n as u32, 121 + n as u32, false);
            narrow.transport = &transport;
            assert!(!w.grows(&narrow) || n == 0);
        }
        assert_eq!((w.cwnd, w.ssthresh), (100.0, 50.0));
    }

    /// The window is 100, and 20 segments are acknowledged in a round trip: it does not grow, and is halved after five minutes.
    #[test]
    fn rfc_7661_by_hand() {
        let mut w = window(&[("growth", 2.0)]);
        (w.cwnd, w.ssthresh) = (100.0, 50.0);
        let mut grew = alloc::vec::Vec::new();
        for n in 1..=4000u32 {
            // 20 segments per 100 ms.
            grew.push(w.grows(&ack(1000 + 5 * n as u64, n, n + 20, false)));
        }
        assert!(grew[0] && !grew[300..].contains(&true), "nothing is known at first");
        assert_eq!(w.cwnd, 100.0);
        assert!(!w.grows(&ack(400_000, 4001, 4021, false)));
        assert_eq!((w.cwnd, w.ssthresh), (50.0, 75.0));
        w.cwnd = 38.0;
        assert!(w.grows(&ack(400_005, 4002, 4022, false)), "20 of 38: more than half");
    }
}

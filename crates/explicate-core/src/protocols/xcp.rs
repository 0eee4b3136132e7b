//! XCP, the eXplicit Control Protocol: routers write into packets by how much senders should change their rate.
//!
//! Sources: Katabi, Handley, Rohrs, "Congestion Control for High Bandwidth-Delay Product Networks", SIGCOMM 2002
//! \[XCP02\]; draft-falk-xcp-spec-03 \[D03\], whose rate form is implemented: the end systems in this file, the
//! router in `common/xcp_router.rs`. The window form of the paper is `xcp_window.rs`.
//!
//! The idea: every data packet carries the flow's inter-packet time X and its RTT. A router divides control into two
//! parts. The *efficiency* controller computes once per mean RTT by how much the aggregate should change (spare
//! bandwidth minus the persistent queue). The *fairness* controller spreads that change over packets: increases
//! equally over flows, decreases in proportion to their rates. It also redistributes a tenth of the traffic all the
//! time so that shares converge. The receiver returns the granted part of the sender's request, and the sender adds
//! it to its window.
//!
//! | symbol | field | unit | value | source |
//! | --- | --- | --- | --- | --- |
//! | alpha, beta | `alpha`, `beta` | 1 | 0.4, 0.226 | XCP02 section 3.5, theorem 1 |
//! | gamma | `gamma` | 1 | 0.1 | XCP02 section 3.5.2 |
//! | F (phi / d) | `f` | bytes/s | | D03 section 3.4; XCP02 equation 1 |
//! | h / d | `shuffle` | bytes/s | | XCP02 equation 4 |
//! | Cp = xi_p / ... | `cp` | bytes/s per unit of X | | D03 section 3.4 |
//! | Cn | `cn` | bytes/s per byte | | D03 section 3.4 |
//! | residue_pos/neg | `res_pos`, `res_neg` | bytes/s | | D03 section 3.4 |
//! | d, Te | `avg_rtt`, `control_at` | s | mean RTT of flows | D03 section 3.4 |
//! | Tq | `queue_at` | s | | D03 section 3.4 |
//! | X | `x` | 2^-28 s | rtt / whole packets of cwnd | D03 section 4.1 |
//! | Qm - gamma_q | `mean_queue - target_queue` | bytes | target 0 | paper D section 7.2 (XCPQ) |
//!
//! Deviations:
//! 1. Timers start at 50 ms, +-20 % from the port's own stream (D03 leaves it open), so routers are not synchronised.
//! 2. Feedback is rounded to the nearest byte/s, not truncated, so the aggregate has no bias.
//! 3. On a loss the sender halves its window (`on_loss`), then follows feedback again; D03 section 3.2 does not
//!    define the return.
//! 4. Severe congestion is an expiry of the retransmission timer: the window is reset to one packet as TCP's, which
//!    XCP02 does not mention and paper I section II-A assumes; `on_timeout = "keep"` leaves the reaction to the
//!    routers.
//! 5. The feedback of duplicate acknowledgements counts (D03 section 3.3 refers to any). ns-2's sender ignores it, so
//!    its window does not change while a loss is repaired: `follow_duplicates = false`, for VCP's senders, too.
//! 6. A packet is offered at most what remains in either pool, as in ns-2.35 (`xcpq.cc`). D03 section 3.4 states this
//!    bound for the negative share of a packet that requests less than its offer. Without it, after a timeout has
//!    reset a window to one packet, that packet takes many times the pools of an interval, because its X is so much
//!    larger than those from which Cp was computed.
//! 7. A control interval without data keeps the mean RTT; in D03 section 3.4 it is 0/0. ns-2.35 returns to its
//!    initial 50 ms: `idle_rtt = "initial"`. Then a packet that a timeout retransmits and the next packet never share
//!    an interval, and the next one takes all spare bandwidth at once.

use alloc::boxed::Box;

use crate::agent::Address;
use crate::api::{
    Ack, Allowance, AnyReceiver, AnyRouter, AnySender, Loss, LossKind, Probe, Protocol, Receiver, RouterInit, Sender,
    SenderInit, Sent, Writes,
};
use crate::params::{Auto, BitsPerSecond, Fraction, Info, Param, choices, parameters};
use crate::protocols::common::feedback;
use crate::protocols::common::float::seconds;
use crate::protocols::common::rate_header::{self, SECONDS, round, seconds_to_units};
use crate::protocols::common::xcp_router::{self, XcpRouter};
use crate::units::Time;
use crate::wire::{Describe, Packet};

/// XCP.
pub struct Xcp;

choices! {
    /// Effect of a fast retransmit on the window.
    pub enum OnLoss { Halve = "halve", Keep = "keep", Reset = "reset" }
}

choices! {
    /// Effect of severe congestion, when the retransmission timer expires.
    pub enum OnTimeout { Reset = "reset", Keep = "keep" }
}

parameters! {
    /// Sender parameters of the XCP family.
    pub struct Params {
        /// Maximum rate that the sender requests; auto: the rate of its interface.
        desired_rate: Auto<BitsPerSecond> = None, "D03 3.1";
        /// Effect of a fast retransmit on the window: half, none, or reset to one packet.
        on_loss: OnLoss = OnLoss::Halve, "D03 3.2; paper D section 4.1";
        /// Effect of severe congestion, when the retransmission timer expires: reset to one packet as TCP, or none.
        on_timeout: OnTimeout = OnTimeout::Reset, "paper I section II-A";
        /// Share of an unused allowance given up per RTT, p.
        aging: Fraction = 0.5, in 0.0..=1.0, "D03 3.1.1";
        /// Acknowledgements whose feedback counts.
        feedback: feedback::Params = feedback::Params::DEFAULT;
    }
}

impl Protocol for Xcp {
    const INFO: Info = Info {
        name: "xcp",
        summary: "XCP: routers write the change of rate into every packet",
        source: "Katabi, Handley, Rohrs, SIGCOMM 2002; draft-falk-xcp-spec-03",
        params: Params::PARAMS,
    };
    const ROUTER_PARAMS: &'static [Param] = xcp_router::Params::PARAMS;
    const EXPLICIT: bool = true;
    const DESCRIBE: Describe = rate_header::describe;

    fn sender(&self, init: &SenderInit<'_>) -> Box<AnySender> {
        Box::new(XcpSender::<Rate>::new(init, Params::of(init.values)))
    }
    fn receiver(&self) -> Option<Box<AnyReceiver>> {
        Some(Box::<XcpReceiver>::default())
    }
    fn router(&self, init: &RouterInit<'_>) -> Option<Box<AnyRouter>> {
        Some(Box::new(<XcpRouter>::new(xcp_router::Params::of(init.values), init.rng.clone())))
    }
}

// ------------------------------------------------------------------------------------- end systems, D03 section 3.1-3.3

/// The sender's view of its window.
#[derive(Default)]
pub(super) struct Window {
    /// Allowed window, segments.
    pub(super) cwnd: f64,
    /// Length of a full packet, bytes.
    pub(super) packet: f64,
    /// Desired throughput, bytes/s.
    pub(super) desired: f64,
    /// Seconds; zero while unknown.
    pub(super) srtt: f64,
}

/// The differences between the members of the family: the meaning of the header's fields in data and in
/// acknowledgements. The default is the rate form of D03.
pub(super) trait Form: Default + Send {
    /// The fields of the next packets' headers, if `packets` make a window: the window (D03: X), RTT, and the request
    /// spread over the packets. All are zero while the RTT is unknown.
    #[inline(always)]
    fn words(w: &Window, packets: f64) -> (u32, u32, i32) {
        // One division serves both quotients: X = rtt / packets, and the request spread over them. With an RTT of
        // zero neither is a number, and fields that are none are written as zero.
        let inverse = 1.0 / (packets * w.srtt);
        let per_window = w.srtt * inverse;
        let x = seconds_to_units(w.srtt * per_window);
        // want / (throughput * RTT / MSS), with throughput * RTT / MSS = packets.
        (x, seconds_to_units(w.srtt), round(w.desired * per_window - w.packet * (w.cwnd * inverse)))
    }
    /// The result of [`Form::write`].
    const WRITES: Writes = Writes::PerEvent;
    /// Writes these fields and all others that a packet carries.
    #[inline(always)]
    fn write(&mut self, packet: &mut Packet, (x, rtt, request): (u32, u32, i32)) {
        packet.congestion.set_x(x);
        packet.congestion.set_rtt(rtt);
        packet.congestion.set_delta_throughput(request);
    }
    /// Sets the node from which the flow leaves.
    fn attach(&mut self, _own: Address) {}
    /// The window after an acknowledgement, segments. D03 section 3.3: window = max(window + feedback * srtt, MSS). Duplicates
    /// count too.
    #[inline(always)]
    fn answered(&mut self, w: &Window, ack: &Ack<'_>) -> f64 {
        w.cwnd + ack.header.reverse_feedback() as f64 * w.srtt / w.packet
    }
    /// Reports the last Reverse_Feedback and the first field, in their units.
    fn probe_header(feedback: i32, x: u32, put: Probe<'_>) {
        put("feedback_bytes_per_s", feedback as f64);
        put("x_s", x as f64 * SECONDS);
    }
}

/// The rate form of D03.
#[derive(Default)]
pub(super) struct Rate;

impl Form for Rate {}

/// A sender of the family. It stores only those parameters that it reads later.
pub(super) struct XcpSender<F> {
    pub(super) window: Window,
    form: F,
    on_loss: OnLoss,
    on_timeout: OnTimeout,
    counted: feedback::Params,
    aging: f64,
    aged_at: Time,
    most_in_flight: u32,
    was_limited: bool,
    /// The last feedback, for the probe.
    feedback: i32,
}

impl<F: Form> XcpSender<F> {
    pub(super) fn new(init: &SenderInit<'_>, params: Params) -> Self {
        let desired = params.desired_rate.map_or(init.interface.bytes_per_sec(), |rate| rate / 8.0);
        let window = Window { cwnd: init.initial_window, packet: init.packet, desired, srtt: 0.0 };
        XcpSender {
            window,
            form: F::default(),
            on_loss: params.on_loss,
            on_timeout: params.on_timeout,
            counted: params.feedback,
            aging: params.aging,
            aged_at: Time::ZERO,
            most_in_flight: 0,
            was_limited: false,
            feedback: 0,
        }
    }

    /// The header of the next packets, from window and RTT. The window is rounded down to whole packets, because its
    /// fraction is not sent and would overstate the rate, above all that of a small window. The desired rate is
    /// compared with the whole window.
    #[inline(always)]
    fn words(&self) -> (u32, u32, i32) {
        // The window is one packet at least.
        F::words(&self.window, self.window.cwnd as u32 as f64)
    }

    /// D03 section 3.1.1: an allowance that was not used for an RTT decays towards the used part.
    fn age(&mut self, ack: &Ack<'_>) {
        self.was_limited |= !ack.app_limited;
        self.most_in_flight = self.most_in_flight.max(ack.in_flight + ack.newly_acked);
        if ack.now.0 < self.aged_at.0 + ack.srtt.0 {
            return;
        }
        let used = self.most_in_flight as f64;
        let cwnd = self.window.cwnd;
        if !self.was_limited && used < cwnd {
            self.window.cwnd = ((1.0 - self.aging) * cwnd + self.aging * used).max(1.0);
        }
        self.aged_at = ack.now;
        self.most_in_flight = 0;
        self.was_limited = false;
    }
}

impl<F: Form> Sender for XcpSender<F> {
    const WRITES: Writes = F::WRITES;
    const HAS_TIMER: bool = false;

    fn allowance(&self) -> Allowance {
        Allowance { cwnd: self.window.cwnd, pacing: None }
    }

    fn on_attach(&mut self, own: Address) {
        self.form.attach(own);
    }

    fn on_start(&mut self, now: Time, rtt: Time) {
        self.window.srtt = rtt.as_secs_f64();
        self.aged_at = now;
    }

    #[inline(always)]
    fn on_send(&mut self, packet: &mut Packet, sent: &Sent) {
        let (x, rtt, request) = self.words();
        self.form.write(packet, (x, rtt, if sent.backlogged || request < 0 { request } else { 0 }));
    }

    #[inline(always)]
    fn on_ack(&mut self, ack: &Ack<'_>) {
        self.window.srtt = seconds(ack.srtt);
        self.feedback = ack.header.reverse_feedback();
        if self.counted.counts(ack) {
            self.window.cwnd = self.form.answered(&self.window, ack).max(1.0);
        }
        self.age(ack);
    }

    fn on_loss(&mut self, loss: &Loss) {
        let cwnd = self.window.cwnd;
        self.window.cwnd = match (loss.kind, self.on_timeout, self.on_loss) {
            (LossKind::Timeout, OnTimeout::Keep, _) => cwnd,
            (LossKind::Timeout, OnTimeout::Reset, _) | (_, _, OnLoss::Reset) => 1.0,
            (_, _, OnLoss::Keep) => cwnd,
            (_, _, OnLoss::Halve) => (cwnd / 2.0).max(1.0),
        };
    }

    fn resume(&mut self, now: Time, window: f64, srtt: Time) {
        (self.window.cwnd, self.window.srtt) = (window.max(1.0), srtt.as_secs_f64());
        (self.aged_at, self.most_in_flight, self.was_limited) = (now, 0, false);
    }

    fn probe(&self, put: Probe<'_>) {
        put("cwnd", self.window.cwnd);
        F::probe_header(self.feedback, self.words().0, put);
    }
}

/// Returns the granted parts of the requests.
#[derive(Default)]
pub(super) struct XcpReceiver {
    /// Feedback received since the last acknowledgement, bytes/s.
    pub(super) sum: i64,
}

impl Receiver for XcpReceiver {
    const ECHOES: bool = true;

    fn on_data(&mut self, _now: Time, packet: &Packet) {
        self.sum += rate_header::feedback(packet) as i64;
    }
    fn on_ack(&mut self, _now: Time, ack: &mut Packet) {
        let carried = self.sum.clamp(i32::MIN as i64, i32::MAX as i64);
        ack.congestion.set_reverse_feedback(carried as i32);
        self.sum -= carried;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{self, ack, loss, sent};
    use crate::units::Rate as LineRate;
    use crate::wire::{Congestion, Format};

    /// A sender with a window of ten packets of 1000 B and an RTT of 100 ms at an interface of 1 MB/s.
    fn sender(given: &[(&str, f64)]) -> Box<AnySender> {
        let values = testing::values(&[Params::PARAMS], given);
        let interface = LineRate::mbps(8);
        let init = SenderInit { values: &values, packet: 1000.0, initial_window: 10.0, interface };
        let mut sender = Xcp.sender(&init);
        sender.on_start(Time::ZERO, Time::millis(100));
        sender
    }
    fn sends(sender: &mut AnySender) -> Congestion {
        let mut p = Packet { ip_len: 1000, congestion: Congestion::new(Format::STANDARD), ..Packet::EMPTY };
        sender.on_send(&mut p, &sent(Time::ZERO, 0));
        p.congestion
    }

    #[test]
    fn the_request_is_spread_over_a_window() {
        let header = sends(&mut *sender(&[]));
        assert_eq!((header.x(), header.rtt()), (seconds_to_units(0.01), seconds_to_units(0.1)));
        // It sends 10 packets of 1000 B in 0.1 s and requests ten times that rate: 900 kB/s over 10 packets.
        assert_eq!(header.delta_throughput(), 90_000);
        // It requests 40 kB/s: 60 kB/s less, over 10 packets.
        assert_eq!(sends(&mut *sender(&[("desired_rate", 320e3)])).delta_throughput(), -6_000);
    }

    /// A window of 1.9 packets is one packet in 0.1 s. The target is 1 MB/s or 100 packets: the one packet requests
    /// 98.1.
    #[test]
    fn x_tells_the_whole_packets_that_are_sent() {
        let mut s = sender(&[]);
        let mut header = Congestion::new(Format::MINIMAL);
        header.set_reverse_feedback(-81_000);
        s.on_ack(&ack(Time::millis(50), &header));
        assert!((s.allowance().cwnd - 1.9).abs() < 1e-12);
        let sent = sends(&mut *s);
        assert_eq!((sent.x(), sent.delta_throughput()), (seconds_to_units(0.1), 981_000));
    }

    /// Before the first round trip X, RTT and request are unknown.
    #[test]
    fn without_a_round_trip_all_fields_are_zero() {
        let mut s = sender(&[]);
        s.on_start(Time::ZERO, Time::ZERO);
        let header = sends(&mut *s);
        assert_eq!((header.x(), header.rtt(), header.delta_throughput()), (0, 0, 0));
    }

    #[test]
    fn feedback_moves_the_window_by_rate_times_rtt() {
        let mut s = sender(&[]);
        let mut header = Congestion::new(Format::MINIMAL);
        header.set_reverse_feedback(5_000); // 5 kB/s for 0.1 s: half a packet
        s.on_ack(&ack(Time::millis(50), &header));
        assert_eq!(s.allowance().cwnd, 10.5);
        header.set_reverse_feedback(-200_000);
        s.on_ack(&ack(Time::millis(50), &header));
        assert_eq!(s.allowance().cwnd, 1.0, "one packet is the least");
    }

    #[test]
    fn duplicates_bring_feedback_too_unless_the_user_says_no() {
        let mut header = Congestion::new(Format::MINIMAL);
        header.set_reverse_feedback(5_000);
        for (follow, expected) in [(1.0, 10.5), (0.0, 10.0)] {
            let mut s = sender(&[("follow_duplicates", follow)]);
            s.on_ack(&Ack { duplicate: true, newly_acked: 0, ..ack(Time::millis(50), &header) });
            assert_eq!(s.allowance().cwnd, expected);
            s.on_ack(&ack(Time::millis(60), &header));
            assert_eq!(s.allowance().cwnd, expected + 0.5, "new data's always counts");
        }
    }

    #[test]
    fn losses_do_to_the_window_what_the_user_says() {
        let after = |given: &[(&str, f64)], kind| {
            let mut s = sender(given);
            s.on_loss(&loss(Time::ZERO, kind, 10));
            s.allowance().cwnd
        };
        let (resent, expired, marked) = (LossKind::Duplicates, LossKind::Timeout, LossKind::Mark);
        for (on_loss, expected) in [(OnLoss::Halve, 5.0), (OnLoss::Keep, 10.0), (OnLoss::Reset, 1.0)] {
            let on_loss = ("on_loss", on_loss as u8 as f64);
            assert_eq!(after(&[on_loss], resent), expected);
            assert_eq!(after(&[on_loss], marked), expected);
            assert_eq!(after(&[on_loss], expired), 1.0, "severe congestion");
            assert_eq!(after(&[on_loss, ("on_timeout", 1.0)], expired), 10.0);
        }
    }

    /// Ten packets allowed, four in flight, p = 0.5: seven after an RTT.
    #[test]
    fn an_unused_allowance_ages() {
        let mut s = sender(&[]);
        let header = Congestion::new(Format::MINIMAL);
        for ms in [60, 120] {
            let mut ack = ack(Time::millis(ms), &header);
            (ack.app_limited, ack.in_flight, ack.newly_acked) = (true, 3, 1);
            s.on_ack(&ack);
        }
        assert_eq!(s.allowance().cwnd, 7.0);
    }
}

//! DCTCP, Data Center TCP: the window falls by the share of marked packets, not by half.
//!
//! Sources: RFC 8257 (S. Bensley, D. Thaler, P. Balasubramanian, L. Eggert, G. Judd, 2017); M. Alizadeh and others,
//! "Data Center TCP (DCTCP)", SIGCOMM 2010 \[SIGCOMM10\]; RFC 9768 for the counts that receivers return; Linux 6.18
//! (`tcp_dctcp.c`) where these leave a choice.
//!
//! The idea: a switch marks every packet that arrives while more than K bytes wait. For TCP a mark is as bad as a loss,
//! and a short queue would leave the line idle. DCTCP's sender estimates which share of its packets is marked, alpha,
//! once in a window, and reduces its window by alpha / 2: by half if all are marked, by little if few are. So the queue
//! stays near K, and few segments of it are enough to keep the line busy.
//!
//! | symbol | field | unit | value | source |
//! | --- | --- | --- | --- | --- |
//! | DCTCP.Alpha | `alpha` | 1 | 1 at first, then alpha (1 - g) + g M | RFC 8257 section 3.3 |
//! | g | `g` | 1 | 1/16 | section 4.2; Linux |
//! | M | `MarkCount::take_share` | 1 | of a window | section 3.3 |
//! | DCTCP.BytesAcked, DCTCP.BytesMarked | `MarkCount` | segments | | section 3.3 |
//! | DCTCP.WindowEnd | `window_end` | segment | highest sent | section 3.3 |
//! | cwnd | `window.cwnd` | segments | cwnd (1 - alpha / 2), once a window | section 3.3 |
//! | r.cep, s.cep | `MarkReceiver::marks`, `MarkCount::marks` | packets mod 2^16 | | RFC 9768 section 3.2 |
//! | K | `threshold` of `step` | bytes | more than C RTT / 7 | \[SIGCOMM10\] section 3.4 |
//!
//! The queue that marks is [`step`](crate::qdisc::step). TCP with ECN halves its window where DCTCP does not, and TCP
//! without ECN fills the queue: DCTCP is for networks with one operator (RFC 8257 section 5).
//!
//! Deviations:
//! 1. The receiver returns the number of marked packets, as AccECN does (RFC 9768). It has 16 bits, where AccECN has
//!    three bits of the packets and, in an option, 24 bits of their bytes: as exact as the option, as segments are
//!    equally long. RFC 8257's receiver returns one bit, and answers at once where it changes (section 3.2). By counts
//!    neither delayed nor lost acknowledgements distort M. There is no CWR bit, which RFC 3168's receivers need.
//! 2. Segments count, not bytes: those that arrived, by acknowledgements and SACK, as Linux counts them. RFC 8257
//!    ignores SACK.
//! 3. All data packets are ECN-capable (ECT(0)), also retransmissions, as Linux sends them; with `ecn = false` too,
//!    which is for protocols without ECN of their own. SYNs and acknowledgements are not. RFC 8257 asks for ECT on
//!    SYNs, SYN-ACKs and RSTs (section 3.6), against their loss, and recommends that acknowledgements can have it
//!    (4.1). Linux does so, FreeBSD sends plain SYNs. It matters where the queue drops what it cannot mark, as `step`
//!    with `drop`.
//! 4. An acknowledgement that reports marks does not grow the window (RFC 3168 section 6.1.2). So windows rest for a
//!    round trip after each reduction, as in Linux, and alpha is less than \[SIGCOMM10\] section 3.3 has it.
//! 5. A loss halves what is in flight, as in TCP (section 3.5), and is the reduction of its window: marks of the same
//!    window do not reduce again. A loss after them does, as in Linux, where section 3.5 has one reduction for all
//!    signals of a window. The window is at least two segments, as in Linux, except after a timeout, which leaves one.
//! 6. A reduction is made at once, with the first mark of a window; in the list of section 3.3 it follows the end of a
//!    window. Linux begins with the first mark, too, spreads it over a round trip (RFC 6937), and ends a window of
//!    alpha one segment earlier.
//! 7. Both ends have DCTCP because the scenario says so; section 4.1 knows no negotiation either. Losses leave alpha,
//!    whose reset is an option there.
//!
//! RFC 8257 was read whole; alpha's first value, g, the nine steps and the two at the extremes of alpha (section 4.2)
//! are as above. Of RFC 9768 the last draft was read, draft-ietf-tcpm-accurate-ecn-34; `common/marks.rs` lists what
//! else of it is not done.

use alloc::boxed::Box;

use crate::api::{
    Ack, Allowance, AnyReceiver, AnySender, Loss, LossKind, Probe, Protocol, Sender, SenderInit, Sent, Undo,
};
use crate::params::{Fraction, Info, parameters};
use crate::protocols::common::marks::{MarkCount, MarkReceiver};
use crate::protocols::common::window::{Window, WindowParams};
use crate::units::Time;
use crate::wire::{Ecn, Packet};

/// DCTCP.
pub struct Dctcp;

parameters! {
    /// What a scenario can set.
    pub struct Params {
        /// Weight of the newest window in alpha.
        g: Fraction = 0.0625, in 1e-6..=1.0, "RFC 8257 section 4.2";
        /// Start, growth and idle times.
        window: WindowParams = WindowParams::DEFAULT;
    }
}

impl Protocol for Dctcp {
    const INFO: Info = Info {
        name: "dctcp",
        summary: "DCTCP: the window falls by half of the share of packets that a queue marks",
        source: "RFC 8257, RFC 9768",
        params: Params::PARAMS,
    };
    const OWN_ECN: bool = true;

    fn sender(&self, init: &SenderInit<'_>) -> Box<AnySender> {
        let params = Params::of(init.values);
        Box::new(DctcpSender {
            window: Window::of(init, params.window),
            g: params.g,
            alpha: 1.0,
            marks: MarkCount::default(),
            window_end: 0,
            reduced_until: 0,
            highest: 0,
        })
    }
    fn receiver(&self) -> Option<Box<AnyReceiver>> {
        Some(Box::<MarkReceiver>::default())
    }
}

struct DctcpSender {
    window: Window,
    g: f64,
    alpha: f64,
    marks: MarkCount,
    /// The window of alpha ends when this segment is acknowledged.
    window_end: u32,
    /// The window is not reduced again before this segment is acknowledged.
    reduced_until: u32,
    /// One past the highest segment sent.
    highest: u32,
}

impl DctcpSender {
    /// RFC 8257 section 3.3, steps 1 to 8; whether this acknowledgement reports marks.
    fn count(&mut self, ack: &Ack<'_>) -> bool {
        self.highest = ack.highest_sent;
        let marked = self.marks.count(ack) > 0;
        if ack.cumulative > self.window_end && self.marks.arrived() > 0 {
            self.alpha += self.g * (self.marks.take_share() - self.alpha);
            self.window_end = ack.highest_sent;
        }
        marked
    }
    /// The reduction of a window in which packets were marked.
    fn reduce(&mut self) {
        self.window.ssthresh = (self.window.cwnd * (1.0 - self.alpha / 2.0)).max(2.0);
        self.window.cwnd = self.window.ssthresh;
        self.reduced_until = self.highest;
    }
}

impl Sender for DctcpSender {
    const HAS_TIMER: bool = false;

    fn allowance(&self) -> Allowance {
        Allowance { cwnd: self.window.cwnd, pacing: None }
    }

    fn on_send(&mut self, packet: &mut Packet, _sent: &Sent) {
        packet.set_ecn(Ecn::Capable0);
    }

    fn on_ack(&mut self, ack: &Ack<'_>) {
        let marked = self.count(ack);
        let grows = self.window.grows(ack);
        if marked {
            if ack.cumulative > self.reduced_until {
                self.reduce();
            }
        } else if grows && !self.window.slow_start(ack.newly_acked, 1.0) {
            self.window.rise(1.0, ack.newly_acked);
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        match loss.kind {
            // Only of a receiver without counts.
            LossKind::Mark => return self.reduce(),
            LossKind::Duplicates | LossKind::Timeout => self.window.reduce(loss, 0.5),
        }
        self.reduced_until = self.highest;
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
        put("alpha", self.alpha);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use crate::wire::{Congestion, Transport};

    fn sender(window: f64) -> Box<AnySender> {
        testing::sender(&Dctcp, window, &[])
    }
    fn alpha(s: &AnySender) -> f64 {
        testing::probed(|put| s.probe(put), "alpha")
    }
    /// An acknowledgement up to `cumulative` of `newly_acked` segments, with the receiver's count; segments up to
    /// `highest` have been sent.
    fn deliver(s: &mut AnySender, cumulative: u32, newly_acked: u32, highest_sent: u32, marks: u16) -> f64 {
        let mut transport = Transport::EMPTY;
        transport.set_receiver_stamp(marks);
        let ack = testing::ack(Time::ZERO, &Congestion::NONE);
        s.on_ack(&Ack { transport: &transport, cumulative, newly_acked, highest_sent, selective: true, ..ack });
        s.allowance().cwnd
    }

    /// The first acknowledgement ends a window of its own: 15/16. The second window has eleven segments, four of them
    /// marked, the third eleven marked ones: 15/16 + (4/11 - 15/16) / 16, and a sixteenth of the way to 1.
    #[test]
    fn alpha_by_hand() {
        let mut s = sender(10.0);
        assert_eq!(alpha(&*s), 1.0);
        deliver(&mut *s, 1, 1, 11, 0);
        assert_eq!(alpha(&*s), 0.9375);
        for n in 2..=11 {
            deliver(&mut *s, n, 1, 21, (n - 1).min(4) as u16);
            assert_eq!(alpha(&*s), 0.9375, "the window ends beyond segment 11: {n}");
        }
        deliver(&mut *s, 12, 1, 22, 4);
        let second = 0.9375 + (4.0 / 11.0 - 0.9375) / 16.0;
        assert!((alpha(&*s) - second).abs() < 1e-12, "{}", alpha(&*s));
        (13..=23).for_each(|n| {
            deliver(&mut *s, n, 1, 40, 4 + (n - 12) as u16);
        });
        let third = second + (1.0 - second) / 16.0;
        assert!((alpha(&*s) - third).abs() < 1e-12, "{}", alpha(&*s));
    }

    /// A share of marks that stays: alpha goes to it by 15/16 a window.
    #[test]
    fn alpha_goes_to_the_share_of_marks() {
        let mut s = sender(10.0);
        let (mut cumulative, mut marks) = (0, 0u16);
        for window in 0..60 {
            for n in 0..10 {
                cumulative += 1;
                marks = marks.wrapping_add((n == 0) as u16);
                deliver(&mut *s, cumulative, 1, 10 * window + 10, marks);
            }
        }
        // After 60 windows (15/16)^60 = 0.021 of the way from 1 are left.
        assert!((alpha(&*s) - 0.1).abs() < 0.03, "{}", alpha(&*s));
    }

    /// From 100, all of a window of one segment marked, so alpha is 1 and the window 50. Further marks before segment
    /// 200 do not reduce. Then two of the segments 2 to 201 are marked: alpha is 1 + (2/200 - 1) / 16 = 0.938125.
    #[test]
    fn the_window_is_reduced_once_by_half_of_alpha() {
        let mut s = sender(100.0);
        assert_eq!(deliver(&mut *s, 1, 1, 200, 1), 50.0);
        assert_eq!(deliver(&mut *s, 2, 1, 201, 2), 50.0, "marks neither reduce again nor let the window grow");
        let grown = deliver(&mut *s, 200, 198, 202, 2);
        assert!((grown - 53.96).abs() < 1e-9, "congestion avoidance, 198/50 more: {grown}");
        let reduced = deliver(&mut *s, 201, 1, 203, 3);
        assert!((alpha(&*s) - 0.938_125).abs() < 1e-12, "{}", alpha(&*s));
        assert!((reduced - 53.96 * (1.0 - 0.938_125 / 2.0)).abs() < 1e-9, "{reduced}");
        let mut s = sender(2.0);
        assert_eq!(deliver(&mut *s, 1, 1, 3, 1), 2.0, "two segments at least");
    }

    /// The count repeats after 2^16, and one that is older says nothing.
    #[test]
    fn counts_wrap_and_may_be_overtaken() {
        let mut s = sender(10.0);
        deliver(&mut *s, 1, 1, 100, u16::MAX);
        let before = s.allowance().cwnd;
        assert_eq!(before, 11.0, "65,535 more are one less: an older count");
        deliver(&mut *s, 2, 1, 101, 3);
        assert!(s.allowance().cwnd < before);
    }

    #[test]
    fn losses_halve_what_is_in_flight() {
        let mut s = sender(100.0);
        s.on_loss(&testing::loss(Time::ZERO, LossKind::Duplicates, 80));
        assert_eq!((s.allowance().cwnd, s.threshold()), (40.0, 40.0));
        s.on_loss(&testing::loss(Time::ZERO, LossKind::Timeout, 40));
        assert_eq!((s.allowance().cwnd, s.threshold()), (1.0, 20.0));
        let mut s = sender(100.0);
        s.on_loss(&testing::loss(Time::ZERO, LossKind::Mark, 100));
        assert_eq!(s.allowance().cwnd, 50.0, "alpha is one at first");
    }

    #[test]
    fn all_data_packets_are_ecn_capable() {
        let mut packet = Packet::EMPTY;
        sender(10.0).on_send(&mut packet, &testing::sent(Time::ZERO, 0));
        assert_eq!(packet.ecn(), Ecn::Capable0);
    }
}

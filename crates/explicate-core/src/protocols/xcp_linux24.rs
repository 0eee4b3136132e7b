//! XCP's sender as a kernel of Linux 2.4 has it: whole packets, and rate halving while a loss is repaired.
//!
//! Sources: Zhang, Henderson, "An Implementation and Experimental Study of the eXplicit Control Protocol (XCP)",
//! INFOCOM 2005 \[ZH05\], an implementation in Linux 2.4, which paper N ran; Mathis, Semke, Mahdavi, "The Rate-Halving
//! Algorithm for TCP Congestion Control", draft-mathis-tcp-ratehalving-00, 1999 \[RH\], which that kernel's TCP follows:
//! `tcp_cwnd_down` and `tcp_complete_cwr` in its `net/ipv4/tcp_input.c` \[L24\]. Of ZH05 and RH only the abstracts
//! were available.
//!
//! The idea: routers, headers and feedback are those of `xcp.rs`. A kernel counts its window in whole packets. When a
//! loss is found it does not halve the window at once: while the loss is repaired, every second acknowledgement takes
//! one packet away, down to half of the window. Feedback arrives in the same acknowledgements and is added meanwhile,
//! so the window of a link with spare bandwidth falls by less.
//!
//! | what | field | unit | value | source |
//! | --- | --- | --- | --- | --- |
//! | acknowledgements for each packet less | `FOR_EACH` | 1 | 2 | L24; RH, abstract |
//! | least window of a repair | `floor` | segments | half | ours, deviation 2 |
//! | feedback of less than a packet | `fractions` | | kept | ours, deviation 1 |
//!
//! Deviations:
//! 1. What the kernel does with feedback of less than a packet is not known. `fractions = "kept"` sums it up until it
//!    makes a packet; `cut` drops what each acknowledgement brings beyond whole packets. Cut, a window stops growing
//!    where 2 * 0.4 * missing / window < 1 with delayed acknowledgements, at 44 % of the pipe.
//! 2. The kernel's TCP takes more away: it goes down to a quarter of the window (half of the new threshold), to one
//!    packet more than is in flight, and at the end of a repair to half of the old window. What ZH05 changed there is
//!    not known. Here half is the floor, and the feedback of a repair is kept, as the routers have granted it. Unless
//!    ZH05 kept more than that, windows here are the largest that the kernel can have.
//! 3. A mark halves the window at once: paper N has none.

use alloc::boxed::Box;

use crate::agent::Address;
use crate::api::{
    Ack, Allowance, AnyProtocol, AnyReceiver, AnySender, Loss, LossKind, Probe, Protocol, Sender, SenderInit, Sent,
    Writes,
};
use crate::params::{Info, choices, parameters};
use crate::protocols::xcp::{self, OnLoss, Rate, Xcp, XcpReceiver, XcpSender};
use crate::units::Time;
use crate::wire::Packet;

/// XCP's sender of Linux 2.4.
pub struct XcpLinux24;

/// Acknowledgements of a repair that take one packet from the window.
const FOR_EACH: u32 = 2;

choices! {
    /// Feedback of less than a packet.
    enum Fractions { Kept = "kept", Cut = "cut" }
}

parameters! {
    /// Sender parameters.
    struct Params {
        /// Feedback of less than a packet: summed up, or cut off at each acknowledgement.
        fractions: Fractions = Fractions::Kept, "ours";
        /// Those of XCP's sender; `on_loss` is what a loss does at once, before the rate halving.
        family: xcp::Params = xcp::Params { on_loss: OnLoss::Keep, ..xcp::Params::DEFAULT };
    }
}

impl Protocol for XcpLinux24 {
    const INFO: Info = Info {
        name: "xcp_linux24",
        summary: "XCP's sender of a Linux 2.4 kernel: rate halving while a loss is repaired",
        source: "Zhang, Henderson, INFOCOM 2005; Mathis, Semke, Mahdavi 1999",
        params: Params::PARAMS,
    };
    const EXPLICIT: bool = true;
    const CONTROLLER: Option<&'static AnyProtocol> = Some(&Xcp);

    fn sender(&self, init: &SenderInit<'_>) -> Box<AnySender> {
        let params = Params::of(init.values);
        Box::new(KernelSender {
            xcp: XcpSender::new(init, params.family),
            cut: params.fractions == Fractions::Cut,
            floor: None,
            acks: 0,
        })
    }
    fn receiver(&self) -> Option<Box<AnyReceiver>> {
        Some(Box::<XcpReceiver>::default())
    }
}

struct KernelSender {
    xcp: XcpSender<Rate>,
    cut: bool,
    /// While a loss is repaired, the least window that rate halving leaves, segments; infinite after a timeout.
    floor: Option<f64>,
    /// Acknowledgements of this repair.
    acks: u32,
}

impl KernelSender {
    /// An acknowledgement of a repair, or of none, that found this window.
    fn halve_slowly(&mut self, before: f64, recovering: bool) {
        if !recovering {
            (self.floor, self.acks) = (None, 0);
            return;
        }
        let floor = *self.floor.get_or_insert((before / 2.0).max(1.0));
        self.acks = self.acks.wrapping_add(1);
        let cwnd = &mut self.xcp.window.cwnd;
        if self.acks.is_multiple_of(FOR_EACH) && *cwnd - 1.0 >= floor {
            *cwnd -= 1.0;
        }
    }
}

impl Sender for KernelSender {
    const WRITES: Writes = Writes::PerEvent;
    const HAS_TIMER: bool = false;

    fn allowance(&self) -> Allowance {
        self.xcp.allowance()
    }
    fn on_attach(&mut self, own: Address) {
        self.xcp.on_attach(own);
    }
    fn on_start(&mut self, now: Time, rtt: Time) {
        self.xcp.on_start(now, rtt);
    }
    fn on_send(&mut self, packet: &mut Packet, sent: &Sent) {
        self.xcp.on_send(packet, sent);
    }
    fn on_ack(&mut self, ack: &Ack<'_>) {
        let before = self.xcp.window.cwnd;
        self.xcp.on_ack(ack);
        if self.cut {
            let cwnd = &mut self.xcp.window.cwnd;
            *cwnd = (before + libm::trunc(*cwnd - before)).max(1.0);
        }
        self.halve_slowly(before, ack.recovering);
    }
    fn on_loss(&mut self, loss: &Loss) {
        let half = (self.xcp.window.cwnd / 2.0).max(1.0);
        self.xcp.on_loss(loss);
        match loss.kind {
            LossKind::Timeout => self.floor = Some(f64::INFINITY),
            LossKind::Mark => self.xcp.window.cwnd = self.xcp.window.cwnd.min(half),
            LossKind::Duplicates => {}
        }
    }
    fn resume(&mut self, now: Time, window: f64, srtt: Time) {
        self.xcp.resume(now, window, srtt);
        (self.floor, self.acks) = (None, 0);
    }
    fn probe(&self, put: Probe<'_>) {
        self.xcp.probe(put);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{self, ack, loss};
    use crate::wire::{Congestion, Format};

    /// A window of 20 packets of 1000 B, an RTT of 100 ms.
    fn sender(given: &[(&str, f64)]) -> Box<AnySender> {
        let mut sender = testing::sender(&XcpLinux24, 20.0, given);
        sender.on_start(Time::ZERO, Time::millis(100));
        sender
    }
    /// The windows after acknowledgements, of a repair or not, with this feedback each, bytes/s.
    fn windows(sender: &mut AnySender, count: u64, feedback: i32, recovering: bool) -> alloc::vec::Vec<f64> {
        let mut header = Congestion::new(Format::MINIMAL);
        header.set_reverse_feedback(feedback);
        let one = |i| {
            sender.on_ack(&Ack { recovering, duplicate: recovering, ..ack(Time::millis(i), &header) });
            sender.allowance().cwnd
        };
        (1..=count).map(one).collect()
    }

    #[test]
    fn every_second_acknowledgement_of_a_repair_takes_a_packet_down_to_half() {
        let mut s = sender(&[]);
        s.on_loss(&loss(Time::ZERO, LossKind::Duplicates, 20));
        assert_eq!(s.allowance().cwnd, 20.0, "nothing at once");
        let all = windows(&mut *s, 30, 0, true);
        assert_eq!(all[..4], [20.0, 19.0, 19.0, 18.0]);
        assert_eq!((all[19], all[29]), (10.0, 10.0));
        assert_eq!(windows(&mut *s, 2, 0, false), [10.0, 10.0], "the repair is over");
        assert_eq!(windows(&mut *s, 2, 0, true), [10.0, 9.0], "the next begins with its own half");
    }

    /// 5 kB/s for 0.1 s are half a packet: two acknowledgements bring what they take.
    #[test]
    fn feedback_refills_the_window_meanwhile() {
        let mut s = sender(&[]);
        s.on_loss(&loss(Time::ZERO, LossKind::Duplicates, 20));
        assert_eq!(windows(&mut *s, 4, 5_000, true), [20.5, 20.0, 20.5, 20.0]);
    }

    #[test]
    fn fractions_are_kept_or_cut() {
        assert_eq!(windows(&mut *sender(&[]), 2, 5_000, false), [20.5, 21.0]);
        let mut s = sender(&[("fractions", 1.0)]);
        assert_eq!(windows(&mut *s, 2, 5_000, false), [20.0, 20.0]);
        assert_eq!(windows(&mut *s, 2, 15_000, false), [21.0, 22.0]);
        assert_eq!(windows(&mut *s, 2, -15_000, false), [21.0, 20.0]);
    }

    #[test]
    fn after_a_timeout_only_feedback_moves_the_window() {
        let mut s = sender(&[]);
        s.on_loss(&loss(Time::ZERO, LossKind::Timeout, 20));
        assert_eq!(windows(&mut *s, 3, 10_000, true), [2.0, 3.0, 4.0]);
    }

    #[test]
    fn a_mark_halves_the_window_once_whatever_a_loss_does_at_once() {
        for (on_loss, expected) in [(OnLoss::Halve, 10.0), (OnLoss::Keep, 10.0), (OnLoss::Reset, 1.0)] {
            let mut s = sender(&[("on_loss", on_loss as u8 as f64)]);
            s.on_loss(&loss(Time::ZERO, LossKind::Mark, 20));
            assert_eq!(s.allowance().cwnd, expected);
        }
    }
}

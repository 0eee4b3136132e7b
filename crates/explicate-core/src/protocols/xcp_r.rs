//! XCP-r: the receiver computes the window, so that lost acknowledgements lose no feedback.
//!
//! Source: Lopez Pacheco, Pham, "Robust Transport Protocol for Dynamic High-Speed Networks: enhancing the XCP
//! approach", IEEE MICC-ICON 2005, which was not available: this implementation follows the one known sentence about
//! it (the receiver computes the window and returns it instead of a change). Paper I cites it.
//!
//! The idea: XCP's feedback is a change of the window. If an acknowledgement is lost, the change is lost too,
//! although routers have accounted for it. If the receiver sums up the changes and returns the sum, any later
//! acknowledgement contains those of the lost ones. The sender's headers and the routers are XCP's.
//!
//! | what | field | unit | where it travels |
//! | --- | --- | --- | --- |
//! | sum of all changes of the window that arrived | `total` | bytes, modulo 2^32 | Reverse_Feedback |
//! | the last sum that the sender received | `total_seen` | bytes | |
//!
//! Deviations (the original is not known):
//! 1. The returned value is the window up to a constant: the sum of the changes since the flow began. The sender also
//!    changes its window by itself (a timeout, a loss, an unused allowance). A receiver that returned the window
//!    would need a report of every such change, and of the segments in flight at that time; the difference of two
//!    sums needs neither.
//! 2. Reverse_Feedback, bytes/s in the draft, holds bytes of window: each change of rate times the RTT of its packet. A
//!    rate would grow the window with a growing queue.
//! 3. Lost *data* packets take their feedback with them, as in XCP.

use alloc::boxed::Box;

use crate::api::{Ack, AnyProtocol, AnyReceiver, AnySender, Probe, Protocol, Receiver, SenderInit};
use crate::params::Info;
use crate::protocols::common::rate_header::SECONDS;
use crate::protocols::xcp::{self, Form, Window, Xcp, XcpSender};
use crate::units::Time;
use crate::wire::Packet;

/// XCP-r.
pub struct XcpR;

impl Protocol for XcpR {
    const INFO: Info = Info {
        name: "xcp_r",
        summary: "XCP-r: the receiver computes the window, so that lost acknowledgements lose no feedback",
        source: "Lopez Pacheco, Pham, MICC-ICON 2005",
        params: xcp::Params::PARAMS,
    };
    const EXPLICIT: bool = true;
    const CONTROLLER: Option<&'static AnyProtocol> = Some(&Xcp);

    fn sender(&self, init: &SenderInit<'_>) -> Box<AnySender> {
        Box::new(XcpSender::<Absolute>::new(init, xcp::Params::of(init.values)))
    }
    fn receiver(&self) -> Option<Box<AnyReceiver>> {
        Some(Box::<XcpRReceiver>::default())
    }
}

/// The fields are those of the rate form; the feedback is a sum.
#[derive(Default)]
struct Absolute {
    total_seen: i32,
}

impl Form for Absolute {
    fn answered(&mut self, window: &Window, ack: &Ack<'_>) -> f64 {
        let total = ack.header.reverse_feedback();
        let change = total.wrapping_sub(self.total_seen);
        self.total_seen = total;
        window.cwnd + change as f64 / window.packet
    }
    fn probe_header(feedback: i32, _x: u32, put: Probe<'_>) {
        put("heard_bytes", feedback as f64);
    }
}

#[derive(Default)]
struct XcpRReceiver {
    total: f64,
}

impl Receiver for XcpRReceiver {
    fn on_data(&mut self, _now: Time, packet: &Packet) {
        let header = &packet.congestion;
        if header.is_standard() {
            self.total += header.delta_throughput() as f64 * (header.rtt() as f64 * SECONDS);
        }
    }
    fn on_ack(&mut self, _now: Time, ack: &mut Packet) {
        ack.congestion.set_reverse_feedback((self.total + 0.5f64.copysign(self.total)) as i64 as i32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::LossKind;
    use crate::protocols::common::rate_header::seconds_to_units;
    use crate::testing::{self, ack, loss};
    use crate::wire::{Congestion, Format};

    /// A window of ten packets of 1000 B, an RTT of 100 ms.
    fn pair() -> (Box<AnySender>, Box<AnyReceiver>) {
        let mut sender = testing::sender(&XcpR, 10.0, &[]);
        sender.on_start(Time::ZERO, Time::millis(100));
        (sender, XcpR.receiver().unwrap())
    }
    /// The acknowledgement of a packet that arrives with `feedback`.
    fn answer(receiver: &mut AnyReceiver, feedback: i32) -> Congestion {
        let mut data = Packet { ip_len: 1000, congestion: Congestion::new(Format::STANDARD), ..Packet::EMPTY };
        data.congestion.set_rtt(seconds_to_units(0.1));
        data.congestion.set_delta_throughput(feedback);
        receiver.on_data(Time::ZERO, &data);
        let mut ack = Packet { congestion: Congestion::new(Format::MINIMAL), ..Packet::EMPTY };
        receiver.on_ack(Time::ZERO, &mut ack);
        ack.congestion
    }
    fn deliver_ack(sender: &mut AnySender, header: Congestion) -> f64 {
        sender.on_ack(&ack(Time::millis(1), &header));
        sender.allowance().cwnd
    }

    /// 5 kB/s for 0.1 s are 500 B, half a packet: four of them make two packets, whichever acknowledgement arrives.
    #[test]
    fn one_answer_says_what_the_lost_ones_did() {
        let (mut sender, mut receiver) = pair();
        let answers = [5_000; 4].map(|feedback| answer(&mut *receiver, feedback));
        assert_eq!(answers.map(|a| a.reverse_feedback()), [500, 1000, 1500, 2000]);
        assert_eq!(deliver_ack(&mut *sender, answers[3]), 12.0);
        assert_eq!(deliver_ack(&mut *sender, answers[3]), 12.0, "the same again changes nothing");
        answer(&mut *receiver, -20_000);
        assert_eq!(deliver_ack(&mut *sender, answer(&mut *receiver, -5_000)), 9.5);
    }

    #[test]
    fn what_the_sender_decides_is_not_undone() {
        let (mut sender, mut receiver) = pair();
        deliver_ack(&mut *sender, answer(&mut *receiver, 20_000));
        let under_way = answer(&mut *receiver, 5_000);
        sender.on_loss(&loss(Time::ZERO, LossKind::Timeout, 10));
        assert_eq!(sender.allowance().cwnd, 1.0);
        assert_eq!(deliver_ack(&mut *sender, under_way), 1.5);
    }

    #[test]
    fn the_sum_may_wrap() {
        let (mut sender, mut receiver) = pair();
        for _ in 0..30 {
            answer(&mut *receiver, 1_000_000_000); // 10^8 B each
        }
        let far = answer(&mut *receiver, 0);
        deliver_ack(&mut *sender, far);
        let before = sender.allowance().cwnd;
        assert_eq!(deliver_ack(&mut *sender, answer(&mut *receiver, 10_000)), before + 1.0);
    }
}

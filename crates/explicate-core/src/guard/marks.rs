//! Marks on the way: set by routers that answer, returned by receivers.

use alloc::boxed::Box;

use crate::api::object::RouterObject;
use crate::api::{AnyReceiver, AnyRouter, PortView, Probe, Receiver};
use crate::qdisc::DropCause;
use crate::units::Time;
use crate::wire::{Mark, Packet};

/// A controller that marks the packets that it answers.
pub struct Marking {
    controller: Box<AnyRouter>,
    /// A bit for each flow, by the low bits of its number. It is set when the port drops a packet of the flow, and cleared when the
    /// next one arrives.
    dropped: u64,
}

impl Marking {
    /// Around this controller.
    pub fn new(controller: Box<AnyRouter>) -> Marking {
        Marking { controller, dropped: 0 }
    }
    fn bit(packet: &Packet) -> u64 {
        1 << (packet.transport.flow() % u64::BITS)
    }
}

impl RouterObject for Marking {
    fn on_arrival(&mut self, now: Time, packet: &mut Packet, port: &PortView) {
        if self.controller.writes_into(packet) {
            // In service may be a packet like this one.
            let ahead = port.backlog_bytes + if port.busy { packet.ip_len as u64 } else { 0 };
            let wait = if ahead == 0 { Time::ZERO } else { Time::from_secs_f64(ahead as f64 / port.capacity) };
            let behind_a_drop = self.dropped & Marking::bit(packet) != 0;
            self.dropped &= !Marking::bit(packet);
            packet.set_mark(if behind_a_drop { packet.mark().after_drop() } else { packet.mark().after(wait) });
        }
        self.controller.on_arrival(now, packet, port);
    }
    fn writes_into(&self, packet: &Packet) -> bool {
        self.controller.writes_into(packet)
    }
    fn shared(&self, port: &PortView) -> Option<f64> {
        self.controller.shared(port)
    }
    fn on_departure(&mut self, now: Time, packet: &mut Packet, port: &PortView) {
        self.controller.on_departure(now, packet, port);
    }
    fn order_independent(&self) -> bool {
        self.controller.order_independent()
    }
    fn on_least_backlog(&mut self, bytes: u64) {
        self.controller.on_least_backlog(bytes);
    }
    fn on_drop(&mut self, now: Time, packet: &Packet, cause: DropCause, port: &PortView) {
        if self.controller.writes_into(packet) {
            self.dropped |= Marking::bit(packet);
        }
        self.controller.on_drop(now, packet, cause, port);
    }
    fn on_timer(&mut self, now: Time, port: &PortView) {
        self.controller.on_timer(now, port);
    }
    fn next_timer(&self) -> Time {
        self.controller.next_timer()
    }
    fn probe(&self, put: Probe<'_>) {
        self.controller.probe(put);
    }
}

/// A receiver that returns what routers have answered in marked packets, and the mark.
pub(crate) struct Echoing {
    receiver: Option<Box<AnyReceiver>>,
    /// The sender wants it so.
    marks: bool,
    /// The last mark since the last acknowledgement, or one that reports a drop.
    mark: Option<Mark>,
    /// Data packets that have arrived, modulo 2^16.
    arrived: u16,
}

impl Echoing {
    pub(crate) fn new(receiver: Option<Box<AnyReceiver>>) -> Echoing {
        Echoing { receiver, marks: false, mark: None, arrived: 0 }
    }
}

impl Receiver for Echoing {
    fn on_open(&mut self, marks: bool) {
        self.marks = marks;
        if let Some(receiver) = &mut self.receiver {
            receiver.on_open(marks);
        }
    }
    fn on_data(&mut self, now: Time, packet: &Packet) {
        let mark = packet.mark();
        self.arrived = self.arrived.wrapping_add(1);
        let reports_drop = self.mark.is_some_and(Mark::is_behind_drop);
        if mark.is_set() && !reports_drop {
            self.mark = Some(mark);
        }
        if let Some(receiver) = &mut self.receiver
            && (mark.is_set() || !self.marks)
        {
            receiver.on_data(now, packet);
        }
    }
    fn on_ack(&mut self, now: Time, ack: &mut Packet) {
        let mark = self.mark.take();
        if let Some(receiver) = &mut self.receiver
            && (mark.is_some() || !self.marks)
        {
            receiver.on_ack(now, ack);
        }
        if self.marks {
            ack.transport.set_arrived(self.arrived);
            if let Some(mark) = mark {
                ack.set_mark(mark);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{AnyProtocol, RouterInit};
    use crate::guard::tests::{explicit, sender};
    use crate::params::Values;
    use crate::registry;
    use crate::rng::Rng;
    use crate::testing::sent;
    use crate::wire::{Congestion, Format, flag};

    /// A data packet as this protocol sends it.
    fn data(protocol: &AnyProtocol) -> Packet {
        let mut packet = Packet { ip_len: 1000, ..Packet::EMPTY };
        packet.transport.set_payload(900);
        if protocol.congestion_header() {
            packet.congestion = Congestion::new(Format::STANDARD);
        }
        let sender = &mut *sender(protocol);
        sender.state(&mut packet.congestion);
        sender.on_send(&mut packet, &sent(Time::ZERO, 0));
        packet
    }
    fn router(protocol: &'static AnyProtocol) -> Box<AnyRouter> {
        let values = Values::default();
        let rng = Rng::stream(1, "test");
        let init = RouterInit { values: &values, capacity: 1e6, delay: Time::ZERO, rng };
        registry::controller(protocol).unwrap().router(&init).unwrap()
    }

    /// 40 kB wait before 1 MB/s: 40 ms, which marks of either kind give to half a unit.
    #[test]
    fn controllers_mark_what_they_speak_to_and_nothing_else() {
        let view = PortView { capacity: 1e6, backlog_bytes: 39_000, backlog_packets: 39, busy: true };
        for protocol in explicit() {
            let mut marking = Marking::new(router(protocol));
            let mut packet = data(protocol);
            assert!(!packet.mark().is_set(), "{}: a sender marks nothing", protocol.name());
            marking.on_arrival(Time::ZERO, &mut packet, &view);
            marking.on_departure(Time::ZERO, &mut packet, &view);
            let waited = packet.mark().waited().unwrap();
            assert!(packet.mark().is_set() && waited.since(Time::millis(40)) <= Time::millis(8), "{waited:?}");
            for other in explicit().filter(|other| other.congestion_header() != protocol.congestion_header()) {
                let mut foreign = data(other);
                marking.on_arrival(Time::ZERO, &mut foreign, &view);
                assert!(!foreign.mark().is_set(), "{} speaks to no {}", protocol.name(), other.name());
            }
            let mut answer = Packet { congestion: Congestion::new(Format::MINIMAL), ..Packet::EMPTY };
            answer.transport.set_flags(flag::ACK);
            marking.on_arrival(Time::ZERO, &mut answer, &view);
            assert!(!answer.mark().is_set(), "{}: an acknowledgement", protocol.name());
        }
    }

    #[test]
    fn an_answer_without_a_mark_is_passed_over() {
        let xcp = registry::protocol("xcp").unwrap();
        let mut receiver = Echoing::new(xcp.receiver());
        receiver.on_open(true);
        let mut returns = |marked: bool| {
            let mut packet = data(xcp);
            packet.congestion.set_delta_throughput(700);
            if marked {
                packet.set_mark(packet.mark().after(Time::millis(8)));
            }
            receiver.on_data(Time::ZERO, &packet);
            let mut ack = Packet { congestion: Congestion::new(Format::MINIMAL), ..Packet::EMPTY };
            receiver.on_ack(Time::ZERO, &mut ack);
            (
                ack.congestion.reverse_feedback(),
                ack.mark().waited().filter(|_| ack.mark().is_set()),
                ack.transport.arrived(),
            )
        };
        assert_eq!(
            [returns(false), returns(true), returns(false)],
            [(0, None, 1), (700, Some(Time::millis(8)), 2), (0, None, 3)]
        );
        let mut receiver = Echoing::new(xcp.receiver());
        receiver.on_open(false);
        let mut packet = data(xcp);
        packet.congestion.set_delta_throughput(700);
        receiver.on_data(Time::ZERO, &packet);
        let mut ack = Packet { congestion: Congestion::new(Format::MINIMAL), ..Packet::EMPTY };
        receiver.on_ack(Time::ZERO, &mut ack);
        assert_eq!(ack.congestion.reverse_feedback(), 700, "the sender wants all");
    }
}

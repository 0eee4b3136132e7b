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

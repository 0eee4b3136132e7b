//! Counts of marked packets, for controllers that follow their share: receivers count them as AccECN does (RFC 9768
//! section 3.2), here with 16 bits in place of 3, and senders compare two counts. By counts neither delayed nor lost
//! acknowledgements distort the share.

use super::delivery::Arrivals;
use crate::api::{Ack, Receiver};
use crate::units::Time;
use crate::wire::{Ecn, Packet, flag};

/// A sender's view of its receiver's count.
#[derive(Default)]
pub(crate) struct MarkCount {
    arrivals: Arrivals,
    /// Segments that have arrived since the share was taken, and those of them that were marked.
    arrived: u32,
    marked: u32,
    /// s.cep: the receiver's count in the newest acknowledgement.
    marks: u16,
}

impl MarkCount {
    /// Call for every acknowledgement. Returns the number of marked packets that no acknowledgement before has
    /// reported. One that was overtaken has an older count, and reports none.
    #[inline]
    pub(crate) fn count(&mut self, ack: &Ack<'_>) -> u32 {
        let marks = ack.transport.receiver_stamp();
        let mut more = marks.wrapping_sub(self.marks) as u32;
        if more < 1 << 15 {
            self.marks = marks;
            self.marked = self.marked.saturating_add(more);
        } else {
            more = 0;
        }
        self.arrived = self.arrived.saturating_add(self.arrivals.count(ack));
        more
    }
    /// Segments that have arrived since the share was taken.
    #[inline]
    pub(crate) fn arrived(&self) -> u32 {
        self.arrived
    }
    /// M: the share of marked segments since the last call, 0 if none has arrived.
    pub(crate) fn take_share(&mut self) -> f64 {
        let share = self.marked as f64 / self.arrived.max(1) as f64;
        (self.arrived, self.marked) = (0, 0);
        share.min(1.0)
    }
}

/// Counts marked packets.
#[derive(Default)]
pub(crate) struct MarkReceiver {
    /// r.cep: marked data packets that have arrived, modulo 2^16.
    marks: u16,
}

impl Receiver for MarkReceiver {
    fn on_data(&mut self, _now: Time, packet: &Packet) {
        self.marks = self.marks.wrapping_add((packet.ecn() == Ecn::Marked) as u16);
    }
    fn on_ack(&mut self, _now: Time, ack: &mut Packet) {
        let header = &mut ack.transport;
        header.set_receiver_stamp(self.marks);
        // The count is sufficient; RFC 3168's echo would report every window until it was answered.
        header.set_flags(header.flags() & !flag::ECE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_receiver_counts_marked_packets() {
        let mut receiver = MarkReceiver::default();
        let mut answer = |tos: u8| {
            receiver.on_data(Time::ZERO, &Packet { tos, ..Packet::EMPTY });
            let mut ack = Packet::EMPTY;
            ack.transport.set_flags(flag::ACK | flag::ECE);
            receiver.on_ack(Time::ZERO, &mut ack);
            (ack.transport.receiver_stamp(), ack.transport.flags())
        };
        assert_eq!([2, 3, 0, 3, 1].map(&mut answer), [0, 1, 1, 2, 2].map(|marks| (marks, flag::ACK)));
    }
}

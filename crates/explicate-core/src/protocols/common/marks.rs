//! Counts of marked packets, for controllers that follow their share: receivers count them as AccECN does (RFC 9768
//! section 3.2), and senders compare two counts. By counts neither delayed nor lost acknowledgements distort the share.
//!
//! AccECN has four counters. Acknowledgements carry three bits of r.cep, marked packets (the ACE field, section 3.2.2),
//! and in a TCP option 24 bits each of r.ceb, r.e0b and r.e1b, payload bytes with each code (section 3.2.3). Here they
//! carry 16 bits of r.cep. Data segments of a flow are equally long, the last one of a transfer aside, so a share of
//! packets is that of bytes. The count is ambiguous after 2^15 marks whose acknowledgements are all lost or late; the
//! option's is after 2^24 bytes, 11,586 segments of 1448, the three bits of the field after 8 marks. So this is AccECN
//! where the option arrives. A path that removes it, where senders guess how often three bits have wrapped (section
//! 3.2.2.5), is not modelled.
//!
//! The counts begin at 0, not at 5 and 1, by which AccECN finds fields that were set to zero on the way. Each marked
//! data packet is acknowledged at once, more often than section 3.2.2.5.1 demands. Marks of acknowledgements do not
//! count: they are not ECN-capable here. The text that was read is the RFC's last draft,
//! draft-ietf-tcpm-accurate-ecn-34.

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

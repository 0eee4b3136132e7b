//! Counts of marked packets, for controllers that follow their share: receivers count them as AccECN does (RFC 9768
//! section 3.2), and senders compare two counts. By counts neither delayed nor lost acknowledgements distort the share.
//!
//! AccECN has four counters. Each acknowledgement carries the last three bits of r.cep, marked packets (the ACE field,
//! section 3.2.2). In a TCP option it can carry 24 bits each of r.ceb, r.e0b and r.e1b, payload bytes with each code
//! (section 3.2.3). Here it carries 16 bits of r.cep. Data segments of a flow are equally long, the last one of a
//! transfer aside, so a share of packets is that of bytes. The count is ambiguous after 2^15 marks whose
//! acknowledgements are all lost or late; the option's is after 2^24 bytes, 11,586 segments of 1448, and the three bits
//! of the field are after 8 marks. So this is AccECN where the option arrives. A path that removes it, where senders
//! estimate how often three bits have wrapped (section 3.2.2.5.2, appendix A.2), is not modelled.
//!
//! Further differences:
//! 1. Counts begin at 0. In AccECN r.cep begins at 5, r.e0b and r.e1b at 1 (section 3.2.1), by which senders can notice
//!    fields that were set to zero on the way. Not done are this test (3.2.2.4, 3.2.3.2.4), those for other changes on
//!    the way (3.2.2.3, 3.2.3.2), and the handshake in which both ends agree on AccECN (3.1): the scenario decides.
//! 2. Which of two acknowledgements is newer a sender of AccECN finds by the data, and if it has them by the time
//!    stamps, that they acknowledge (appendix A.1). Here the counts themselves say so: the newer one is ahead by less
//!    than 2^15.
//! 3. r.cep counts marked acknowledgements, too. Here acknowledgements are not ECN-capable.
//! 4. r.cep counts packets that TCP accepts (section 1.3), so no segment that is wholly below the next one expected.
//!    Here a segment that is sent again without need counts if it is marked, while the sender's number of arrivals
//!    leaves it out: the share is then too large, and at most 1. A copy that the network makes does not count.
//! 5. Each marked data packet is acknowledged at once. Section 3.2.2.5.1 demands that after seven marks at the latest,
//!    and recommends it after two, and for a mark that follows a packet without one.
//!
//! RFC 9768 (April 2026) itself could be read no further than its abstract. Its last draft was read,
//! draft-ietf-tcpm-accurate-ecn-34 (March 2025): sections 1.3, 2, 3.2, 4 and appendix A.

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

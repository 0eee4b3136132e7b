//! Acknowledgements that are computed before their packets arrive, for drivers that compute both at once.

use super::{ReceiverEndpoint, Returns};
use crate::protocols::rate_header;
use crate::wire::{Packet, SackRanges, flag};

impl ReceiverEndpoint {
    /// Whether acknowledgements may be computed ahead: each is sent at once and returns only fields of its packet.
    pub fn can_predict_acks(&self) -> bool {
        self.returns != Returns::Own
    }
    /// The length of the acknowledgement that a data packet in flight will cause, if all packets before it have been
    /// taken and it is the next in order. Later writes into the packet then change neither the time nor the kind of
    /// its acknowledgement. Take it by [`ReceiverEndpoint::take_ahead`].
    #[inline(always)]
    pub fn predict_ack(&self, packet: &Packet) -> Option<u16> {
        let header = &packet.transport;
        if header.flags() | packet.tos | self.ece as u8 != 0 || self.returns == Returns::Own {
            return None;
        }
        let next = header.segment() == self.data.next() && self.data.is_in_order();
        next.then_some(self.answer as u16)
    }
    /// Takes the segment of any other data packet whose acknowledgement cannot change any more, and returns the
    /// number of its SACK ranges, which are written to `sack`. `None` if it can change.
    pub fn take_and_predict_ack(&mut self, packet: &mut Packet, sack: &mut SackRanges) -> Option<usize> {
        let header = &packet.transport;
        let plain = header.flags() & !(flag::FIN | flag::CWR) == 0 && packet.tos == 0 && !self.ece;
        if !plain || self.returns == Returns::Own {
            return None;
        }
        self.received += 1;
        self.bytes += packet.ip_len as u64;
        let duplicate = self.duplicate(header.segment());
        self.data.insert(header.segment(), self.window, header.payload(), header.has(flag::FIN));
        packet.transport.set_window(self.data.next());
        let ranges = self.ranges(duplicate, sack);
        packet.transport.set_sack_count(ranges);
        Some(ranges)
    }
    /// Length of an acknowledgement with this number of ranges, bytes.
    pub fn answer_bytes(&self, ranges: usize) -> u16 {
        self.answer as u16 + 8 * ranges as u16
    }
    /// Takes the segment of a packet whose acknowledgement was computed ahead, and stores the answer in the packet
    /// for [`ReceiverEndpoint::turn_late`].
    #[inline(always)]
    pub fn take_ahead(&mut self, packet: &mut Packet) {
        self.received += 1;
        self.bytes += packet.ip_len as u64;
        self.data.insert_next(packet.transport.payload());
        packet.transport.set_window(self.data.next());
    }
    /// [`ReceiverEndpoint::turn`] for a packet that was taken ahead, after the last write into it.
    #[inline(always)]
    pub fn turn_late(&self, packet: &mut Packet) {
        let ip_len = self.answer_bytes(packet.transport.sack_count());
        self.begin(self.header, rate_header::feedback(packet), ip_len, packet);
        // Flow, packet number, time stamp and the number of ranges are already in place.
        let header = &mut packet.transport;
        header.set_flags(flag::ACK);
        header.set_receiver_stamp(0);
        header.set_segment(header.window());
        header.set_window(self.window);
    }
}

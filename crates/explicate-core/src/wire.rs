//! The bytes on the wire: the common part of the congestion header (D03 section 4.1) and the transport header, both
//! big-endian, and [`Packet`], which holds them in the simulator and between sockets.
//!
//! Congestion header, 20 bytes, or 28 with an [`Extension`]:
//!
//! | byte | field |
//! | --- | --- |
//! | 0 | Protocol: the next header (6 TCP, 17 UDP, 253 our transport header) |
//! | 1 | Length of this header: 20 or 28 |
//! | 2 | Version (3, high nibble), [`Format`] |
//! | 3 | mark: 0 no router has answered this packet; otherwise 1 + its waiting time in the routers that have, in 64 steps of 0.5 ms and then steps of 4 ms; 254 longer; 255 an answering router dropped an earlier packet |
//! | 4-19 | body: fields of the protocol, by format |
//! | 20-27 | only in headers of 28 bytes: 20 a counter, 21-23 zero, 24-27 the address of a node |
//!
//! Each protocol defines the fields of its body beside its controller ([`crate::protocols`]). The mark is not part of
//! the draft, where byte 3 is reserved. An acknowledgement returns the mark of the data ([`crate::guard`]).
//!
//! Transport header, 24 bytes and 8 for each SACK range. Data flow in one direction, so data packets and
//! acknowledgements share the fields:
//!
//! | byte | data packet | acknowledgement |
//! | --- | --- | --- |
//! | 0 | flags | flags |
//! | 1 | options (SYN: 0xfc), otherwise a mark in 0xf0 | the same; a code of the protocol in 0x0c, number of SACK ranges in 0x03 |
//! | 2-3 | payload bytes | receiver's time stamp, units of 16 µs, 0 = none; with marks the number of data packets that have arrived |
//! | 4-7 | flow | flow |
//! | 8-11 | segment | cumulative acknowledgement: the next segment expected |
//! | 12-15 | packet number | echo of the packet number |
//! | 16-19 | 0; between hosts the upper half of the flow's number | receiver window, segments |
//! | 20-23 | timestamp, units of 4 ns | echo of the timestamp |
//!
//! Ranges of what has few bits, and what happens beyond (`docs/scenarios.md` lists the simulator's counters too):
//!
//! | field | range | beyond it |
//! | --- | --- | --- |
//! | timestamp | 17.18 s | repeats: the sender's record of departures tells its times apart, and an echo of none is ignored and counted |
//! | receiver's time stamp | 1.05 s | repeats: of the possible spans the one nearest to that between the acknowledgements, right to 0.52 s |
//! | data packets that have arrived | 65,536 | repeats: right if less than 32,768 are missing between two acknowledgements |
//! | packet number | 2^32 | repeats: compared within 2^31 packets |
//! | segment | 2^32 - 2 | the flow ends; a simulation reports it |
//! | receiver window | 2^32 - 1 segments | not exceeded: a flow has no more |
//! | mark | 0.78 s; without a congestion header 0.19 s | stays "longer" |
//! | X, RTT of congestion headers | 16 s | stays 16 s |
//! | Reverse_Feedback, Delta_Throughput | 2.1 GB/s | stays there; a receiver returns the rest later |
//!
//! The mark of byte 1 is that of packets without a congestion header, in units of 16 ms, with 14 and 15 in place of
//! 254 and 255.

mod extension;
mod mark;
mod own;
pub mod scone;
mod transport;

pub use self::extension::Extension;
use self::mark::HEADER_SCALE;
pub use self::mark::Mark;
pub use self::own::{BODY_LEN, Describe, Header};
pub use self::transport::{SackRanges, Transport, flag, option, receiver_span, receiver_stamp, stamp, stamp_age};

/// Length of the congestion header without an extension, bytes.
pub const CONGESTION_LEN: usize = 20;
/// Length of the congestion header with its extension, bytes.
pub const EXTENDED_LEN: usize = 28;
/// Length of the transport header without SACK ranges, bytes.
pub const TRANSPORT_LEN: usize = 24;
/// Length of the IPv4 and UDP headers, which precede ours on a real network and count in every IP length, bytes.
pub const IP_UDP_LEN: usize = 28;
/// UDP port of our headers on a real network (from the dynamic range of RFC 6335).
pub const UDP_PORT: u16 = 49_407;
/// Maximum number of SACK ranges in an acknowledgement.
pub const SACK_RANGES: usize = 3;
/// Protocol number in the congestion header's first byte for our transport header (RFC 3692, experimental).
pub const NEXT_TRANSPORT: u8 = 253;
/// The version of D03.
pub const VERSION: u8 = 3;

/// The field Format of a congestion header: which fields its body has (draft section 4.1). A router does not change a
/// header with an unknown format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Format(u8);

impl Format {
    /// The draft's fields; the format of a header until a sender writes another one.
    pub const STANDARD: Format = Format(1);
    /// Pure acknowledgements: they contain nothing for routers.
    pub const MINIMAL: Format = Format(2);

    /// The format with this number, from 3 to 15, for a protocol's own header; the draft defines only smaller
    /// numbers.
    pub const fn own(number: u8) -> Format {
        assert!(number >= 3 && number <= 15, "formats have four bits, and those below 3 are taken");
        Format(number)
    }
}

/// Why bytes from the wire were rejected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WireError {
    /// Fewer bytes than the header's length.
    Short,
    /// The length field is neither 20 nor 28, or does not match the given bytes.
    Length,
    /// Not version 3.
    Version,
    /// Format 0.
    Format,
    /// More SACK ranges than [`SACK_RANGES`], or a range that is empty or reversed.
    Sack,
}

/// The congestion header without its extension.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Congestion(pub [u8; CONGESTION_LEN]);

pub(crate) fn be32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}
pub(crate) fn put32(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_be_bytes());
}

impl Congestion {
    /// No congestion header: the value in memory for packets of protocols without one.
    pub const NONE: Congestion = Congestion([0; CONGESTION_LEN]);

    /// A header of this format with an empty body.
    pub const fn new(format: Format) -> Congestion {
        let mut b = [0; CONGESTION_LEN];
        b[0] = NEXT_TRANSPORT;
        b[1] = CONGESTION_LEN as u8;
        b[2] = (VERSION << 4) | format.0;
        Congestion(b)
    }
    /// Parses a header at the front of a packet; never panics.
    pub fn parse(bytes: &[u8]) -> Result<Congestion, WireError> {
        let Some(head) = bytes.first_chunk::<CONGESTION_LEN>() else { return Err(WireError::Short) };
        let length = head[1] as usize;
        if length != CONGESTION_LEN && length != EXTENDED_LEN {
            return Err(WireError::Length);
        }
        if bytes.len() < length {
            return Err(WireError::Short);
        }
        if head[2] >> 4 != VERSION {
            return Err(WireError::Version);
        }
        if head[2] & 0xf == 0 {
            return Err(WireError::Format);
        }
        Ok(Congestion(*head))
    }
    /// Whether there is a header: false for [`Congestion::NONE`].
    #[inline]
    pub fn is_present(&self) -> bool {
        self.0[1] != 0
    }
    /// Whether its body has the fields of this format.
    #[inline(always)]
    pub fn has_format(&self, format: Format) -> bool {
        self.0[2] == (VERSION << 4) | format.0
    }
    /// The mark: what routers report about the packet beside their feedback, or its echo in an acknowledgement.
    #[inline]
    pub fn mark(&self) -> Mark {
        Mark { code: self.0[3], most: u8::MAX, scale: HEADER_SCALE }
    }
    /// Sets the mark.
    #[inline]
    pub fn set_mark(&mut self, mark: Mark) {
        self.0[3] = mark.code;
    }
}

/// The IP header's ECN field (RFC 3168).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Ecn {
    /// Not ECN-capable: congestion means loss.
    NotCapable = 0,
    /// ECT(1).
    Capable1 = 1,
    /// ECT(0).
    Capable0 = 2,
    /// CE: congestion experienced.
    Marked = 3,
}

/// A packet: its two headers as on the wire, and the fields of the IP header that protocols use.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Packet {
    /// Length of the IP datagram with all headers, bytes.
    pub ip_len: u16,
    /// IP time to live.
    pub ttl: u8,
    /// The ECN field in the low two bits; drivers use the highest bit, see [`Packet::damage`].
    pub tos: u8,
    /// Congestion header; [`Congestion::NONE`] for protocols without one.
    pub congestion: Congestion,
    /// Transport header.
    pub transport: Transport,
}

const _: () = assert!(size_of::<Packet>() == 48, "a slot has room for 48 bytes");

/// The bit of [`Packet::tos`] that drivers use.
const DAMAGED: u8 = 0x80;

impl Packet {
    /// An empty packet.
    pub const EMPTY: Packet =
        Packet { ip_len: 0, ttl: 64, tos: 0, congestion: Congestion::NONE, transport: Transport::EMPTY };
    /// The ECN field.
    #[inline]
    pub fn ecn(&self) -> Ecn {
        match self.tos & 3 {
            0 => Ecn::NotCapable,
            1 => Ecn::Capable1,
            2 => Ecn::Capable0,
            _ => Ecn::Marked,
        }
    }
    /// Sets the ECN field.
    #[inline]
    pub fn set_ecn(&mut self, ecn: Ecn) {
        self.tos = self.tos & !3 | ecn as u8;
    }
    /// Marks a packet whose bits were changed on the link. Its checksum is found to be wrong at the receiver, not
    /// before. Until then drivers recognise it by a bit that is never on the wire, and by [`flag::CONTROL`], which
    /// they test anyway.
    pub fn damage(&mut self) {
        if self.transport.has(flag::CONTROL) {
            self.transport.set_flow(u32::MAX); // no flow has this number, so it is not taken for a node's number
        }
        self.tos |= DAMAGED;
        self.transport.0[0] |= flag::CONTROL;
    }
    /// The packet without the damage bit, as on the wire.
    pub fn without_mark(&self) -> Packet {
        let mut packet = *self;
        if self.is_damaged() {
            packet.tos &= !DAMAGED;
            packet.transport.0[0] &= !flag::CONTROL;
        }
        packet
    }
    /// Whether it was damaged.
    pub fn is_damaged(&self) -> bool {
        self.tos & DAMAGED != 0
    }
    /// Whether this is an acknowledgement.
    #[inline]
    pub fn is_ack(&self) -> bool {
        self.transport.0[0] & flag::ACK != 0
    }
    /// Whether it carries a flow's data: no acknowledgement, no connection set-up, and no message between nodes.
    pub fn is_data(&self) -> bool {
        let flags = self.transport.flags();
        // A damaged packet has the flag of messages, too, and a damaged message has no node.
        let message = if self.is_damaged() { self.transport.flow() == u32::MAX } else { flags & flag::CONTROL != 0 };
        flags & (flag::ACK | flag::SYN) == 0 && !message
    }
    /// Its mark, in whichever header it is.
    #[inline]
    pub fn mark(&self) -> Mark {
        if self.congestion.is_present() { self.congestion.mark() } else { self.transport.mark() }
    }
    /// Sets the mark.
    #[inline]
    pub fn set_mark(&mut self, mark: Mark) {
        if self.congestion.is_present() { self.congestion.set_mark(mark) } else { self.transport.set_mark(mark) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Time;

    /// Only data packets count as such, damaged or not.
    #[test]
    fn data_are_told_from_other_packets() {
        for (flags, data) in [
            (0, true),
            (flag::FIN | flag::CWR, true),
            (flag::ACK, false),
            (flag::SYN, false),
            (flag::SYN | flag::ACK, false),
            (flag::CONTROL, false),
        ] {
            let mut packet = Packet::EMPTY;
            packet.transport.set_flow(7);
            packet.transport.set_flags(flags);
            assert_eq!(packet.is_data(), data, "{flags:#x}");
            packet.damage();
            assert_eq!(packet.is_data(), data, "{flags:#x}, damaged");
        }
    }

    /// 1.2 ms round to two steps of 0.5 ms; beyond 32 ms steps are 4 ms; a time beyond the range of marks stays beyond it.
    #[test]
    fn marks_add_up_what_routers_made_a_packet_wait() {
        let mut packet = Packet { congestion: Congestion::new(Format::STANDARD), ..Packet::EMPTY };
        assert_eq!((packet.mark().is_set(), packet.mark().waited()), (false, Some(Time::ZERO)));
        for (wait, code, waited) in [(0, 1, 0), (200, 1, 0), (1200, 3, 1000), (30_000, 63, 31_000), (4000, 66, 36_000)]
        {
            packet.set_mark(packet.mark().after(Time::micros(wait)));
            assert_eq!((packet.congestion.0[3], packet.mark().waited()), (code, Some(Time::micros(waited))));
            assert_eq!(packet.mark().is_coarse(), waited > 32_000);
        }
        packet.set_mark(packet.mark().after(Time::secs(9)));
        packet.set_mark(packet.mark().after(Time::millis(9)));
        assert_eq!((packet.congestion.0[3], packet.mark().waited()), (254, None));
        packet.set_mark(packet.mark().after_drop());
        assert_eq!((packet.congestion.0[3], packet.mark().waited(), packet.mark().is_behind_drop()), (255, None, true));
        packet.set_mark(packet.mark().after(Time::ZERO));
        assert!(packet.mark().is_behind_drop());

        let mut plain = Packet::EMPTY;
        plain.transport.set_code(2);
        plain.transport.set_sack_count(1);
        plain.set_mark(plain.mark().after(Time::millis(40)));
        assert_eq!((plain.transport.0[1], plain.mark().waited()), (0x49, Some(Time::millis(48))));
        plain.set_mark(plain.mark().after(Time::millis(300)));
        assert_eq!((plain.transport.0[1], plain.mark().waited()), (0xe9, None));
        assert_eq!((plain.transport.code(), plain.transport.sack_count()), (2, 1));
    }

    #[test]
    fn damaged_headers_are_refused() {
        let good = Congestion::new(Format::MINIMAL).0;
        assert!(Congestion::parse(&good).is_ok());
        assert_eq!(Congestion::parse(&good[..19]), Err(WireError::Short));
        let with = |at: usize, value: u8| {
            let mut b = good;
            b[at] = value;
            Congestion::parse(&b)
        };
        assert_eq!(with(1, 21), Err(WireError::Length));
        assert_eq!(with(1, 28), Err(WireError::Short));
        assert_eq!(with(2, 0x21), Err(WireError::Version));
        assert_eq!(with(2, 0x30), Err(WireError::Format));
        assert!(with(2, 0x33).is_ok_and(|h| h.has_format(Format::own(3)) && !h.has_format(Format::STANDARD)));
    }

    #[test]
    fn sack_ranges_travel_behind_the_header() {
        let mut t = Transport::EMPTY;
        t.set_flags(flag::ACK);
        t.set_sack_count(2);
        t.set_flow(7);
        let mut bytes = [0u8; TRANSPORT_LEN + 16];
        bytes[..TRANSPORT_LEN].copy_from_slice(&t.0);
        for (i, v) in [10u32, 12, 3, 4].into_iter().enumerate() {
            put32(&mut bytes, TRANSPORT_LEN + 4 * i, v);
        }
        let (header, ranges) = Transport::parse(&bytes).unwrap();
        assert_eq!(header.flow(), 7);
        assert_eq!(ranges.as_slice(), [(10, 12), (3, 4)]);
        assert_eq!(Transport::parse(&bytes[..TRANSPORT_LEN + 15]), Err(WireError::Short));
        put32(&mut bytes, TRANSPORT_LEN, 12);
        assert_eq!(Transport::parse(&bytes), Err(WireError::Sack));
    }

    #[test]
    fn spans_between_time_stamps_of_the_receiver() {
        let span = |from: Time, to: Time, guess: Time| receiver_span(receiver_stamp(from), receiver_stamp(to), guess);
        // 3 ms and 250 ms apart, with slightly shorter and longer guesses; the second pair wraps.
        assert_eq!(span(Time::secs(7), Time::millis(7003), Time::millis(2)), Some(Time::micros(2992)));
        assert_eq!(span(Time::secs(1), Time::millis(1250), Time::millis(300)), Some(Time::millis(250)));
        assert_eq!(span(Time::secs(1), Time::secs(9), Time::millis(8200)), Some(Time::secs(8)));
        assert_eq!(span(Time::secs(1), Time::secs(1), Time::ZERO), Some(Time::ZERO));
        assert_eq!(receiver_span(0, 5, Time::ZERO), None);
        assert_eq!(receiver_span(9, 5, Time::ZERO), Some(Time::ZERO), "time does not run backwards");
        assert_eq!(receiver_stamp(Time(1 << 20)), 65, "1.049 ms / 16 us");
    }

    #[test]
    fn time_stamps_wrap() {
        let then = Time::secs(17);
        assert_eq!(stamp_age(then + Time::millis(300), stamp(then)), Time::millis(300));
    }
}

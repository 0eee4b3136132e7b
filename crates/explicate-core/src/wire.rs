//! The bytes on the wire: the congestion header (draft-falk-xcp-spec-03 section 4.1) and the transport header, both
//! big-endian, and [`Packet`], which carries them through simulator and sockets alike.
//!
//! Congestion header, 20 bytes (28 with the XCP-i fields of paper I section III):
//!
//! | byte | field |
//! | --- | --- |
//! | 0 | Protocol: what follows (6 TCP, 17 UDP, 253 our transport header) |
//! | 1 | Length of this header: 20 or 28 |
//! | 2 | Version (3, high nibble), Format (1 standard, 2 minimal; not the draft's: 3 window, 4 to 15 a protocol's own, [`Header`]) |
//! | 3 | mark: 0 no router has answered this packet; else 1 + what it waited in those that have, units of 4 ms, at most 255 |
//! | 4-7 | X, the inter-packet time of the flow, unsigned, in units of 2^-28 s; 0 = unknown |
//! | 8-11 | RTT, same unit; 0 = unknown |
//! | 12-15 | Reverse_Feedback, signed, bytes/s |
//! | 16-19 | Delta_Throughput, signed, bytes/s |
//! | 20 | `xcp_ttl` (XCP-i) |
//! | 21-23 | 0 |
//! | 24-27 | `last_xcp_router` (XCP-i) |
//!
//! In memory a packet has no room for the last three: [`XcpI::of`] says which bytes they borrow there. The mark is no part of the
//! draft, whose byte 3 is reserved; an acknowledgement returns that of the data ([`crate::guard`]).
//!
//! Format 3 is the header of the SIGCOMM 2002 paper, whose layout was never fixed, in the same bytes: 4-7 hold H_cwnd in
//! bytes, 8-11 H_rtt, 12-15 and 16-19 changes of the window (H_feedback) in bytes. XCP-r returns the sum of all
//! changes since the flow began, in bytes and modulo 2^32, in Reverse_Feedback.
//!
//! Transport header, 24 bytes and 8 for each SACK range. Data flows one way, so one field serves a data packet and its
//! acknowledgement:
//!
//! | byte | data packet | acknowledgement |
//! | --- | --- | --- |
//! | 0 | flags | flags |
//! | 1 | options (SYN), else a mark in 0xf0 | the same; VCP's load code in 0x0c, number of SACK ranges in 0x03 |
//! | 2-3 | payload bytes | receiver's time stamp, units of 16 µs, 0 = none; with marks how many data packets have arrived |
//! | 4-7 | flow | flow |
//! | 8-11 | segment | cumulative acknowledgement: the next segment expected |
//! | 12-15 | packet number | echo of the packet number |
//! | 16-19 | 0; between hosts the upper half of the flow's number | receiver window, segments |
//! | 20-23 | timestamp, units of 4 ns | echo of the timestamp |
//!
//! The mark of byte 1 is that of packets without a congestion header, in units of 16 ms and at most 15.

mod mark;
mod own;
mod transport;
mod xcp_i;

use self::mark::HEADER_MARK;
pub use self::mark::Mark;
pub use self::own::{BODY_LEN, Header};
pub use self::transport::{SackRanges, Transport, flag, option, receiver_span, receiver_stamp, stamp, stamp_age};
pub use self::xcp_i::XcpI;

/// Length of the congestion header without the XCP-i fields, bytes.
pub const CONGESTION_LEN: usize = 20;
/// Length of the congestion header with the XCP-i fields, bytes.
pub const CONGESTION_XCPI_LEN: usize = 28;
/// Length of the transport header without SACK ranges, bytes.
pub const TRANSPORT_LEN: usize = 24;
/// Length of IPv4 and UDP headers, in front of ours on a real network and counted in every IP length, bytes.
pub const IP_UDP_LEN: usize = 28;
/// UDP port that stands in front of our headers on a real network (from the dynamic range of RFC 6335).
pub const UDP_PORT: u16 = 49_407;
/// Most SACK ranges that an acknowledgement carries.
pub const SACK_RANGES: usize = 3;
/// Protocol number in the congestion header's first byte for our transport header (RFC 3692, experimental).
pub const NEXT_TRANSPORT: u8 = 253;
/// Version nibble of draft-falk-xcp-spec-03.
pub const VERSION: u8 = 3;
/// X and RTT count units of 2^-28 s: this many to the second.
pub const UNITS_PER_SEC: f64 = (1u64 << 28) as f64;

/// What a congestion header asks of a router (draft section 4.1, field Format).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// All fields count.
    Standard,
    /// Only Reverse_Feedback counts; a router leaves the header alone (pure acknowledgements).
    Minimal,
    /// The window form of the SIGCOMM 2002 paper; a router of the draft leaves it alone.
    Window,
}

/// Why bytes from the wire were refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WireError {
    /// Fewer bytes than the header's length.
    Short,
    /// Length field neither 20 nor 28, or at odds with the bytes given.
    Length,
    /// Not version 3.
    Version,
    /// Format 0.
    Format,
    /// More SACK ranges than [`SACK_RANGES`], or a range that is empty or reversed.
    Sack,
}

/// The congestion header without the XCP-i fields.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Congestion(pub [u8; CONGESTION_LEN]);

fn be32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}
fn put32(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_be_bytes());
}

/// Seconds in header units of 2^-28 s, rounded to nearest and saturated at 16 s; negative and NaN give 0, "unknown".
#[inline]
pub fn seconds_to_units(s: f64) -> u32 {
    (s * UNITS_PER_SEC + 0.5) as u32
}

impl Congestion {
    /// No congestion header at all: what packets of protocols without one carry in memory.
    pub const NONE: Congestion = Congestion([0; CONGESTION_LEN]);

    /// An empty header of the given format, X and RTT unknown.
    pub const fn new(format: Format) -> Congestion {
        let mut b = [0; CONGESTION_LEN];
        b[0] = NEXT_TRANSPORT;
        b[1] = CONGESTION_LEN as u8;
        b[2] = (VERSION << 4) | (format as u8 + 1);
        Congestion(b)
    }
    /// Reads a header from the front of a packet; never panics.
    pub fn parse(bytes: &[u8]) -> Result<Congestion, WireError> {
        let Some(head) = bytes.first_chunk::<CONGESTION_LEN>() else { return Err(WireError::Short) };
        let length = head[1] as usize;
        if length != CONGESTION_LEN && length != CONGESTION_XCPI_LEN {
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
    /// Whether a header is there: false for [`Congestion::NONE`].
    #[inline]
    pub fn is_present(&self) -> bool {
        self.0[1] != 0
    }
    /// Whether a router may read X, RTT and Delta_Throughput.
    #[inline]
    pub fn is_standard(&self) -> bool {
        self.0[2] == (VERSION << 4) | 1
    }
    /// Whether a router may read H_cwnd, H_rtt and H_feedback, in the places of X, RTT and Delta_Throughput.
    #[inline]
    pub fn is_window(&self) -> bool {
        self.0[2] == (VERSION << 4) | 3
    }
    /// What routers say of the packet beside their answer, or what an acknowledgement returns of it.
    #[inline]
    pub fn mark(&self) -> Mark {
        Mark { code: self.0[3], most: u8::MAX, unit: HEADER_MARK }
    }
    /// Sets the mark.
    #[inline]
    pub fn set_mark(&mut self, mark: Mark) {
        self.0[3] = mark.code;
    }
    /// X, the time between two packets of the flow, in units of 2^-28 s; 0 = unknown.
    #[inline]
    pub fn x(&self) -> u32 {
        be32(&self.0, 4)
    }
    /// Sets X.
    #[inline]
    pub fn set_x(&mut self, units: u32) {
        put32(&mut self.0, 4, units);
    }
    /// RTT of the flow, in units of 2^-28 s; 0 = unknown.
    #[inline]
    pub fn rtt(&self) -> u32 {
        be32(&self.0, 8)
    }
    /// Sets RTT.
    #[inline]
    pub fn set_rtt(&mut self, units: u32) {
        put32(&mut self.0, 8, units);
    }
    /// Feedback that travels back to the sender, bytes/s.
    #[inline]
    pub fn reverse_feedback(&self) -> i32 {
        be32(&self.0, 12) as i32
    }
    /// Sets Reverse_Feedback, bytes/s.
    #[inline]
    pub fn set_reverse_feedback(&mut self, bytes_per_s: i32) {
        put32(&mut self.0, 12, bytes_per_s as u32);
    }
    /// The change of throughput that the sender wants and routers lower, bytes/s.
    #[inline]
    pub fn delta_throughput(&self) -> i32 {
        be32(&self.0, 16) as i32
    }
    /// Sets Delta_Throughput, bytes/s.
    #[inline]
    pub fn set_delta_throughput(&mut self, bytes_per_s: i32) {
        put32(&mut self.0, 16, bytes_per_s as u32);
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

/// A packet: 64 bytes, one cache line, its two headers as they stand on the wire, and what a driver needs to move it.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub struct Packet {
    /// Driver's: when the packet's next event is due, nanoseconds.
    pub time: u64,
    /// Driver's: the next packet of a list.
    pub next: u32,
    /// Driver's: where on its route the packet is.
    pub place: u32,
    /// Length of the IP datagram with all headers, bytes.
    pub ip_len: u16,
    /// IP time to live.
    pub ttl: u8,
    /// The ECN field in the low two bits; the highest is the drivers', see [`Packet::damage`].
    pub tos: u8,
    /// Congestion header; [`Congestion::NONE`] for protocols without one.
    pub congestion: Congestion,
    /// Transport header.
    pub transport: Transport,
}

const _: () = assert!(core::mem::size_of::<Packet>() == 64);

/// The drivers' bit of [`Packet::tos`].
const DAMAGED: u8 = 0x80;

impl Packet {
    /// An empty packet.
    pub const EMPTY: Packet = Packet {
        time: 0,
        next: u32::MAX,
        place: 0,
        ip_len: 0,
        ttl: 64,
        tos: 0,
        congestion: Congestion::NONE,
        transport: Transport::EMPTY,
    };
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
    /// Marks a packet of which bits were changed on the way: its checksum will be found wrong at its end, not before. Until
    /// then drivers know it by a bit that no wire carries, and by looking like [`flag::CONTROL`], which they test anyway.
    pub fn damage(&mut self) {
        if self.transport.has(flag::CONTROL) {
            self.transport.set_flow(u32::MAX); // of no flow, lest a node's number be taken for one
        }
        self.tos |= DAMAGED;
        self.transport.0[0] |= flag::CONTROL;
    }
    /// The packet without that mark, as a wire carries it.
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
    /// Its mark, wherever that stands.
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

    /// Bytes worked out by hand from D03 section 4.1.
    #[test]
    fn conformance_vector() {
        let mut h = Congestion::new(Format::Standard);
        h.0[0] = 6;
        h.set_x(seconds_to_units(0.002));
        h.set_rtt(seconds_to_units(0.1));
        h.set_reverse_feedback(2600);
        h.set_delta_throughput(-1500);
        let wire = [
            0x06, 0x14, 0x31, 0x00, 0x00, 0x08, 0x31, 0x27, 0x01, 0x99, 0x99, 0x9A, 0x00, 0x00, 0x0A, 0x28, 0xFF, 0xFF,
            0xFA, 0x24,
        ];
        assert_eq!(h.0, wire);
        let back = Congestion::parse(&wire).unwrap();
        assert_eq!((back.reverse_feedback(), back.delta_throughput()), (2600, -1500));
        assert!(back.is_standard());
    }

    /// 3 ms are no unit of 4 ms more than half, 30 ms are eight, and what is too long to tell stays so.
    #[test]
    fn marks_add_up_what_routers_made_a_packet_wait() {
        let mut packet = Packet { congestion: Congestion::new(Format::Standard), ..Packet::EMPTY };
        assert_eq!((packet.mark().is_set(), packet.mark().waited()), (false, Some(Time::ZERO)));
        for (wait, code, waited) in [(0, 1, 0), (1, 1, 0), (3, 2, 4), (30, 10, 36)] {
            packet.set_mark(packet.mark().after(Time::millis(wait)));
            assert_eq!((packet.congestion.0[3], packet.mark().waited()), (code, Some(Time::millis(waited))));
        }
        packet.set_mark(packet.mark().after(Time::secs(9)));
        packet.set_mark(packet.mark().after(Time::millis(9)));
        assert_eq!((packet.congestion.0[3], packet.mark().waited()), (255, None));

        let mut plain = Packet::EMPTY;
        plain.transport.set_load_code(2);
        plain.transport.set_sack_count(1);
        plain.set_mark(plain.mark().after(Time::millis(40)));
        assert_eq!((plain.transport.0[1], plain.mark().waited()), (0x49, Some(Time::millis(48))));
        plain.set_mark(plain.mark().after(Time::millis(300)));
        assert_eq!((plain.transport.0[1], plain.mark().waited()), (0xf9, None));
        assert_eq!((plain.transport.load_code(), plain.transport.sack_count()), (2, 1));
    }

    #[test]
    fn damaged_headers_are_refused() {
        let good = Congestion::new(Format::Minimal).0;
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
        assert!(with(2, 0x33).is_ok_and(|h| h.is_window() && !h.is_standard()));
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
    fn xcp_i_fields_have_room() {
        let fields = XcpI { ttl: 61, last_router: 0x0a00_0001 };
        let mut bytes = [0u8; CONGESTION_XCPI_LEN];
        bytes[..20].copy_from_slice(&Congestion::new(Format::Standard).0);
        bytes[1] = 28;
        bytes[20..].copy_from_slice(&fields.to_bytes());
        assert!(Congestion::parse(&bytes).is_ok());
        assert_eq!(XcpI::parse(&bytes), Some(fields));
        assert_eq!(XcpI::parse(&bytes[..27]), None);
    }

    #[test]
    fn spans_between_time_stamps_of_the_receiver() {
        let span = |from: Time, to: Time, guess: Time| receiver_span(receiver_stamp(from), receiver_stamp(to), guess);
        // 3 ms and 250 ms apart, arrived a little faster and slower; the second pair wraps.
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

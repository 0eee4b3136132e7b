//! The transport header, its time stamps and SACK ranges.

use super::mark::PLAIN_SCALE;
use super::{Mark, SACK_RANGES, TRANSPORT_LEN, WireError, be32, put32};
use crate::units::Time;

/// Flags of the transport header's first byte.
pub mod flag {
    /// Opens a flow, or answers a SYN.
    pub const SYN: u8 = 0x01;
    /// The last segment of a flow.
    pub const FIN: u8 = 0x02;
    /// An acknowledgement: its fields are in the right column of the table.
    pub const ACK: u8 = 0x04;
    /// Congestion, for protocols that need one bit: set by routers in data packets, returned in acknowledgements.
    pub const CONGESTED: u8 = 0x08;
    /// The sender of this data packet reacts to [`CONGESTED`].
    pub const CAPABLE: u8 = 0x80;
    /// Echo of a congestion mark (RFC 3168).
    pub const ECE: u8 = 0x10;
    /// The sender has reduced its window (RFC 3168).
    pub const CWR: u8 = 0x20;
    /// A message between agents of nodes, not a flow's packet.
    pub const CONTROL: u8 = 0x40;
}

/// What a SYN offers and its answer grants, in the transport header's second byte.
pub mod option {
    /// The sender reacts to feedback only in packets with a mark: the receiver returns no other feedback, and returns
    /// the marks.
    pub const MARKS: u8 = 0x08;
    /// Explicit feedback by congestion headers.
    pub const EXPLICIT: u8 = 0x80;
    /// Echo of packet numbers.
    pub const PACKET_ECHO: u8 = 0x40;
    /// Selective acknowledgements.
    pub const SACK: u8 = 0x20;
    /// With [`SACK`]: a duplicate is reported in the first range (RFC 2883).
    pub const DSACK: u8 = 0x04;
    /// Nothing is retransmitted: the receiver skips gaps, and acknowledges the number of segments that have arrived.
    pub const UNRELIABLE: u8 = 0x10;
}

/// The bits of the second byte that options may use.
const OPTIONS: u8 = 0xfc;

/// The transport header without its SACK ranges.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transport(pub [u8; TRANSPORT_LEN]);

macro_rules! field32 {
    ($(#[$doc:meta])* $get:ident, $set:ident, $at:literal) => {
        $(#[$doc])*
        #[inline]
        pub fn $get(&self) -> u32 {
            be32(&self.0, $at)
        }
        $(#[$doc])*
        #[inline]
        pub fn $set(&mut self, value: u32) {
            put32(&mut self.0, $at, value);
        }
    };
}

impl Transport {
    /// All zero.
    pub const EMPTY: Transport = Transport([0; TRANSPORT_LEN]);

    /// Parses a header and its SACK ranges at the front of `bytes`; never panics. Ranges are half open, `[first,
    /// end)`.
    pub fn parse(bytes: &[u8]) -> Result<(Transport, SackRanges), WireError> {
        let Some(head) = bytes.first_chunk::<TRANSPORT_LEN>() else { return Err(WireError::Short) };
        let header = Transport(*head);
        let mut ranges = SackRanges::default();
        for i in 0..header.sack_count() {
            let at = TRANSPORT_LEN + 8 * i;
            if bytes.len() < at + 8 {
                return Err(WireError::Short);
            }
            let (first, end) = (be32(bytes, at), be32(bytes, at + 4));
            if first >= end {
                return Err(WireError::Sack);
            }
            ranges.push(first, end);
        }
        Ok((header, ranges))
    }
    /// Flags, see [`flag`].
    #[inline]
    pub fn flags(&self) -> u8 {
        self.0[0]
    }
    /// Sets the flags.
    #[inline]
    pub fn set_flags(&mut self, flags: u8) {
        self.0[0] = flags;
    }
    /// Whether all of `flags` are set.
    #[inline]
    pub fn has(&self, flags: u8) -> bool {
        self.0[0] & flags == flags
    }
    /// Whether this opens a flow, or answers a SYN, and requests feedback of routers.
    pub fn opens_explicit(&self) -> bool {
        self.has(flag::SYN) && self.options() & option::EXPLICIT != 0
    }
    /// Whether a router has set the congestion flag, or its echo ([`flag::CONGESTED`]).
    pub fn congestion_flag(&self) -> bool {
        self.has(flag::CONGESTED)
    }
    /// Options of a SYN, see [`option`].
    pub fn options(&self) -> u8 {
        self.0[1] & OPTIONS
    }
    /// Sets the options.
    pub fn set_options(&mut self, options: u8) {
        self.0[1] = options & OPTIONS | self.0[1] & !OPTIONS;
    }
    /// A code of two bits that a protocol's receiver returns in acknowledgements of data: 0 none, 3 congestion.
    #[inline]
    pub fn code(&self) -> u8 {
        (self.0[1] >> 2) & 3
    }
    /// Sets the code; only the low two bits count.
    #[inline]
    pub fn set_code(&mut self, code: u8) {
        self.0[1] = self.0[1] & !0x0c | (code & 3) << 2;
    }
    /// The mark of a packet without a congestion header that is no SYN, see [`Congestion::mark`](super::Congestion::mark).
    #[inline]
    pub fn mark(&self) -> Mark {
        Mark { code: self.0[1] >> 4, most: 15, scale: PLAIN_SCALE }
    }
    /// Sets the mark.
    #[inline]
    pub fn set_mark(&mut self, mark: Mark) {
        self.0[1] = self.0[1] & 0x0f | mark.code << 4;
    }
    /// Number of SACK ranges that follow, 0..=3.
    #[inline]
    pub fn sack_count(&self) -> usize {
        (self.0[1] & 3) as usize
    }
    /// Sets the number of SACK ranges.
    #[inline]
    pub fn set_sack_count(&mut self, count: usize) {
        self.0[1] = self.0[1] & !3 | (count as u8 & 3);
    }
    /// Payload bytes of a data packet.
    #[inline]
    pub fn payload(&self) -> u16 {
        u16::from_be_bytes([self.0[2], self.0[3]])
    }
    /// Sets the payload bytes.
    #[inline]
    pub fn set_payload(&mut self, bytes: u16) {
        self.0[2..4].copy_from_slice(&bytes.to_be_bytes());
    }
    /// The receiver's time stamp of an acknowledgement, see [`receiver_stamp`]; 0 = none.
    #[inline]
    pub fn receiver_stamp(&self) -> u16 {
        self.payload()
    }
    /// Sets the receiver's time stamp.
    #[inline]
    pub fn set_receiver_stamp(&mut self, stamp: u16) {
        self.set_payload(stamp);
    }
    /// Number of data packets of the flow that have arrived, modulo 2^16: in the acknowledgements of flows with
    /// marks.
    #[inline]
    pub fn arrived(&self) -> u16 {
        self.payload()
    }
    /// Sets the number of arrivals.
    #[inline]
    pub fn set_arrived(&mut self, packets: u16) {
        self.set_payload(packets);
    }
    field32!(
        /// The flow.
        flow, set_flow, 4
    );
    field32!(
        /// Segment number of a data packet; in an acknowledgement the next segment expected ([`option::UNRELIABLE`]: the
        /// number of segments that have arrived).
        segment, set_segment, 8
    );
    field32!(
        /// Number of a packet, incremented with every transmission; in an acknowledgement its echo.
        packet_number, set_packet_number, 12
    );
    field32!(
        /// Receiver window, segments.
        window, set_window, 16
    );
    field32!(
        /// Time stamp of the sender's clock in units of 4 ns, or its echo. See [`stamp`] and [`stamp_age`].
        timestamp, set_timestamp, 20
    );
}

/// The time stamp of an instant: units of 4 ns modulo 2^32 (17.2 s).
#[inline]
pub fn stamp(now: Time) -> u32 {
    (now.0 >> 2) as u32
}

/// The receiver's time stamp of an instant, for protocols that request it: units of 16 µs modulo 2^16 (1.05 s), never
/// 0.
#[inline]
pub fn receiver_stamp(now: Time) -> u16 {
    ((now.0 / RECEIVER_TICK) as u16).max(1)
}

/// The span between two time stamps of a receiver: of the possible values, the one nearest to `guess`. `None` if
/// either is missing.
pub fn receiver_span(from: u16, to: u16, guess: Time) -> Option<Time> {
    if from == 0 || to == 0 {
        return None;
    }
    let guessed = guess.0 / RECEIVER_TICK;
    let off = to.wrapping_sub(from).wrapping_sub(guessed as u16) as i16;
    Some(Time(guessed.saturating_add_signed(off as i64).saturating_mul(RECEIVER_TICK)))
}

/// Nanoseconds per unit of the receiver's time stamp.
const RECEIVER_TICK: u64 = 16_000;

/// The age of a stamp, modulo 17.2 s; exact to 4 ns. A sending endpoint knows the rest from the echoed packet number and its
/// record of departures.
#[inline]
pub fn stamp_age(now: Time, stamped: u32) -> Time {
    Time(((now.0 >> 2) as u32).wrapping_sub(stamped) as u64 * 4)
}

/// Up to three SACK ranges `[first, end)` of segments: a duplicate if one is reported (RFC 2883), then that of the most recent
/// arrival and those before (RFC 2018 section 4).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SackRanges {
    ranges: [(u32, u32); SACK_RANGES],
    count: u8,
}

impl SackRanges {
    /// No range.
    pub const NONE: SackRanges = SackRanges { ranges: [(0, 0); SACK_RANGES], count: 0 };

    /// Removes all ranges.
    #[inline]
    pub fn clear(&mut self) {
        self.count = 0;
    }
    /// Adds a range; a fourth is ignored.
    pub fn push(&mut self, first: u32, end: u32) {
        if (self.count as usize) < SACK_RANGES {
            self.ranges[self.count as usize] = (first, end);
            self.count += 1;
        }
    }
    /// Puts a range before the others; of three the last one goes.
    pub(crate) fn push_front(&mut self, first: u32, end: u32) {
        self.count = (self.count + 1).min(SACK_RANGES as u8);
        self.ranges.rotate_right(1);
        self.ranges[0] = (first, end);
    }
    /// The first range grows by one segment.
    #[inline]
    pub(crate) fn extend_first(&mut self) {
        self.ranges[0].1 += 1;
    }
    /// The ranges.
    #[inline]
    pub fn as_slice(&self) -> &[(u32, u32)] {
        &self.ranges[..self.count as usize]
    }
}

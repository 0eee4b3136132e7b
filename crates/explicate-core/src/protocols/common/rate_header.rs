//! The fields of the congestion header of draft-falk-xcp-spec-03 section 4.1 \[D03\], which XCP and its relatives use.
//!
//! | byte | field |
//! | --- | --- |
//! | 4-7 | X, the inter-packet time of the flow, unsigned, in units of 2^-28 s; 0 = unknown |
//! | 8-11 | RTT, same unit; 0 = unknown |
//! | 12-15 | Reverse_Feedback, signed, bytes/s |
//! | 16-19 | Delta_Throughput, signed, bytes/s |
//!
//! Each field is read and written in place: a router changes one of the four fields of a packet.

use core::fmt;

use crate::wire::{Congestion, Format, Packet, be32, put32};

/// X and RTT have units of 2^-28 s; this is the number of units per second.
pub const UNITS_PER_SEC: f64 = (1u64 << 28) as f64;

/// Seconds in header units of 2^-28 s, rounded to nearest and saturated at 16 s; negative and NaN give 0, "unknown".
#[inline]
pub fn seconds_to_units(s: f64) -> u32 {
    (s * UNITS_PER_SEC + 0.5) as u32
}

/// Seconds in a unit of the header.
pub(crate) const SECONDS: f64 = 1.0 / UNITS_PER_SEC;

/// Feedback as a header carries it: rounded to the nearest integer, half away from zero; saturates.
pub(crate) fn round(value: f64) -> i32 {
    (value + 0.5f64.copysign(value)) as i32
}

impl Congestion {
    /// Whether a router may read X, RTT and Delta_Throughput.
    #[inline]
    pub fn is_standard(&self) -> bool {
        self.has_format(Format::STANDARD)
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
    /// Feedback returned to the sender, bytes/s.
    #[inline]
    pub fn reverse_feedback(&self) -> i32 {
        be32(&self.0, 12) as i32
    }
    /// Sets Reverse_Feedback, bytes/s.
    #[inline]
    pub fn set_reverse_feedback(&mut self, bytes_per_s: i32) {
        put32(&mut self.0, 12, bytes_per_s as u32);
    }
    /// The change of throughput that the sender requests and routers reduce, bytes/s.
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

/// The feedback of a data packet for its receiver, bytes/s; zero without this header.
#[inline(always)]
pub(crate) fn feedback(packet: &Packet) -> i32 {
    if packet.congestion.is_standard() { packet.congestion.delta_throughput() } else { 0 }
}

/// Inter-packet time and RTT of a flow.
pub(crate) struct Spacing {
    /// X, header units; not zero.
    pub(crate) x: f64,
    /// RTT, header units.
    pub(crate) rtt: f64,
}

/// The spacing of the packet's flow; `None` without this header, or if X is unknown.
pub(crate) fn spacing(packet: &Packet) -> Option<Spacing> {
    let header = &packet.congestion;
    let known = header.is_standard() && header.x() > 0;
    known.then(|| Spacing { x: header.x() as f64, rtt: header.rtt() as f64 })
}

/// Text for packet logs: the remaining request of a packet, or the feedback of an acknowledgement.
pub(crate) fn describe(packet: &Packet, out: &mut dyn fmt::Write) -> fmt::Result {
    let header = &packet.congestion;
    if header.is_standard() {
        return write!(out, " delta {:+} B/s", header.delta_throughput());
    }
    if header.has_format(Format::MINIMAL) {
        // In the unit of its protocol: bytes/s, or bytes for windows.
        return write!(out, " feedback {:+}", header.reverse_feedback());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes worked out by hand from D03 section 4.1.
    #[test]
    fn conformance_vector() {
        let mut h = Congestion::new(Format::STANDARD);
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
}

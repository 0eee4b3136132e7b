//! What stands before QUIC in each datagram between gateways.
//!
//! A datagram begins with the headers of the core ([`datagram`]), so that `explicated router` finds the congestion header where it does in
//! other explicit packets. Fields of the transport header:
//!
//! | byte | a datagram of QUIC | [`parity`](super::parity) |
//! | --- | --- | --- |
//! | 2-3 | length of the contents | the same |
//! | 4-7 | number of the tunnel | the same |
//! | 8-11 | answered datagrams that arrived | number of the first one |
//! | 12-15 | number of the datagram | 0 |
//! | 16-17 | 0 | 1 for P or 2 for Q, and the number of datagrams that it covers |
//! | 18 | loss in 0.1 %, see below | parity of the lengths |
//! | 19 | 1 if parity covers it though it is short | the same |
//!
//! A mark of a [train](super::trains) has no contents: its time of arrival is in bytes 8-11 when it is returned, the number of its train in
//! 12-15, and in byte 16 its kind, 3 before a train and 4 behind it, 5 and 6 when returned. In bytes 17-19 of the last one is one more than
//! the bytes of the train that have arrived.
//!
//! Reverse_Feedback is the sum of all Delta_Throughput that arrived in answered datagrams, modulo 2^32 (as XCP-r).
//!
//! The loss is what the sender of the datagram has measured of those that came the other way, before parity repairs it, at most 25.5 %: the
//! peer's blocks of parity follow it.
//!
//! Where the protocol has no congestion header, requests of QUIC's datagrams have none either: the transport header comes first, 20
//! bytes of 0 follow it, and what is returned stands in bytes 20-23. To such datagrams the peer returns, in the same four bytes, the
//! highest code of their ECN fields and the flags of their transport headers ([`Seen`]).

use std::net::SocketAddr;

use explicate_core::datagram::{self, MOST_HEADERS};
use explicate_core::wire::{
    CONGESTION_LEN, Congestion, Format, NEXT_TRANSPORT, Packet, SackRanges, TRANSPORT_LEN, Transport, WireError, flag,
};

/// Bytes before QUIC.
pub const LEN: usize = CONGESTION_LEN + TRANSPORT_LEN;
/// Datagrams shorter than this carry acknowledgements, or little else: they ask for nothing, and are covered only where they are marked.
pub const SHORT: usize = 300;

/// Marks a datagram: parity covers it, though it is short.
pub fn mark_covered(packet: &mut Packet) {
    packet.transport.set_window(packet.transport.window() | 1);
}

/// Units of the loss that a datagram tells.
const LOSS: f64 = 1e-3;

/// Tells the share of the peer's datagrams that were lost.
pub fn set_loss(packet: &mut Packet, share: f64) {
    let loss = (share / LOSS).round().clamp(0.0, u8::MAX as f64) as u8;
    packet.transport.set_window((loss as u32) << 8);
}

/// The share of this end's datagrams that were lost, as the peer has told.
pub fn loss(packet: &Packet) -> f64 {
    LOSS * packet.transport.window().to_be_bytes()[2] as f64
}

/// Whether parity covers a datagram of QUIC with these contents.
pub fn is_covered(packet: &Packet, contents: &[u8]) -> bool {
    contents.len() >= SHORT || packet.transport.window() & 1 != 0
}

/// What arrived in datagrams without a congestion header, until it was returned twice: one return may be lost.
#[derive(Clone, Copy, Default)]
pub struct Seen {
    now: u32,
    before: u32,
}

/// A transport header with this code and these flags, as bytes that are returned.
fn as_returned(code: u8, flags: u8) -> u32 {
    (flags as u32) << 8 | code as u32
}

/// The transport header of an acknowledgement with what was returned.
pub fn returned_header(returned: u32) -> Transport {
    let mut header = Transport::EMPTY;
    header.set_code(returned as u8);
    header.set_flags((returned >> 8) as u8 & flag::CONGESTED);
    header
}

impl Seen {
    /// The higher code, and the flags of both.
    fn both(one: u32, other: u32) -> u32 {
        as_returned((one as u8).max(other as u8), ((one | other) >> 8) as u8)
    }
    /// A datagram arrived.
    pub fn add(&mut self, packet: &Packet) {
        self.now = Seen::both(self.now, as_returned(packet.ecn() as u8, packet.transport.flags()));
    }
    /// What the next datagram returns.
    pub fn take(&mut self) -> u32 {
        let all = Seen::both(self.now, self.before);
        *self = Seen { now: 0, before: self.now };
        all
    }
}

/// What a packet returns of those that came the other way.
pub fn returned(packet: &Packet) -> u32 {
    if packet.congestion.is_present() {
        packet.congestion.reverse_feedback() as u32
    } else {
        packet.transport.timestamp()
    }
}

/// Sets it.
pub fn set_returned(packet: &mut Packet, value: u32) {
    if packet.congestion.is_present() {
        packet.congestion.set_reverse_feedback(value as i32);
    } else {
        packet.transport.set_timestamp(value);
    }
}

/// Completes a packet with what its sender wrote: a datagram with so many bytes of IP and UDP headers, and of contents.
pub fn complete(packet: &mut Packet, tunnel: u32, ip_headers: usize, contents: usize) {
    packet.ip_len = (ip_headers + LEN + contents).min(u16::MAX as usize) as u16;
    if packet.congestion.is_present() {
        packet.congestion.0[0] = NEXT_TRANSPORT;
    }
    packet.transport.set_flow(tunnel);
    packet.transport.set_payload(contents.min(u16::MAX as usize) as u16);
}

/// A packet with the headers of a datagram.
pub fn packet(tunnel: u32, congestion: Congestion, ip_headers: usize, contents: usize) -> Packet {
    let mut packet = Packet { congestion, ..Packet::EMPTY };
    complete(&mut packet, tunnel, ip_headers, contents);
    packet
}

/// The packet of a datagram without a tunnel.
pub fn bare(contents: &[u8], ip_headers: usize) -> Packet {
    packet(0, Congestion::new(Format::MINIMAL), ip_headers, contents.len())
}

/// An IPv4 address as the peer's socket writes it.
pub fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// Bytes of the IP and UDP headers of a datagram to this address.
pub fn ip_headers(to: SocketAddr) -> usize {
    if canonical(to).is_ipv4() { 28 } else { 48 }
}

/// Contents with room for the headers before them.
pub fn with_room(contents: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(LEN + contents.len());
    bytes.resize(LEN, 0);
    bytes.extend_from_slice(contents);
    bytes
}

/// Writes the headers of a packet before its contents, in place.
pub fn write(packet: &Packet, bytes: &mut [u8]) {
    let mut headers = [0; MOST_HEADERS];
    let length = datagram::write(packet, &SackRanges::NONE, &mut headers);
    bytes[..length].copy_from_slice(&headers[..length]);
    bytes[length.min(LEN)..LEN].fill(0);
}

/// Reads the headers of a datagram; its contents follow at [`LEN`].
pub fn read(bytes: &[u8]) -> Result<Packet, WireError> {
    let read = datagram::read(bytes)?;
    let headed = read.packet.congestion.is_present() && read.payload == LEN;
    let plain = read.packet.transport.payload() > 0 && read.payload == TRANSPORT_LEN && bytes.len() >= LEN;
    let message = read.packet.transport.has(flag::CONTROL);
    if (headed || plain) && !message { Ok(read.packet) } else { Err(WireError::Length) }
}

/// Adds the feedback of a packet that routers have answered to a sum, modulo 2^32.
pub fn add_feedback(sum: &mut u32, packet: &Packet) {
    if packet.congestion.is_standard() && packet.mark().is_set() {
        *sum = sum.wrapping_add(packet.congestion.delta_throughput() as u32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn feedback_counts_where_a_router_has_answered() {
        let mut sum = 0;
        let mut of = |delta: i32, answered: bool| {
            let mut packet = packet(1, Congestion::new(Format::STANDARD), 28, 1400);
            packet.congestion.set_delta_throughput(delta);
            if answered {
                packet.set_mark(packet.mark().after(explicate_core::units::Time::ZERO));
            }
            add_feedback(&mut sum, &packet);
            sum as i32
        };
        assert_eq!([of(500, true), of(9000, false), of(-700, true)], [500, 500, -200]);
    }

    #[test]
    fn a_protocol_without_a_congestion_header_has_its_code_and_flag_returned_twice() {
        let mut sent = Packet::EMPTY;
        sent.transport.set_flags(flag::CAPABLE);
        complete(&mut sent, 77, 28, 1400);
        set_returned(&mut sent, 0x1234);
        let mut bytes = vec![9; LEN + 3];
        write(&sent, &mut bytes);
        let mut back = read(&bytes).unwrap();
        assert_eq!((back.transport, returned(&back), back.congestion.is_present()), (sent.transport, 0x1234, false));
        let mut seen = Seen::default();
        (back.tos, back.transport.0[0]) = (2, flag::CAPABLE | flag::CONGESTED);
        seen.add(&back);
        (back.tos, back.transport.0[0]) = (1, flag::CAPABLE);
        seen.add(&back);
        let headers = [0; 3].map(|_| returned_header(seen.take()));
        let read = headers.map(|header| (header.code(), header.flags()));
        assert_eq!(read, [(2, flag::CONGESTED), (2, flag::CONGESTED), (0, 0)]);
    }

    #[test]
    fn headers_come_back_and_nonsense_is_refused() {
        let mut sent = packet(77, Congestion::new(Format::STANDARD), 28, 1400);
        sent.transport.set_packet_number(9);
        let mut bytes = vec![0; LEN + 3];
        write(&sent, &mut bytes);
        let back = read(&bytes).unwrap();
        assert_eq!((back.transport.flow(), back.transport.packet_number()), (77, 9));
        assert!(read(&bytes[..LEN - 1]).is_err());
        assert!(read(&bytes[CONGESTION_LEN..]).is_err(), "shorter than the headers");
    }
}

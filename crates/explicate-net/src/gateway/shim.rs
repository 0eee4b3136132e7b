//! What stands before QUIC in each datagram between gateways.
//!
//! A datagram begins with the headers of the core ([`datagram`]), so that `explicated router` finds the congestion header where it does in
//! other explicit packets. Fields of the transport header:
//!
//! | byte | a datagram of QUIC | [`parity`](super::parity) |
//! | --- | --- | --- |
//! | 2-3 | 0 | 1 for P or 2 for Q, and the number of datagrams that it covers |
//! | 4-7 | number of the tunnel | the same |
//! | 8-11 | answered datagrams that arrived | number of the first one |
//! | 12-15 | number of the datagram | 0 |
//! | 16-19 | 1 if parity covers it though it is short | parity of the lengths |
//!
//! Reverse_Feedback is the sum of all Delta_Throughput that arrived in answered datagrams, modulo 2^32 (as XCP-r).

use explicate_core::datagram::{self, MOST_HEADERS};
use explicate_core::wire::{CONGESTION_LEN, Congestion, NEXT_TRANSPORT, Packet, SackRanges, TRANSPORT_LEN, WireError};

/// Bytes before QUIC.
pub const LEN: usize = CONGESTION_LEN + TRANSPORT_LEN;
/// Datagrams shorter than this carry acknowledgements, or little else: they ask for nothing, and are covered only where they are marked.
pub const SHORT: usize = 300;

/// Marks a datagram: parity covers it, though it is short.
pub fn mark_covered(packet: &mut Packet) {
    packet.transport.set_window(1);
}

/// Whether parity covers a datagram of QUIC with these contents.
pub fn is_covered(packet: &Packet, contents: &[u8]) -> bool {
    contents.len() >= SHORT || packet.transport.window() != 0
}

/// A packet with the headers of a datagram.
pub fn packet(tunnel: u32, congestion: Congestion, ip_len: usize) -> Packet {
    let mut packet = Packet { ip_len: ip_len.min(u16::MAX as usize) as u16, congestion, ..Packet::EMPTY };
    packet.congestion.0[0] = NEXT_TRANSPORT;
    packet.transport.set_flow(tunnel);
    packet
}

/// Writes the headers of a packet before its contents, in place.
pub fn write(packet: &Packet, bytes: &mut [u8]) {
    let mut headers = [0; MOST_HEADERS];
    let length = datagram::write(packet, &SackRanges::NONE, &mut headers);
    bytes[..length].copy_from_slice(&headers[..length]);
}

/// Reads the headers of a datagram; its contents follow at [`LEN`].
pub fn read(bytes: &[u8]) -> Result<Packet, WireError> {
    let read = datagram::read(bytes)?;
    if read.payload != LEN || !read.packet.congestion.is_present() {
        return Err(WireError::Length);
    }
    Ok(read.packet)
}

/// Adds the feedback of a packet that routers have answered to a sum, modulo 2^32.
pub fn add_feedback(sum: &mut u32, packet: &Packet) {
    if packet.congestion.is_standard() && packet.mark().is_set() {
        *sum = sum.wrapping_add(packet.congestion.delta_throughput() as u32);
    }
}

#[cfg(test)]
mod tests {
    use explicate_core::wire::Format;

    use super::super::parity::Repair;
    use super::*;

    #[test]
    fn feedback_counts_where_a_router_has_answered() {
        let mut sum = 0;
        let mut of = |delta: i32, answered: bool| {
            let mut packet = packet(1, Congestion::new(Format::STANDARD), 1500);
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
    fn headers_come_back_and_nonsense_is_refused() {
        let mut sent = packet(77, Congestion::new(Format::STANDARD), 1500);
        sent.transport.set_packet_number(9);
        let mut bytes = vec![0; LEN + 3];
        write(&sent, &mut bytes);
        let back = read(&bytes).unwrap();
        assert_eq!((back.transport.flow(), back.transport.packet_number()), (77, 9));
        assert!(read(&bytes[..LEN - 1]).is_err());
        assert!(read(&bytes[CONGESTION_LEN..]).is_err(), "no congestion header");
        for i in 0..bytes.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut damaged = bytes.clone();
                damaged[i] = value;
                if let Ok(packet) = read(&damaged) {
                    Repair::default().take(&packet, &damaged[LEN..]);
                }
            }
        }
    }
}

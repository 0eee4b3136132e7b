//! Encoding of a packet in the payload of a UDP datagram.
//!
//! | what | bytes | when |
//! | --- | --- | --- |
//! | congestion header | 20 or 28 | its first byte, 253, is not a valid set of flags |
//! | transport header | 24 | always |
//! | SACK ranges | 8 each | as many as the transport header states |
//! | rest of a message | 16 | flag CONTROL: a message fills bytes 12..24 of the transport header and these |
//! | payload | | in an acknowledgement between hosts: the upper half of the flow's number (4), and if it answers a SYN the number of bytes that the receiver already has (8) and a code (16) |
//!
//! Fields that a packet in memory stores elsewhere ([`Extension::of`](crate::wire::Extension::of)) are restored to
//! their place.

use crate::wire::{
    CONGESTION_LEN, Congestion, EXTENDED_LEN, Extension, IP_UDP_LEN, NEXT_TRANSPORT, Packet, SACK_RANGES, SackRanges,
    TRANSPORT_LEN, Transport, WireError, flag,
};

/// Most bytes of headers in a datagram.
pub const MOST_HEADERS: usize = EXTENDED_LEN + TRANSPORT_LEN + 8 * SACK_RANGES;
/// Bytes of a message behind the transport header.
const MESSAGE_REST: usize = CONGESTION_LEN - 4;

/// The result of [`read`].
#[derive(Clone, Copy, Debug)]
pub struct Read {
    /// The packet. Its IP length counts all bytes of the datagram; the caller sets TTL and ECN field.
    pub packet: Packet,
    /// Its SACK ranges.
    pub sack: SackRanges,
    /// Where the transport header begins.
    pub transport: usize,
    /// Where the payload begins.
    pub payload: usize,
}

/// Writes the headers of a packet; returns their length in bytes.
pub fn write(packet: &Packet, sack: &SackRanges, out: &mut [u8; MOST_HEADERS]) -> usize {
    let mut at = 0;
    let mut put = |bytes: &[u8]| {
        out[at..at + bytes.len()].copy_from_slice(bytes);
        at += bytes.len();
    };
    let mut transport = packet.transport;
    if transport.has(flag::CONTROL) {
        put(&transport.0);
        put(&packet.congestion.0[4..]);
        return at;
    }
    if packet.congestion.is_present() {
        let mut congestion = packet.congestion;
        let fields = Extension::of(packet);
        if fields.is_some() {
            congestion.0[0] = NEXT_TRANSPORT;
            transport.set_window(0);
        }
        put(&congestion.0);
        if let Some(fields) = fields {
            put(&fields.to_bytes());
        }
    }
    put(&transport.0);
    for (first, end) in &sack.as_slice()[..transport.sack_count().min(sack.as_slice().len())] {
        put(&first.to_be_bytes());
        put(&end.to_be_bytes());
    }
    at
}

/// Reads the headers at the front of a datagram's payload; never panics.
pub fn read(bytes: &[u8]) -> Result<Read, WireError> {
    let mut packet = Packet { ip_len: (IP_UDP_LEN + bytes.len()).min(u16::MAX as usize) as u16, ..Packet::EMPTY };
    let mut transport = 0;
    let mut fields = None;
    if bytes.first() == Some(&NEXT_TRANSPORT) {
        packet.congestion = Congestion::parse(bytes)?;
        fields = Extension::parse(bytes);
        transport = packet.congestion.0[1] as usize;
    }
    let (header, sack) = Transport::parse(&bytes[transport..])?;
    packet.transport = header;
    let mut payload = transport + TRANSPORT_LEN + 8 * header.sack_count();
    if header.has(flag::CONTROL) {
        if packet.congestion.is_present() {
            return Err(WireError::Format);
        }
        if header.sack_count() > 0 {
            return Err(WireError::Sack);
        }
        payload = TRANSPORT_LEN + MESSAGE_REST;
        let rest = bytes.get(TRANSPORT_LEN..payload).ok_or(WireError::Short)?;
        packet.congestion.0[4..].copy_from_slice(rest);
    }
    match fields {
        // Packets without the standard header have no room for the extension in memory, and no router reads it.
        Some(fields) if packet.congestion.is_standard() && !header.has(flag::ACK) => fields.put(&mut packet),
        Some(_) => return Err(WireError::Format),
        None => {}
    }
    Ok(Read { packet, sack, transport, payload })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use crate::units::Time;
    use crate::wire::Format;

    fn there_and_back(packet: &Packet, sack: &SackRanges) -> Read {
        let mut out = [0; MOST_HEADERS];
        let length = write(packet, sack, &mut out);
        read(&out[..length]).unwrap()
    }

    #[test]
    fn every_kind_of_packet_comes_back() {
        let mut data = Packet::EMPTY;
        data.transport.set_flow(7);
        data.transport.set_segment(9);
        let plain = there_and_back(&data, &SackRanges::NONE);
        assert_eq!((plain.packet.transport, plain.transport, plain.payload), (data.transport, 0, 24));

        data.congestion = Congestion::new(Format::STANDARD);
        data.congestion.set_delta_throughput(-5);
        let standard = there_and_back(&data, &SackRanges::NONE);
        assert_eq!((standard.packet.congestion, standard.transport, standard.payload), (data.congestion, 20, 44));
        assert_eq!(standard.packet.ip_len, 28 + 44);

        data.set_mark(data.mark().after(Time::millis(20)));
        Extension { counter: 61, node: 0x0a00_0001 }.put(&mut data);
        let xcp_i = there_and_back(&data, &SackRanges::NONE);
        assert_eq!(Extension::of(&xcp_i.packet), Some(Extension { counter: 61, node: 0x0a00_0001 }));
        assert_eq!((xcp_i.packet.congestion, xcp_i.packet.transport), (data.congestion, data.transport));
        assert_eq!(xcp_i.payload, 52);

        let mut ack = Packet { congestion: Congestion::new(Format::MINIMAL), ..Packet::EMPTY };
        ack.transport.set_flags(flag::ACK);
        ack.transport.set_sack_count(1);
        let mut ranges = SackRanges::default();
        ranges.push(3, 5);
        assert_eq!(there_and_back(&ack, &ranges).sack, ranges);
    }

    #[test]
    fn a_message_comes_back() {
        let mut control = Packet::EMPTY;
        control.transport.set_flags(flag::CONTROL);
        control.transport.0[12..].fill(3);
        control.congestion.0[4..].fill(4);
        let back = there_and_back(&control, &SackRanges::NONE);
        assert_eq!((back.packet.transport, back.packet.congestion), (control.transport, control.congestion));
        assert_eq!(back.payload, 40);
        assert_eq!(read(&[flag::CONTROL; 39]).err(), Some(WireError::Short));
    }

    #[test]
    fn whatever_is_read_is_written_the_same() {
        let mut rng = Rng::stream(5, "datagrams");
        let mut accepted = 0;
        for _ in 0..20_000 {
            let mut bytes = [0u8; 80];
            bytes.iter_mut().for_each(|b| *b = rng.next_u64() as u8);
            if rng.uniform() < 0.8 {
                let long = rng.uniform() < 0.5;
                bytes[..4].copy_from_slice(&[253, if long { 28 } else { 20 }, 0x31, 0]);
                bytes[if long { 28 } else { 20 }] &= !(flag::CONTROL | flag::ACK);
            }
            let Ok(found) = read(&bytes) else { continue };
            accepted += 1;
            let mut out = [0; MOST_HEADERS];
            let length = write(&found.packet, &found.sack, &mut out);
            assert_eq!(length, found.payload);
            // Reserved fields are not kept: bytes 21..24 of the congestion header, and the window of data.
            let again = read(&out[..length]).unwrap();
            assert_eq!(
                (again.packet.congestion, again.packet.transport),
                (found.packet.congestion, found.packet.transport)
            );
        }
        assert!(accepted > 1000, "{accepted}");
    }
}

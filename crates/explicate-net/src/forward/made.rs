//! Frames that a router makes itself: messages to other routers, and ARP replies.

use std::net::Ipv4Addr;

use explicate_core::datagram::{self, MOST_HEADERS};
use explicate_core::wire::{IP_UDP_LEN, Packet, SackRanges};

use super::frame::{IP, word};
use crate::sys::OFFLOAD_LEN;

/// Makes the frame of a packet, with `payload` behind the headers.
pub fn make(
    packet: &Packet,
    sack: &SackRanges,
    payload: &[u8],
    (from, to): ([u8; 6], [u8; 6]),
    (source, destination): ([u8; 4], [u8; 4]),
    (from_port, to_port): (u16, u16),
) -> Vec<u8> {
    let mut headers = [0; MOST_HEADERS];
    let length = datagram::write(packet, sack, &mut headers);
    let total = IP_UDP_LEN + length + payload.len();
    let mut bytes = vec![0; OFFLOAD_LEN];
    bytes.extend(to);
    bytes.extend(from);
    bytes.extend([0x08, 0x00, 0x45, packet.tos]);
    bytes.extend((total as u16).to_be_bytes());
    bytes.extend([0, 0, 0x40, 0, packet.ttl, 17, 0, 0]);
    bytes.extend(source);
    bytes.extend(destination);
    let sum = !ones_sum(0, &bytes[IP..IP + 20]);
    bytes[IP + 10..IP + 12].copy_from_slice(&sum.to_be_bytes());
    bytes.extend(from_port.to_be_bytes());
    bytes.extend(to_port.to_be_bytes());
    bytes.extend(((total - 20) as u16).to_be_bytes());
    bytes.extend([0, 0]);
    bytes.extend(&headers[..length]);
    bytes.extend(payload);
    let sum = udp_sum(&bytes);
    bytes[IP + 26..IP + 28].copy_from_slice(&sum.to_be_bytes());
    bytes
}

/// The sum of 16-bit words in ones' complement.
pub(super) fn ones_sum(start: u32, bytes: &[u8]) -> u16 {
    let mut sum = start;
    for pair in bytes.chunks(2) {
        sum += u16::from_be_bytes([pair[0], *pair.get(1).unwrap_or(&0)]) as u32;
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// The UDP checksum of the frame of a datagram without IP options.
pub(super) fn udp_sum(bytes: &[u8]) -> u16 {
    let udp = &bytes[IP + 20..];
    let length = word(udp, 4) as usize;
    let mut sum = ones_sum(17 + length as u32, &bytes[IP + 12..IP + 20]);
    sum = ones_sum(sum as u32, &udp[..6]);
    match !ones_sum(sum as u32, &udp[8..length]) {
        0 => 0xffff,
        sum => sum,
    }
}

/// The reply to an ARP request for `own` (RFC 826), with the hardware address `station`.
pub fn answer_arp(bytes: &[u8], own: Ipv4Addr, station: [u8; 6]) -> Option<Vec<u8>> {
    let arp = bytes.get(IP..IP + 28)?;
    // Ethernet, IPv4, request.
    let asks = word(bytes, IP - 2) == 0x0806 && arp[..8] == [0, 1, 8, 0, 6, 4, 0, 1] && arp[24..28] == own.octets();
    if !asks {
        return None;
    }
    let mut answer = vec![0; OFFLOAD_LEN];
    answer.extend(&arp[8..14]);
    answer.extend(station);
    answer.extend([8, 6, 0, 1, 8, 0, 6, 4, 0, 2]);
    answer.extend(station);
    answer.extend(own.octets());
    answer.extend(&arp[8..18]);
    answer.resize(IP + 46, 0); // the least that Ethernet carries
    Some(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arp_requests_are_answered() {
        let own = Ipv4Addr::new(10, 0, 0, 9);
        let mut asks = vec![0; OFFLOAD_LEN];
        asks.extend([0xff; 6]);
        asks.extend([1; 6]);
        asks.extend([8, 6, 0, 1, 8, 0, 6, 4, 0, 1, 1, 1, 1, 1, 1, 1, 10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 10, 0, 0, 9]);
        let answer = answer_arp(&asks, own, [7; 6]).unwrap();
        assert_eq!(answer[OFFLOAD_LEN..IP], [1, 1, 1, 1, 1, 1, 7, 7, 7, 7, 7, 7, 8, 6]);
        assert_eq!(answer[IP + 6..IP + 28], [0, 2, 7, 7, 7, 7, 7, 7, 10, 0, 0, 9, 1, 1, 1, 1, 1, 1, 10, 0, 0, 1]);
        assert!(answer_arp(&asks, Ipv4Addr::new(10, 0, 0, 8), [7; 6]).is_none());
        assert!(answer_arp(&asks[..40], own, [7; 6]).is_none());
    }
}

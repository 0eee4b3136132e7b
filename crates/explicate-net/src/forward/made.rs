//! Frames that a router creates: messages to other routers, and ARP replies.

use std::net::Ipv4Addr;

use etherparse::{
    ArpEthIpv4Packet, ArpOperation, ArpPacket, EtherType, Ethernet2Header, IpDscp, IpEcn, IpNumber, Ipv4Header,
    UdpHeader,
};
use explicate_core::datagram::{self, MOST_HEADERS};
use explicate_core::wire::{IP_UDP_LEN, Packet, SackRanges};

use super::frame::IP;
use crate::sys::OFFLOAD_LEN;

/// Makes the frame of a packet, with `payload` after the headers.
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
    let payload = [&headers[..length], payload].concat();
    let total = IP_UDP_LEN + payload.len();
    let mut ip = Ipv4Header {
        dscp: IpDscp::try_new(packet.tos >> 2).unwrap_or_default(),
        ecn: IpEcn::try_new(packet.tos & 3).unwrap_or_default(),
        total_len: total as u16,
        time_to_live: packet.ttl,
        protocol: IpNumber::UDP,
        source,
        destination,
        ..Ipv4Header::default() // with the flag Don't Fragment
    };
    ip.header_checksum = ip.calc_header_checksum();
    let (udp_length, checksum) = ((total - ip.header_len()) as u16, 0);
    let mut udp = UdpHeader { source_port: from_port, destination_port: to_port, length: udp_length, checksum };
    udp.checksum = udp.calc_checksum_ipv4(&ip, &payload).unwrap_or_default();
    [&ethernet(from, to, EtherType::IPV4)[..], &ip.to_bytes(), &udp.to_bytes(), &payload].concat()
}

/// An empty offload header and an Ethernet header.
fn ethernet(source: [u8; 6], destination: [u8; 6], ether_type: EtherType) -> [u8; IP] {
    let mut bytes = [0; IP];
    bytes[OFFLOAD_LEN..].copy_from_slice(&Ethernet2Header { source, destination, ether_type }.to_bytes());
    bytes
}

/// The reply to an ARP request for `own` (RFC 826), with the hardware address `station`.
pub fn answer_arp(bytes: &[u8], own: Ipv4Addr, station: [u8; 6]) -> Option<Vec<u8>> {
    if bytes.get(IP - 2..IP)? != EtherType::ARP.0.to_be_bytes() {
        return None;
    }
    let request = ArpPacket::from_slice(&bytes[IP..]).ok()?.try_eth_ipv4().ok()?;
    if request.operation != ArpOperation::REQUEST || request.target_ipv4_addr() != own {
        return None;
    }
    let reply = ArpEthIpv4Packet {
        operation: ArpOperation::REPLY,
        sender_mac: station,
        sender_ipv4: own.octets(),
        target_mac: request.sender_mac,
        target_ipv4: request.sender_ipv4,
    };
    let mut answer = [&ethernet(station, request.sender_mac, EtherType::ARP)[..], &reply.to_bytes()].concat();
    answer.resize(IP + 46, 0); // Ethernet's minimum payload
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

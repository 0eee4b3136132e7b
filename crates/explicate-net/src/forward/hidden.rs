//! Detects explicit packets that are forwarded without feedback, so that they can be counted.
//!
//! For these packets the router is one without feedback. Packets in IPv6 are not written, because our endpoints use
//! IPv4 only; inside labels (MPLS) and tunnels (IP in IP, GRE, VXLAN) an outer checksum or length may depend on the
//! content; the checksum of a fragment covers all fragments. Encrypted packets are not detected.

use etherparse::{EtherType, IpNumber, Ipv4HeaderSlice, Ipv6HeaderSlice, UdpHeaderSlice};
use explicate_core::datagram;
use explicate_core::wire::UDP_PORT;

use super::bytes::{hash, word};

/// The encapsulation of an explicit packet that gets no feedback.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hidden {
    /// In IPv6.
    Ipv6,
    /// After MPLS labels.
    Mpls,
    /// In a tunnel.
    Tunnelled,
    /// In fragments; the first is reported.
    Fragment,
}

/// EtherType of MPLS.
const MPLS: EtherType = EtherType(0x8847);
/// EtherType of an Ethernet frame in GRE.
const BRIDGED: EtherType = EtherType(0x6558);
/// UDP port of VXLAN (RFC 7348).
const VXLAN: u16 = 4789;

/// Finds an explicit packet in the payload of a frame with this EtherType.
pub(super) fn find(kind: EtherType, bytes: &[u8]) -> Option<Hidden> {
    match kind {
        EtherType::IPV4 => in_ipv4(bytes),
        EtherType::IPV6 => in_ipv6(bytes),
        MPLS => {
            // RFC 3032: the last label has this bit. The payload's version is in its first byte.
            let last = bytes.chunks_exact(4).take(8).position(|label| label[2] & 1 == 1)?;
            is_explicit(&bytes[4 * (last + 1)..]).then_some(Hidden::Mpls)
        }
        _ => None,
    }
}

/// A hash of the flow of a packet that is not IPv4.
pub(super) fn fingerprint(kind: EtherType, bytes: &[u8]) -> u32 {
    match bytes {
        // Addresses, next header, and ports of TCP or UDP.
        ip if kind == EtherType::IPV6 && ip.len() >= 44 => {
            hash(ip[8..40].iter().chain(&ip[6..7]).chain(&ip[40..if matches!(ip[6], 6 | 17) { 44 } else { 40 }]))
        }
        _ => kind.0 as u32,
    }
}

/// The header and the payload of an IPv4 packet.
fn ipv4(ip: &[u8]) -> Option<(Ipv4HeaderSlice<'_>, &[u8])> {
    let header = Ipv4HeaderSlice::from_slice(ip).ok()?;
    Some((header, &ip[header.slice().len()..]))
}

fn in_ipv4(ip: &[u8]) -> Option<Hidden> {
    let (header, payload) = ipv4(ip)?;
    if header.is_fragmenting_payload() {
        let first = header.fragments_offset().value() == 0;
        let explicit = first && header.protocol() == IpNumber::UDP && is_ours(payload);
        return explicit.then_some(Hidden::Fragment);
    }
    in_tunnel(header.protocol(), payload).then_some(Hidden::Tunnelled)
}

fn in_ipv6(ip: &[u8]) -> Option<Hidden> {
    let header = Ipv6HeaderSlice::from_slice(ip).ok()?;
    let (next, payload) = (header.next_header(), &ip[header.slice().len()..]);
    if next == IpNumber::UDP && is_ours(payload) {
        return Some(Hidden::Ipv6);
    }
    in_tunnel(next, payload).then_some(Hidden::Tunnelled)
}

/// Whether a packet of this protocol encapsulates an explicit one.
fn in_tunnel(protocol: IpNumber, payload: &[u8]) -> bool {
    match protocol {
        IpNumber::IPV4 | IpNumber::IPV6 => is_explicit(payload),
        IpNumber::GRE => gre(payload).is_some_and(is_explicit),
        IpNumber::UDP => vxlan(payload).is_some_and(is_explicit),
        _ => false,
    }
}

/// The IP packet in GRE (RFC 2784, with the optional fields of RFC 2890).
fn gre(bytes: &[u8]) -> Option<&[u8]> {
    let flags = *bytes.first()?;
    let more = 4 * [0x80, 0x20, 0x10].iter().filter(|bit| flags & **bit != 0).count();
    let inner = bytes.get(4 + more..)?;
    match EtherType(word(bytes, 2)) {
        EtherType::IPV4 | EtherType::IPV6 => Some(inner),
        BRIDGED => inner.get(14..),
        _ => None,
    }
}

/// The IP packet in the frame in VXLAN.
fn vxlan(udp: &[u8]) -> Option<&[u8]> {
    let header = UdpHeaderSlice::from_slice(udp).ok()?;
    (header.destination_port() == VXLAN).then(|| udp.get(8 + 8 + 14..))?
}

/// Whether an IP packet of either version is addressed to our port.
fn is_explicit(ip: &[u8]) -> bool {
    match ip.first().map(|first| first >> 4) {
        Some(4) => ipv4(ip).is_some_and(|(header, payload)| header.protocol() == IpNumber::UDP && is_ours(payload)),
        Some(6) => Ipv6HeaderSlice::from_slice(ip)
            .is_ok_and(|header| header.next_header() == IpNumber::UDP && is_ours(&ip[header.slice().len()..])),
        _ => false,
    }
}

/// Whether a UDP datagram, or its first fragment, is data of an explicit flow.
fn is_ours(udp: &[u8]) -> bool {
    UdpHeaderSlice::from_slice(udp).is_ok_and(|header| header.destination_port() == UDP_PORT)
        && datagram::read(&udp[8..]).is_ok()
}

//! Detection of explicit packets that are forwarded without feedback, so that they can be counted.
//!
//! To their ends this router is one without feedback. Packets in IPv6 are not written, because our ends use IPv4 only; inside labels
//! (MPLS) and tunnels (IP in IP, GRE, VXLAN) an outer checksum or length may depend on the content; the checksum of a
//! fragment covers all fragments. Encrypted packets are not detected.

use explicate_core::datagram;
use explicate_core::wire::UDP_PORT;

use super::frame::{IPV4, IPV6, hash, word};

/// The encapsulation of an explicit packet that gets no feedback.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hidden {
    /// In IPv6.
    Ipv6,
    /// Behind MPLS labels.
    Mpls,
    /// In a tunnel.
    Tunnelled,
    /// In fragments; the first is reported.
    Fragment,
}

/// EtherType of MPLS.
const MPLS: u16 = 0x8847;
/// UDP port of VXLAN (RFC 7348).
const VXLAN: u16 = 4789;

/// Finds an explicit packet in the payload of a frame with this EtherType.
pub(super) fn find(kind: u16, bytes: &[u8]) -> Option<Hidden> {
    match kind {
        IPV4 => in_ipv4(bytes),
        IPV6 => in_ipv6(bytes),
        MPLS => {
            // RFC 3032: the last label has this bit. The payload's version is in its first byte.
            let last = bytes.chunks_exact(4).take(8).position(|label| label[2] & 1 == 1)?;
            is_explicit(&bytes[4 * (last + 1)..]).then_some(Hidden::Mpls)
        }
        _ => None,
    }
}

/// A hash of the flow of a packet that is not IPv4.
pub(super) fn fingerprint(kind: u16, bytes: &[u8]) -> u32 {
    match bytes {
        // Addresses, next header, and ports of TCP or UDP.
        ip if kind == IPV6 && ip.len() >= 44 => {
            hash(ip[8..40].iter().chain(&ip[6..7]).chain(&ip[40..if matches!(ip[6], 6 | 17) { 44 } else { 40 }]))
        }
        _ => kind as u32,
    }
}

/// Payload of an IPv4 packet, and its protocol.
fn payload_of(ip: &[u8]) -> Option<(u8, &[u8])> {
    let header = 4 * (*ip.first()? & 15) as usize;
    if ip[0] >> 4 != 4 || ip.len() < 20 {
        return None;
    }
    Some((ip[9], ip.get(header.max(20)..)?))
}

fn in_ipv4(ip: &[u8]) -> Option<Hidden> {
    let (protocol, payload) = payload_of(ip)?;
    let piece = word(ip, 6) & 0x3fff;
    if piece != 0 {
        // The first fragment has offset zero and the flag of more fragments.
        let explicit = piece == 0x2000 && protocol == 17 && is_ours(payload);
        return explicit.then_some(Hidden::Fragment);
    }
    in_tunnel(protocol, payload).then_some(Hidden::Tunnelled)
}

fn in_ipv6(ip: &[u8]) -> Option<Hidden> {
    let (next, payload) = (*ip.get(6)?, ip.get(40..)?);
    if next == 17 && is_ours(payload) {
        return Some(Hidden::Ipv6);
    }
    in_tunnel(next, payload).then_some(Hidden::Tunnelled)
}

/// Whether a packet of this protocol encapsulates an explicit one.
fn in_tunnel(protocol: u8, payload: &[u8]) -> bool {
    match protocol {
        4 | 41 => is_explicit(payload),
        47 => gre(payload).is_some_and(is_explicit),
        17 => vxlan(payload).is_some_and(is_explicit),
        _ => false,
    }
}

/// The IP packet in GRE (RFC 2784, with the optional fields of RFC 2890).
fn gre(bytes: &[u8]) -> Option<&[u8]> {
    let flags = *bytes.first()?;
    let more = 4 * [0x80, 0x20, 0x10].iter().filter(|bit| flags & **bit != 0).count();
    let inner = bytes.get(4 + more..)?;
    match word(bytes, 2) {
        IPV4 | IPV6 => Some(inner),
        0x6558 => inner.get(14..), // an Ethernet frame
        _ => None,
    }
}

/// The IP packet in the frame in VXLAN.
fn vxlan(udp: &[u8]) -> Option<&[u8]> {
    (udp.len() >= 8 && word(udp, 2) == VXLAN).then(|| udp.get(8 + 8 + 14..))?
}

/// Whether an IP packet of either version is to our port.
fn is_explicit(ip: &[u8]) -> bool {
    match ip.first().map(|first| first >> 4) {
        Some(4) => payload_of(ip).is_some_and(|(protocol, payload)| protocol == 17 && is_ours(payload)),
        Some(6) => ip.len() >= 40 && ip[6] == 17 && is_ours(&ip[40..]),
        _ => false,
    }
}

/// Whether a UDP datagram, or its first fragment, is data of an explicit flow.
fn is_ours(udp: &[u8]) -> bool {
    udp.len() > 8 && word(udp, 2) == UDP_PORT && datagram::read(&udp[8..]).is_ok()
}

//! Ethernet frames: detects packets of explicit flows, and writes the changes of a packet into its frame, with correct
//! checksums.
//!
//! A packet is explicit if it is an IPv4 datagram to UDP port [`UDP_PORT`] with headers that [`datagram::read`]
//! accepts. Packets *from* that port are acknowledgements: parsed, so that controllers can distinguish them from
//! data, but not written, because another program's socket may have that port. Every other packet is *other*: it uses
//! the same queue and leaves unchanged, except for a mark (RFC 3168) if the queue discipline sets one.
//!
//! The IP header may be behind VLAN tags (802.1Q, 802.1ad) and a PPPoE session header. Explicit packets in other
//! encapsulations are [counted](super::hidden).

use std::net::Ipv4Addr;

use etherparse::{EtherType, IpNumber, Ipv4HeaderSlice, UdpHeaderSlice};
use explicate_core::datagram::{self, MOST_HEADERS};
use explicate_core::wire::{CONGESTION_LEN, EXTENDED_LEN, Ecn, Extension, Packet, SackRanges, UDP_PORT, flag};

use super::bytes::{hash, word};
use super::hidden::{self, Hidden};
use crate::sys::OFFLOAD_LEN;

/// Length of an Ethernet header.
pub const ETHERNET_LEN: usize = 14;
/// Offset of the IP header in a frame with its offload header and without tags.
pub const IP: usize = OFFLOAD_LEN + ETHERNET_LEN;

/// The kind of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Not IPv4, or cut short.
    NonIp,
    /// IPv4 that is not explicit.
    Other,
    /// A packet or message of explicit flows.
    Explicit {
        /// Offset of its UDP header.
        udp: u16,
        /// Length of its headers.
        headers: u8,
        /// Whether its headers may be written: its destination is the port.
        writable: bool,
    },
}

/// A reason why an explicit packet gets no feedback.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Anomaly {
    /// To the port, but its headers are malformed.
    Malformed,
    /// Several explicit packets merged by a sender's offload: only the first packet would get feedback.
    Merged,
    /// It encapsulates an explicit packet in a way that is not supported.
    Hidden(Hidden),
}

/// A parsed frame.
#[derive(Clone, Copy)]
pub struct Parsed {
    /// The packet.
    pub packet: Packet,
    /// Its SACK ranges.
    pub sack: SackRanges,
    /// Its kind.
    pub kind: Kind,
    /// Its anomaly, if any.
    pub anomaly: Option<Anomaly>,
    /// Offset of its IP header.
    pub ip: u16,
    /// Whether it is in IPv6.
    pub is_ipv6: bool,
}

impl Parsed {
    /// Whether there are tags or a PPPoE header before its IP header.
    pub fn is_tagged(&self) -> bool {
        self.ip as usize != IP
    }
    /// Whether it is an IP packet of another program.
    pub fn is_plain(&self) -> bool {
        self.is_ipv6 || self.kind == Kind::Other
    }
}

/// Parses a frame with its offload header.
pub fn parse(bytes: &[u8]) -> Parsed {
    let (what, at) = network(bytes);
    let length = bytes.len().saturating_sub(at).clamp(1, u16::MAX as usize) as u16;
    let packet = Packet { ip_len: length, ..Packet::EMPTY };
    let (sack, is_ipv6) = (SackRanges::NONE, false);
    let mut parsed = Parsed { packet, sack, kind: Kind::NonIp, anomaly: None, ip: at as u16, is_ipv6 };
    let Some(ip) = bytes.get(at..) else { return parsed };
    parsed.is_ipv6 = what == EtherType::IPV6 && ip.first().is_some_and(|first| first >> 4 == 6);
    let header = if what == EtherType::IPV4 { Ipv4HeaderSlice::from_slice(ip).ok() } else { None };
    let Some(header) = header else {
        parsed.packet.transport.set_flow(hidden::fingerprint(what, ip));
        parsed.anomaly = hidden::find(what, ip).map(Anomaly::Hidden);
        return parsed;
    };
    let (length, total) = (header.slice().len(), header.total_len() as usize);
    if total < length || total > ip.len() {
        return parsed;
    }
    parsed.kind = Kind::Other;
    (parsed.packet.ip_len, parsed.packet.tos, parsed.packet.ttl) = (total as u16, ip[1] & !HIGH_DSCP, header.ttl());
    let payload = &ip[length..total];
    // Other transports have their ports at the same offset.
    let udp = if header.is_fragmenting_payload() { None } else { UdpHeaderSlice::from_slice(payload).ok() };
    // For queues that separate flows; it is not written.
    parsed.packet.transport.set_flow(fingerprint(ip, udp.as_ref().map_or(&[], |udp| &udp.slice()[..4])));
    let is_ours = |udp: &UdpHeaderSlice<'_>| [udp.source_port(), udp.destination_port()].contains(&UDP_PORT);
    let Some(udp) = udp.filter(|udp| header.protocol() == IpNumber::UDP && is_ours(udp)) else {
        parsed.anomaly = hidden::find(what, &ip[..total]).map(Anomaly::Hidden);
        return parsed;
    };
    let to = udp.destination_port();
    if bytes[1] != 0 {
        parsed.anomaly = Some(Anomaly::Merged);
        return parsed;
    }
    match datagram::read(payload.get(8..udp.length() as usize).unwrap_or_default()) {
        Ok(read) if to == UDP_PORT || read.packet.is_ack() => {
            let (ip_len, tos, ttl) = (parsed.packet.ip_len, parsed.packet.tos, parsed.packet.ttl);
            parsed.packet = Packet { ip_len, tos, ttl, ..read.packet };
            parsed.sack = read.sack;
            let headers = (read.payload.min(MOST_HEADERS)) as u8;
            parsed.kind = Kind::Explicit { udp: (at + length) as u16, headers, writable: to == UDP_PORT };
        }
        Err(_) if to == UDP_PORT => parsed.anomaly = Some(Anomaly::Malformed),
        _ => {}
    }
    parsed
}

/// The high bit of a DSCP. In a packet's `tos` this bit means damage, so here it stays in the frame.
const HIGH_DSCP: u8 = 0x80;
/// EtherType of a PPPoE session (RFC 2516), which etherparse does not have.
const PPPOE_SESSION: EtherType = EtherType(0x8864);
/// EtherType of nothing.
const NONE: EtherType = EtherType(0);
/// Most tags that are skipped.
const TAGS: usize = 3;

/// The EtherType of a frame's payload after tags and a PPPoE session header, and its offset; zero if the frame is too
/// short.
fn network(bytes: &[u8]) -> (EtherType, usize) {
    let mut at = IP;
    for _ in 0..=TAGS {
        let Some(kind) = bytes.get(at - 2..at) else { return (NONE, IP) };
        match EtherType(word(kind, 0)) {
            EtherType::VLAN_TAGGED_FRAME | EtherType::PROVIDER_BRIDGING | EtherType::VLAN_DOUBLE_TAGGED_FRAME => {
                at += 4
            }
            // Version and type 1, code 0, session, length; then PPP's protocol number.
            PPPOE_SESSION => {
                let Some(header) = bytes.get(at..at + 8).filter(|h| h[..2] == [0x11, 0]) else { return (NONE, at) };
                let kinds = [(0x0021, EtherType::IPV4), (0x0057, EtherType::IPV6)];
                let kind = kinds.into_iter().find(|(ppp, _)| *ppp == word(header, 6));
                return (kind.map_or(NONE, |(_, kind)| kind), at + 8);
            }
            kind => return (kind, at),
        }
    }
    (NONE, at)
}

/// Source and destination of a frame whose IPv4 header is at `ip`.
pub fn addresses(bytes: &[u8], ip: u16) -> (Ipv4Addr, Ipv4Addr) {
    let at = |first: usize| Ipv4Addr::new(bytes[first], bytes[first + 1], bytes[first + 2], bytes[first + 3]);
    (at(ip as usize + 12), at(ip as usize + 16))
}

/// A hash of addresses, protocol and ports (FNV-1a).
fn fingerprint(ip: &[u8], ports: &[u8]) -> u32 {
    hash(ip[12..20].iter().chain(&ip[9..10]).chain(ports))
}

/// Writes the changes of a packet into its frame.
pub fn emit(bytes: &mut [u8], parsed: &Parsed) {
    let Parsed { packet, sack, kind, ip, .. } = *parsed;
    let ip = ip as usize;
    if kind == Kind::NonIp {
        return;
    }
    let clean = packet.without_mark();
    let explicit = matches!(kind, Kind::Explicit { .. });
    let ecn_may_change = explicit || clean.ecn() == Ecn::Marked;
    let tos = if ecn_may_change { clean.tos | bytes[ip + 1] & HIGH_DSCP } else { bytes[ip + 1] };
    let (old, new) = ([bytes[ip], bytes[ip + 1]], [bytes[ip], tos]);
    patch(bytes, ip, &old, &new, ip + 10);
    let (old, new) = ([bytes[ip + 8], bytes[ip + 9]], [clean.ttl, bytes[ip + 9]]);
    patch(bytes, ip + 8, &old, &new, ip + 10);
    if let Kind::Explicit { udp, headers, writable: true } = kind {
        write_headers(bytes, &clean, &sack, udp as usize, headers as usize);
    }
    if packet.is_damaged() {
        // Flips a bit of the last byte and keeps the checksum, so that the receiver detects the damage. If the
        // checksum is left to hardware, its present value is kept, which is wrong.
        bytes[0] &= !1;
        let last = ip + word(bytes, ip + 2) as usize - 1;
        bytes[last] ^= 0x10;
    }
}

fn write_headers(bytes: &mut [u8], packet: &Packet, sack: &SackRanges, udp: usize, headers: usize) {
    let mut new = [0; MOST_HEADERS];
    if datagram::write(packet, sack, &mut new) != headers {
        return; // only headers that were parsed are written
    }
    let at = udp + 8;
    if Extension::of(packet).is_some() {
        // What the core's packet does not have: bytes of the extension without a meaning, and the upper half of the flow's number.
        for (from, to) in [(CONGESTION_LEN + 1, CONGESTION_LEN + 4), (EXTENDED_LEN + 16, EXTENDED_LEN + 20)] {
            new[from..to].copy_from_slice(&bytes[at + from..at + to]);
        }
    }
    if packet.transport.has(flag::CONTROL) || bytes[at..at + headers] == new[..headers] {
        return;
    }
    let mut old = [0; MOST_HEADERS];
    old[..headers].copy_from_slice(&bytes[at..at + headers]);
    // No update without a checksum, nor of one that hardware will compute.
    let summed = word(bytes, udp + 6) != 0 && bytes[0] & 1 == 0;
    if summed {
        patch(bytes, at, &old[..headers], &new[..headers], udp + 6);
        if word(bytes, udp + 6) == 0 {
            bytes[udp + 6..udp + 8].fill(0xff); // zero means no checksum (RFC 768)
        }
    } else {
        bytes[at..at + headers].copy_from_slice(&new[..headers]);
    }
}

/// Replaces `old` at `at` by `new`, and corrects the checksum at `sum` (RFC 1624 equation 3). Lengths are even.
fn patch(bytes: &mut [u8], at: usize, old: &[u8], new: &[u8], sum: usize) {
    if old == new {
        return;
    }
    let mut total = !word(bytes, sum) as u32;
    for (o, n) in old.chunks_exact(2).zip(new.chunks_exact(2)) {
        total += !u16::from_be_bytes([o[0], o[1]]) as u32 + u16::from_be_bytes([n[0], n[1]]) as u32;
    }
    while total > 0xffff {
        total = (total & 0xffff) + (total >> 16);
    }
    bytes[sum..sum + 2].copy_from_slice(&(!(total as u16)).to_be_bytes());
    bytes[at..at + new.len()].copy_from_slice(new);
}

#[cfg(test)]
mod tests {
    use super::super::made::make;
    use super::*;
    use explicate_core::rng::Rng;
    use explicate_core::wire::{Congestion, Format};

    fn data() -> Packet {
        let mut packet = Packet { congestion: Congestion::new(Format::STANDARD), tos: 0x2a, ..Packet::EMPTY };
        packet.congestion.set_delta_throughput(100_000);
        packet.transport.set_flow(0xdead_beef);
        packet.transport.set_payload(101);
        packet
    }
    fn frame_to(packet: &Packet, port: u16) -> Vec<u8> {
        make(packet, &SackRanges::NONE, &[7; 101], ([1; 6], [2; 6]), ([10, 0, 0, 1], [10, 0, 0, 2]), (5000, port))
    }
    fn frame(packet: &Packet) -> Vec<u8> {
        frame_to(packet, UDP_PORT)
    }
    fn udp_sum_is_right(bytes: &[u8]) -> bool {
        let ip = Ipv4HeaderSlice::from_slice(&bytes[IP..]).unwrap().to_header();
        let udp = UdpHeaderSlice::from_slice(&bytes[IP + 20..]).unwrap().to_header();
        udp.checksum == udp.calc_checksum_ipv4(&ip, &bytes[IP + 28..IP + 20 + udp.length as usize]).unwrap()
    }
    fn sums_are_right(bytes: &[u8]) -> bool {
        let ip = Ipv4HeaderSlice::from_slice(&bytes[IP..]).unwrap().to_header();
        ip.header_checksum == ip.calc_header_checksum() && udp_sum_is_right(bytes)
    }

    #[test]
    fn what_is_written_can_be_read_and_sums_stay_right() {
        let mut bytes = frame(&data());
        assert!(sums_are_right(&bytes));
        let mut rng = Rng::stream(1, "frames");
        for _ in 0..1000 {
            let mut parsed = parse(&bytes);
            assert!(matches!(parsed.kind, Kind::Explicit { writable: true, headers: 44, .. }));
            parsed.packet.congestion.set_delta_throughput(rng.next_u64() as i32);
            parsed.packet.tos = rng.next_u64() as u8 & 0x7f;
            parsed.packet.ttl = rng.next_u64() as u8;
            emit(&mut bytes, &parsed);
            assert!(sums_are_right(&bytes));
            let again = parse(&bytes);
            assert_eq!(again.packet.congestion, parsed.packet.congestion);
            assert_eq!((again.packet.tos, again.packet.ttl), (parsed.packet.tos, parsed.packet.ttl));
        }
    }

    #[test]
    fn fields_of_xcp_i_are_written() {
        let mut packet = data();
        Extension { counter: 64, node: 1 }.put(&mut packet);
        let mut bytes = frame(&packet);
        let mut parsed = parse(&bytes);
        Extension { counter: 63, node: 0x0a00_0001 }.put(&mut parsed.packet);
        emit(&mut bytes, &parsed);
        assert!(sums_are_right(&bytes));
        assert_eq!(Extension::of(&parse(&bytes).packet), Some(Extension { counter: 63, node: 0x0a00_0001 }));
    }

    /// Bytes of the extension without a meaning, the upper half of the flow's number and SACK ranges, which data need not have.
    #[test]
    fn what_routers_of_xcp_i_do_not_read_stays() {
        let mut packet = data();
        Extension { counter: 64, node: 1 }.put(&mut packet);
        packet.transport.set_sack_count(1);
        let mut ranges = SackRanges::default();
        ranges.push(3, 5);
        let ends = (([1; 6], [2; 6]), ([10, 0, 0, 1], [10, 0, 0, 2]));
        let mut bytes = make(&packet, &ranges, &[7; 101], ends.0, ends.1, (5000, UDP_PORT));
        let headers = IP + 28;
        for at in [21, 22, 23, 44, 45, 46, 47] {
            bytes[headers + at] = at as u8;
        }
        bytes[headers - 2..headers].fill(0); // no checksum
        let (before, mut parsed) = (bytes.clone(), parse(&bytes));
        assert!(matches!(parsed.kind, Kind::Explicit { writable: true, headers: 60, .. }));
        Extension { counter: 63, node: 0x0a00_0001 }.put(&mut parsed.packet);
        emit(&mut bytes, &parsed);
        let changed: Vec<usize> =
            (headers..bytes.len()).filter(|at| bytes[*at] != before[*at]).map(|at| at - headers).collect();
        assert_eq!(changed, [20, 24], "the counter and the node");
    }

    #[test]
    fn other_packets_leave_as_they_came() {
        let mut bytes = frame_to(&data(), 53);
        let before = bytes.clone();
        let mut parsed = parse(&bytes);
        assert_eq!(parsed.kind, Kind::Other);
        parsed.packet.set_ecn(Ecn::Capable1); // as a controller of another protocol would
        emit(&mut bytes, &parsed);
        assert_eq!(bytes, before);
        parsed.packet.set_ecn(Ecn::Marked);
        emit(&mut bytes, &parsed);
        assert_eq!(bytes[IP + 1], 0x2b);
        assert!(sums_are_right(&bytes));
    }

    #[test]
    fn voice_and_routing_protocols_are_not_damaged() {
        // EF (46) and CS6 (48): the highest bit of the field is set.
        for (tos, port) in [(46 << 2, 53), (48 << 2, 53), (46 << 2 | 2, UDP_PORT)] {
            let mut bytes = frame_to(&Packet { tos: 0, ..data() }, port);
            patch(&mut bytes, IP, &[0x45, 0], &[0x45, tos], IP + 10);
            let (before, mut parsed) = (bytes.clone(), parse(&bytes));
            assert!(!parsed.packet.is_damaged());
            emit(&mut bytes, &parsed);
            assert_eq!(bytes, before, "DSCP {}", tos >> 2);
            parsed.packet.set_ecn(Ecn::Marked);
            emit(&mut bytes, &parsed);
            assert_eq!(bytes[IP + 1], tos | 3);
            assert!(sums_are_right(&bytes));
        }
    }

    #[test]
    fn a_datagram_without_checksum_gets_none() {
        let mut bytes = frame(&data());
        bytes[IP + 26..IP + 28].fill(0);
        let mut parsed = parse(&bytes);
        parsed.packet.congestion.set_delta_throughput(1);
        emit(&mut bytes, &parsed);
        assert_eq!((word(&bytes, IP + 26), parse(&bytes).packet.congestion.delta_throughput()), (0, 1));
    }

    #[test]
    fn odd_frames_are_noticed() {
        let good = frame(&data());
        let with = |at: usize, value: u8| {
            let mut bytes = good.clone();
            bytes[at] = value;
            let parsed = parse(&bytes);
            (parsed.kind, parsed.anomaly)
        };
        assert_eq!(with(1, 5), (Kind::Other, Some(Anomaly::Merged)), "the kernel's UDP segmentation");
        assert_eq!(with(IP + 28 + 2, 0x21), (Kind::Other, Some(Anomaly::Malformed)), "not our version");
        assert_eq!(with(IP + 24, 0xff), (Kind::Other, Some(Anomaly::Malformed)), "longer than it is");
        assert_eq!(with(IP + 6, 0x20), (Kind::Other, Some(Anomaly::Hidden(Hidden::Fragment))), "the first fragment");
        assert_eq!(with(IP + 7, 0x20), (Kind::Other, None), "another one");
        assert_eq!(with(IP, 0x65), (Kind::NonIp, None), "IPv6");
        for length in 0..good.len() {
            parse(&good[..length]);
        }
    }

    /// Possible headers between addresses and IP header.
    fn prefixed(bytes: &[u8], prefix: &[u8]) -> Vec<u8> {
        [&bytes[..OFFLOAD_LEN + 12], prefix, &bytes[IP..]].concat()
    }

    #[test]
    fn packets_behind_tags_are_served() {
        let vlan: &[u8] = &[0x81, 0, 0x60, 5, 8, 0];
        let double: &[u8] = &[0x88, 0xa8, 0, 7, 0x81, 0, 0, 5, 8, 0];
        let session: &[u8] = &[0x88, 0x64, 0x11, 0, 0, 1, 0, 200, 0, 0x21];
        let tagged_session: &[u8] = &[0x81, 0, 0, 5, 0x88, 0x64, 0x11, 0, 0, 1, 0, 200, 0, 0x21];
        for prefix in [vlan, double, session, tagged_session] {
            let mut bytes = prefixed(&frame(&data()), prefix);
            let mut parsed = parse(&bytes);
            assert!(matches!(parsed.kind, Kind::Explicit { writable: true, .. }) && parsed.is_tagged(), "{prefix:?}");
            parsed.packet.congestion.set_delta_throughput(-77);
            (parsed.packet.ttl, parsed.packet.tos) = (9, 0x29);
            emit(&mut bytes, &parsed);
            assert_eq!(
                bytes[..OFFLOAD_LEN + 12 + prefix.len()],
                prefixed(&frame(&data()), prefix)[..OFFLOAD_LEN + 12 + prefix.len()]
            );
            let plain = [&bytes[..OFFLOAD_LEN + 12], &[8, 0], &bytes[OFFLOAD_LEN + 12 + prefix.len()..]].concat();
            assert!(sums_are_right(&plain), "{prefix:?}");
            let again = parse(&bytes);
            assert_eq!((again.packet.congestion.delta_throughput(), again.packet.ttl), (-77, 9));
            assert_eq!(addresses(&bytes, again.ip).1, Ipv4Addr::new(10, 0, 0, 2));
            for length in 0..bytes.len() {
                parse(&bytes[..length]);
            }
        }
    }

    #[test]
    fn explicit_packets_that_cannot_be_served_are_noticed() {
        let inner = &frame(&data())[IP..];
        let found = |prefix: &[u8], payload: &[u8]| {
            let bytes = prefixed(&[&frame(&data())[..IP], payload].concat(), prefix);
            for length in 0..bytes.len() {
                parse(&bytes[..length]);
            }
            parse(&bytes).anomaly
        };
        let ipv6 = |next: u8, payload: &[u8]| {
            let length = (payload.len() as u16).to_be_bytes();
            [&[0x60, 0, 0, 0, length[0], length[1], next, 64], &[0xfd; 32][..], payload].concat()
        };
        let ipv4 = |protocol: u8, payload: &[u8]| {
            let total = (20 + payload.len() as u16).to_be_bytes();
            [&[0x45, 0, total[0], total[1], 0, 0, 0, 0, 64, protocol, 0, 0], &[10; 8][..], payload].concat()
        };
        let (four, six): (&[u8], &[u8]) = (&[8, 0], &[0x86, 0xdd]);
        let hidden = |at| Some(Anomaly::Hidden(at));
        assert_eq!(found(six, &ipv6(17, &inner[20..])), hidden(Hidden::Ipv6));
        assert_eq!(found(&[0x81, 0, 0, 5, 0x86, 0xdd], &ipv6(17, &inner[20..])), hidden(Hidden::Ipv6), "tagged");
        assert_eq!(found(six, &ipv6(4, inner)), hidden(Hidden::Tunnelled), "IPv4 in IPv6");
        assert_eq!(
            found(&[0x88, 0x47], &[&[0, 1, 0, 64, 0, 2, 1, 64], inner].concat()),
            hidden(Hidden::Mpls),
            "two labels"
        );
        assert_eq!(found(four, &ipv4(4, inner)), hidden(Hidden::Tunnelled), "IP in IP");
        assert_eq!(
            found(four, &ipv4(47, &[&[0x20, 0, 8, 0, 0, 0, 0, 9], inner].concat())),
            hidden(Hidden::Tunnelled),
            "GRE with a key"
        );
        let vxlan =
            [&[0x30, 0, 0x12, 0xb5, 0, 200, 0, 0, 8, 0, 0, 0, 0, 0, 7, 0], &[2; 12][..], &[8, 0], inner].concat();
        assert_eq!(found(four, &ipv4(17, &vxlan)), hidden(Hidden::Tunnelled), "VXLAN");
        for nothing in [ipv6(6, &inner[20..]), ipv6(17, &inner[..8]), ipv6(47, &[0, 0]), Vec::new()] {
            assert_eq!(found(six, &nothing), None);
        }
        let flow =
            |bytes: &[u8]| parse(&prefixed(&[&frame(&data())[..IP], bytes].concat(), six)).packet.transport.flow();
        let mut other = ipv6(6, &inner[20..]);
        let one = flow(&other);
        other[41] ^= 1;
        assert!(flow(&other) != one, "another port is another flow");
    }

    #[test]
    fn damage_is_found_by_the_checksum() {
        for left_to_hardware in [0, 1] {
            let mut bytes = frame(&data());
            bytes[0] = left_to_hardware;
            let mut parsed = parse(&bytes);
            parsed.packet.damage();
            emit(&mut bytes, &parsed);
            assert!(bytes[0] == 0 && !udp_sum_is_right(&bytes));
        }
    }

    /// With any input: no panic, no change except of the bytes that may change, and the same lengths.
    #[test]
    fn hostile_frames() {
        let mut rng = Rng::stream(2, "hostile");
        let good = [frame(&data()), frame_to(&data(), 4000)];
        for i in 0..200_000 {
            let mut bytes = good[i % 2].clone();
            for _ in 0..rng.next_u64() % 6 {
                let at = rng.next_u64() as usize % bytes.len();
                bytes[at] = rng.next_u64() as u8;
            }
            bytes.truncate(bytes.len() - if rng.uniform() < 0.3 { rng.next_u64() as usize % bytes.len() } else { 0 });
            let before = bytes.clone();
            let mut parsed = parse(&bytes);
            parsed.packet.ttl = parsed.packet.ttl.saturating_sub(1);
            if rng.uniform() < 0.5 {
                parsed.packet.damage();
            }
            parsed.packet.congestion.set_delta_throughput(-1);
            emit(&mut bytes, &parsed);
            assert_eq!(bytes.len(), before.len());
            if parsed.kind == Kind::NonIp {
                assert_eq!(bytes, before);
            }
        }
    }
}

//! Ethernet frames: which of them are packets of explicit flows, and how what the core writes into a packet gets into its
//! frame, with the checksums right.
//!
//! A packet is explicit if it is an IPv4 datagram to UDP port [`UDP_PORT`] with headers that [`datagram::read`] accepts. Packets
//! *from* that port are acknowledgements: read, so that controllers can tell them from data, but not written, because another
//! program's socket may have that port. Everything else is *other*: it takes the same queue and leaves as it came, but for
//! a mark (RFC 3168) if a discipline set one.

use std::net::Ipv4Addr;

use explicate_core::datagram::{self, MOST_HEADERS};
use explicate_core::wire::{Ecn, Packet, SackRanges, TRANSPORT_LEN, UDP_PORT, XcpI, flag};

use crate::sys::OFFLOAD_LEN;

/// Length of an Ethernet header.
pub const ETHERNET_LEN: usize = 14;
/// Where the IP header stands in a frame with its offload header.
pub const IP: usize = OFFLOAD_LEN + ETHERNET_LEN;

/// What a frame is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// No IPv4, or a piece of it.
    Alien,
    /// IPv4 that is not explicit.
    Other,
    /// A packet or message of explicit flows.
    Explicit {
        /// Where its UDP header begins.
        udp: u16,
        /// Length of its headers.
        headers: u8,
        /// It goes to the port, so that its headers may be written.
        writable: bool,
    },
}

/// What was noticed about a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Odd {
    /// To the port, but its headers make no sense.
    Malformed,
    /// Several explicit packets that a sender's offload has put into one: feedback would reach the first alone.
    Merged,
}

/// A frame as the core sees it.
#[derive(Clone, Copy)]
pub struct Lifted {
    /// The packet.
    pub packet: Packet,
    /// Its SACK ranges.
    pub sack: SackRanges,
    /// What it is.
    pub kind: Kind,
    /// What is odd about it.
    pub odd: Option<Odd>,
}

pub(super) fn word(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// Reads a frame with its offload header.
pub fn lift(bytes: &[u8]) -> Lifted {
    let length = bytes.len().saturating_sub(IP).clamp(1, u16::MAX as usize) as u16;
    let packet = Packet { ip_len: length, ..Packet::EMPTY };
    let mut lifted = Lifted { packet, sack: SackRanges::NONE, kind: Kind::Alien, odd: None };
    let Some(ip) = bytes.get(IP..) else { return lifted };
    if word(bytes, IP - 2) != 0x0800 || ip.len() < 20 || ip[0] >> 4 != 4 {
        return lifted;
    }
    let (header, total) = (4 * (ip[0] & 15) as usize, word(ip, 2) as usize);
    if header < 20 || total < header || total > ip.len() {
        return lifted;
    }
    lifted.kind = Kind::Other;
    (lifted.packet.ip_len, lifted.packet.tos, lifted.packet.ttl) = (total as u16, ip[1], ip[8]);
    let whole = word(ip, 6) & 0x3fff == 0;
    let udp = &ip[header..total];
    let ported = whole && udp.len() >= 8;
    // Queues that keep flows apart find one in every packet; nothing of this is written.
    lifted.packet.transport.set_flow(fingerprint(ip, if ported { &udp[..4] } else { &[] }));
    if !ported || ip[9] != 17 {
        return lifted;
    }
    let (from, to, long) = (word(udp, 0), word(udp, 2), word(udp, 4) as usize);
    if from != UDP_PORT && to != UDP_PORT {
        return lifted;
    }
    if bytes[1] != 0 {
        lifted.odd = Some(Odd::Merged);
        return lifted;
    }
    let payload = if (8..=udp.len()).contains(&long) { &udp[8..long] } else { &[] };
    match datagram::read(payload) {
        Ok(read) if to == UDP_PORT || read.packet.is_ack() => {
            let (ip_len, tos, ttl) = (lifted.packet.ip_len, lifted.packet.tos, lifted.packet.ttl);
            lifted.packet = Packet { ip_len, tos, ttl, ..read.packet };
            lifted.sack = read.sack;
            let headers = (read.payload.min(MOST_HEADERS)) as u8;
            lifted.kind = Kind::Explicit { udp: (IP + header) as u16, headers, writable: to == UDP_PORT };
        }
        Err(_) if to == UDP_PORT => lifted.odd = Some(Odd::Malformed),
        _ => {}
    }
    lifted
}

/// Source and destination of an IPv4 frame.
pub fn addresses(bytes: &[u8]) -> (Ipv4Addr, Ipv4Addr) {
    let at = |first: usize| Ipv4Addr::new(bytes[first], bytes[first + 1], bytes[first + 2], bytes[first + 3]);
    (at(IP + 12), at(IP + 16))
}

/// Tells flows apart by addresses, protocol and ports (FNV-1a).
fn fingerprint(ip: &[u8], ports: &[u8]) -> u32 {
    let parts = ip[12..20].iter().chain(&ip[9..10]).chain(ports);
    parts.fold(0x811c_9dc5, |hash, &byte| (hash ^ byte as u32).wrapping_mul(0x0100_0193))
}

/// Writes what has changed in a packet into its frame.
pub fn lower(bytes: &mut [u8], lifted: &Lifted) {
    let Lifted { packet, sack, kind, .. } = *lifted;
    if kind == Kind::Alien {
        return;
    }
    let clean = packet.without_mark();
    let explicit = matches!(kind, Kind::Explicit { .. });
    let ecn_may_change = explicit || clean.ecn() == Ecn::Marked;
    let tos = if ecn_may_change { clean.tos } else { bytes[IP + 1] };
    let (old, new) = ([bytes[IP], bytes[IP + 1]], [bytes[IP], tos]);
    patch(bytes, IP, &old, &new, IP + 10);
    let (old, new) = ([bytes[IP + 8], bytes[IP + 9]], [clean.ttl, bytes[IP + 9]]);
    patch(bytes, IP + 8, &old, &new, IP + 10);
    if let Kind::Explicit { udp, headers, writable: true } = kind {
        write_headers(bytes, &clean, &sack, udp as usize, headers as usize);
    }
    if packet.is_damaged() {
        // The last byte of the datagram; its checksum stays, so that its end finds out. One that was left to hardware would
        // be made right further on: what stands there now is wrong.
        bytes[0] &= !1;
        let last = IP + word(bytes, IP + 2) as usize - 1;
        bytes[last] ^= 0x10;
    }
}

fn write_headers(bytes: &mut [u8], packet: &Packet, sack: &SackRanges, udp: usize, headers: usize) {
    let mut new = [0; MOST_HEADERS];
    if datagram::write(packet, sack, &mut new) != headers {
        return; // only what was read is written
    }
    let at = udp + 8;
    if XcpI::of(packet).is_some() {
        // A packet in memory has no room for what stands here, the upper half of its flow's number.
        let window = headers - TRANSPORT_LEN + 16;
        new[window..window + 4].copy_from_slice(&bytes[at + window..at + window + 4]);
    }
    if packet.transport.has(flag::CONTROL) || bytes[at..at + headers] == new[..headers] {
        return;
    }
    let mut old = [0; MOST_HEADERS];
    old[..headers].copy_from_slice(&bytes[at..at + headers]);
    // Without a checksum there is none to keep right; one that hardware is to fill in covers what will stand there.
    let summed = word(bytes, udp + 6) != 0 && bytes[0] & 1 == 0;
    if summed {
        patch(bytes, at, &old[..headers], &new[..headers], udp + 6);
        if word(bytes, udp + 6) == 0 {
            bytes[udp + 6..udp + 8].fill(0xff); // zero would say "none" (RFC 768)
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
    use super::super::made::{make, ones_sum, udp_sum};
    use super::*;
    use explicate_core::rng::Rng;
    use explicate_core::wire::{Congestion, Format};

    fn data() -> Packet {
        let mut packet = Packet { congestion: Congestion::new(Format::Standard), tos: 0x2a, ..Packet::EMPTY };
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
    fn sums_are_right(bytes: &[u8]) -> bool {
        ones_sum(0, &bytes[IP..IP + 20]) == 0xffff && word(bytes, IP + 26) == udp_sum(bytes)
    }

    #[test]
    fn what_is_written_can_be_read_and_sums_stay_right() {
        let mut bytes = frame(&data());
        assert!(sums_are_right(&bytes));
        let mut rng = Rng::stream(1, "frames");
        for _ in 0..1000 {
            let mut lifted = lift(&bytes);
            assert!(matches!(lifted.kind, Kind::Explicit { writable: true, headers: 44, .. }));
            lifted.packet.congestion.set_delta_throughput(rng.next_u64() as i32);
            lifted.packet.tos = rng.next_u64() as u8 & 0x7f;
            lifted.packet.ttl = rng.next_u64() as u8;
            lower(&mut bytes, &lifted);
            assert!(sums_are_right(&bytes));
            let again = lift(&bytes);
            assert_eq!(again.packet.congestion, lifted.packet.congestion);
            assert_eq!((again.packet.tos, again.packet.ttl), (lifted.packet.tos, lifted.packet.ttl));
        }
    }

    #[test]
    fn fields_of_xcp_i_are_written() {
        let mut packet = data();
        XcpI { ttl: 64, last_router: 1 }.put(&mut packet);
        let mut bytes = frame(&packet);
        let mut lifted = lift(&bytes);
        XcpI { ttl: 63, last_router: 0x0a00_0001 }.put(&mut lifted.packet);
        lower(&mut bytes, &lifted);
        assert!(sums_are_right(&bytes));
        assert_eq!(XcpI::of(&lift(&bytes).packet), Some(XcpI { ttl: 63, last_router: 0x0a00_0001 }));
    }

    #[test]
    fn other_packets_leave_as_they_came() {
        let mut bytes = frame_to(&data(), 53);
        let before = bytes.clone();
        let mut lifted = lift(&bytes);
        assert_eq!(lifted.kind, Kind::Other);
        lifted.packet.set_ecn(Ecn::Capable1); // as a controller of another protocol would
        lower(&mut bytes, &lifted);
        assert_eq!(bytes, before);
        lifted.packet.set_ecn(Ecn::Marked);
        lower(&mut bytes, &lifted);
        assert_eq!(bytes[IP + 1], 0x2b);
        assert!(sums_are_right(&bytes));
    }

    #[test]
    fn a_datagram_without_checksum_gets_none() {
        let mut bytes = frame(&data());
        bytes[IP + 26..IP + 28].fill(0);
        let mut lifted = lift(&bytes);
        lifted.packet.congestion.set_delta_throughput(1);
        lower(&mut bytes, &lifted);
        assert_eq!((word(&bytes, IP + 26), lift(&bytes).packet.congestion.delta_throughput()), (0, 1));
    }

    #[test]
    fn odd_frames_are_noticed() {
        let good = frame(&data());
        let with = |at: usize, value: u8| {
            let mut bytes = good.clone();
            bytes[at] = value;
            let lifted = lift(&bytes);
            (lifted.kind, lifted.odd)
        };
        assert_eq!(with(1, 5), (Kind::Other, Some(Odd::Merged)), "the kernel's UDP segmentation");
        assert_eq!(with(IP + 28 + 2, 0x21), (Kind::Other, Some(Odd::Malformed)), "not our version");
        assert_eq!(with(IP + 24, 0xff), (Kind::Other, Some(Odd::Malformed)), "longer than it is");
        assert_eq!(with(IP + 6, 0x20), (Kind::Other, None), "a fragment");
        assert_eq!(with(IP, 0x65), (Kind::Alien, None), "IPv6");
        for length in 0..good.len() {
            lift(&good[..length]);
        }
    }

    #[test]
    fn damage_is_found_by_the_checksum() {
        for left_to_hardware in [0, 1] {
            let mut bytes = frame(&data());
            bytes[0] = left_to_hardware;
            let mut lifted = lift(&bytes);
            lifted.packet.damage();
            lower(&mut bytes, &lifted);
            assert!(bytes[0] == 0 && word(&bytes, IP + 26) != udp_sum(&bytes));
        }
    }

    /// Whatever comes: nothing panics, nothing but the bytes that may change does, lengths stay.
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
            let mut lifted = lift(&bytes);
            lifted.packet.ttl = lifted.packet.ttl.saturating_sub(1);
            if rng.uniform() < 0.5 {
                lifted.packet.damage();
            }
            lifted.packet.congestion.set_delta_throughput(-1);
            lower(&mut bytes, &lifted);
            assert_eq!(bytes.len(), before.len());
            if lifted.kind == Kind::Alien {
                assert_eq!(bytes, before);
            }
        }
    }
}

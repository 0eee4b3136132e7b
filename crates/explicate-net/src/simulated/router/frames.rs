//! The frames of a scene, and what may change in one on its way.

use std::collections::VecDeque;

use etherparse::{Ipv4HeaderSlice, UdpHeaderSlice};
use explicate_core::datagram;
use explicate_core::wire::{Congestion, Format, NEXT_TRANSPORT, Packet, SackRanges, TRANSPORT_LEN, UDP_PORT, flag};

use super::super::scene::Draws;
use super::{Kind, Scene};
use crate::forward::frame::{IP, Kind as Form, Parsed};
use crate::forward::made::make;
use crate::sys::OFFLOAD_LEN;

/// Hosts at an interface.
const HOSTS: usize = 2;
/// Frames of a scene, without bursts and floods.
pub(super) const FRAMES: usize = 600;
/// Hardware addresses of a flood: more than a router learns.
const FLOOD: usize = 4200;
/// Bytes at the end of a frame: its number.
const NUMBER: usize = 8;

/// A frame that comes.
#[derive(Clone, Debug)]
pub(super) struct Coming {
    /// When, ns after the start.
    pub(super) at: u64,
    /// Its flow, within which frames keep their order; hostile frames have none.
    pub(super) flow: Option<u32>,
    /// With the offload header.
    pub(super) bytes: Vec<u8>,
}

/// The number at the end of a frame.
pub(super) fn number(bytes: &[u8]) -> Option<u64> {
    bytes.last_chunk::<NUMBER>().map(|chunk| u64::from_be_bytes(*chunk))
}

fn station(interface: usize, host: usize) -> [u8; 6] {
    [2, 0, 0, 0, interface as u8, host as u8]
}

/// A flow: its kind of frames, the interface at which it comes, its hardware addresses, its number.
struct Flow {
    kind: Kind,
    from: usize,
    stations: ([u8; 6], [u8; 6]),
    number: u32,
}

/// All frames of a scene, by interface, in order of time.
pub(super) fn draw(scene: &Scene) -> Vec<VecDeque<Coming>> {
    let mut draws = Draws::of(scene.seed, "frames");
    let ports = scene.properties.len();
    let mut flows = Vec::new();
    let mut add = |kind: Kind, draws: &mut Draws| {
        let (from, host) = (draws.below(ports), draws.below(HOSTS));
        let to = if kind == Kind::Local { from } else { (from + 1 + draws.below(ports - 1)) % ports };
        let there = if kind == Kind::Unknown { [6; 6] } else { station(to, draws.below(HOSTS)) };
        flows.push(Flow { kind, from, stations: (station(from, host), there), number: flows.len() as u32 });
    };
    for kind in [Kind::Explicit, Kind::Answers, Kind::Plain] {
        (0..4).for_each(|_| add(kind, &mut draws));
    }
    for kind in scene.kinds.iter().filter(|kind| kind.is_of_frames()) {
        add(*kind, &mut draws);
    }
    // The times of frames and their flows. First each host announces its address.
    let mut times: Vec<(u64, usize)> = Vec::new();
    for _ in 0..FRAMES {
        times.push((scene.at(draws.between(0.02, 1.0)), draws.below(flows.len())));
    }
    if scene.kinds.contains(&Kind::Burst) {
        let (at, flow) = (scene.at(draws.between(0.1, 0.9)), draws.below(4));
        times.extend((0..150).map(|n| (at + 2000 * n, flow)));
    }
    times.sort_unstable();
    let mut coming = vec![VecDeque::new(); ports];
    let mut count = 0;
    let mut next = || {
        count += 1;
        count
    };
    for (from, queue) in coming.iter_mut().enumerate() {
        for host in 0..HOSTS {
            let hello = Flow { kind: Kind::Plain, from, stations: (station(from, host), [0xff; 6]), number: 1000 };
            queue.push_back(Coming { at: 0, flow: None, bytes: frame(&mut draws, &hello, next()) });
        }
    }
    let flood = scene.kinds.contains(&Kind::Flood).then_some(times.len() / 4);
    for (turn, (at, flow)) in times.into_iter().enumerate() {
        let flow = &flows[flow];
        let bytes = frame(&mut draws, flow, next());
        let ordered = !matches!(flow.kind, Kind::Hostile | Kind::Cut | Kind::Strange);
        coming[flow.from].push_back(Coming { at, flow: ordered.then_some(flow.number), bytes });
        if flood == Some(turn) {
            for n in 0..FLOOD {
                let mut bytes = vec![0; IP + 46];
                bytes[OFFLOAD_LEN..OFFLOAD_LEN + 6].copy_from_slice(&station(1, 0));
                bytes[OFFLOAD_LEN + 6..OFFLOAD_LEN + 12].copy_from_slice(&[4, 0, 0, 0, (n >> 8) as u8, n as u8]);
                bytes[IP - 2..IP].copy_from_slice(&[0x88, 0xb5]);
                sign(&mut bytes, next());
                coming[0].push_back(Coming { at: at + 20_000 * n as u64, flow: None, bytes });
            }
        }
    }
    coming.iter_mut().for_each(|queue| queue.make_contiguous().sort_by_key(|coming| coming.at));
    coming
}

/// Writes a frame's number.
fn sign(bytes: &mut [u8], number: u64) {
    let end = bytes.len();
    bytes[end - NUMBER..].copy_from_slice(&number.to_be_bytes());
}

/// A frame of a flow.
fn frame(draws: &mut Draws, flow: &Flow, number: u64) -> Vec<u8> {
    let length = if flow.kind == Kind::Merged { 4000 + draws.below(56_000) } else { 16 + draws.below(1300) };
    let mut payload = vec![7; length];
    sign(&mut payload, number);
    let standard = flow.kind != Kind::Answers;
    let format = if standard { Format::STANDARD } else { Format::MINIMAL };
    let mut packet = Packet { congestion: Congestion::new(format), ..Packet::EMPTY };
    packet.tos = (flow.number % 3) as u8 | 0x20;
    let ttl = if flow.kind == Kind::Expired { draws.below(2) } else { 2 + draws.below(200) };
    packet.ttl = ttl as u8;
    packet.transport.set_flow(flow.number);
    packet.transport.set_payload(length as u16);
    let (own, service) = (5000 + flow.number as u16, 443);
    let ports = match flow.kind {
        Kind::Answers => {
            packet.transport.set_flags(flag::ACK);
            (UDP_PORT, own)
        }
        Kind::Plain | Kind::Local | Kind::Unknown => (own, service),
        _ => {
            packet.congestion.set_rtt(1 + draws.below(1 << 24) as u32);
            packet.congestion.set_x(1 + draws.below(1 << 20) as u32);
            packet.congestion.set_delta_throughput(draws.between(-1e5, 1e6) as i32);
            (own, UDP_PORT)
        }
    };
    let address = |station: [u8; 6]| [10, 0, station[4], 1 + station[5] % 200];
    let (from, to) = flow.stations;
    let mut bytes = make(&packet, &SackRanges::NONE, &payload, flow.stations, (address(from), address(to)), ports);
    match flow.kind {
        Kind::Plain if flow.number % 2 == 1 => bytes[IP + 9] = 6, // what a router does not read may be TCP
        Kind::Tagged => drop(bytes.splice(IP - 2..IP - 2, [0x81, 0, 0x60, 5])),
        Kind::Fragments => bytes[IP + 6 + draws.below(2)] = 0x20,
        Kind::Malformed => bytes[IP + 30] = 0x21,
        Kind::Merged => bytes[1] = 5,
        Kind::Strange => {
            let kinds = [[0x86, 0xdd], [8, 6], [0x88, 0x47], [0x88, 0x64], [0x88, 0xb5]];
            bytes[IP - 2..IP].copy_from_slice(&kinds[draws.below(kinds.len())]);
        }
        Kind::Hostile => {
            let end = bytes.len() - NUMBER;
            for _ in 0..draws.below(6) {
                // Mostly in the headers.
                let most = if draws.is(0.8) { end.min(IP + 72) } else { end };
                let at = IP - 2 + draws.below(most - (IP - 2));
                bytes[at] = draws.below(256) as u8;
            }
            if draws.is(0.3) {
                bytes.drain(IP + draws.below(end - IP)..end);
            }
        }
        Kind::Cut => bytes.truncate(draws.below(IP)),
        _ => {}
    }
    if !matches!(flow.kind, Kind::Hostile | Kind::Cut | Kind::Tagged | Kind::Strange)
        && let Ok(header) = Ipv4HeaderSlice::from_slice(&bytes[IP..])
    {
        let sum = header.to_header().calc_header_checksum();
        bytes[IP + 10..IP + 12].copy_from_slice(&sum.to_be_bytes());
    }
    bytes
}

/// Whether the checksum of the IPv4 header at `ip` is right.
fn header_is_right(bytes: &[u8], ip: usize) -> bool {
    Ipv4HeaderSlice::from_slice(&bytes[ip..])
        .is_ok_and(|header| header.header_checksum() == header.to_header().calc_header_checksum())
}
/// Whether the UDP header at `udp` has a checksum and it is right.
fn datagram_is_right(bytes: &[u8], ip: usize, udp: usize) -> bool {
    let right = || {
        let header = Ipv4HeaderSlice::from_slice(&bytes[ip..]).ok()?.to_header();
        let datagram = UdpHeaderSlice::from_slice(&bytes[udp..]).ok()?.to_header();
        let payload = bytes.get(udp + 8..udp + datagram.length as usize)?;
        Some(datagram.checksum == datagram.calc_checksum_ipv4(&header, payload).ok()?)
    };
    right().unwrap_or(false)
}

/// What is wrong with a frame that left, if anything: `came` is as it came, with this form, and passed so many routers.
pub(super) fn wrong(came: &[u8], parsed: &Parsed, left: &[u8], hops: u8) -> Option<String> {
    if came.len() != left.len() {
        return Some(format!("{} bytes came, {} left", came.len(), left.len()));
    }
    let mut may = came.to_vec();
    let ip = parsed.ip as usize;
    if parsed.kind != Form::NonIp {
        let (was, is) = (came[ip + 1] & 3, left[ip + 1] & 3);
        let marks = is == 3 || matches!(parsed.kind, Form::Explicit { .. });
        if is < was || (was == 0) != (is == 0) || (is != was && !marks) {
            return Some(format!("ECN field {was} became {is}"));
        }
        may[ip + 1] = came[ip + 1] & !3 | is;
        may[ip + 10..ip + 12].copy_from_slice(&left[ip + 10..ip + 12]);
        if header_is_right(came, ip) && !header_is_right(left, ip) {
            return Some("the checksum of the IP header is wrong".to_string());
        }
    }
    if matches!(parsed.kind, Form::Explicit { .. }) {
        may[ip + 8] = came[ip + 8].wrapping_sub(hops);
    }
    if let Form::Explicit { udp, headers, writable: true } = parsed.kind {
        let (udp, headers) = (udp as usize, headers as usize);
        let at = udp + 8;
        may[udp + 6..at].copy_from_slice(&left[udp + 6..at]);
        if datagram_is_right(came, ip, udp) && !datagram_is_right(left, ip, udp) {
            return Some("the checksum of the datagram is wrong".to_string());
        }
        let read = |bytes: &[u8]| datagram::read(&bytes[at..at + headers]).map(|read| read.packet.congestion);
        let (Ok(was), Ok(is)) = (read(came), read(left)) else { return Some("its headers cannot be read".to_string()) };
        let (asked, got) = (was.delta_throughput(), is.delta_throughput());
        if was.is_standard() && got > asked {
            return Some(format!("{asked} were asked for, {got} are granted"));
        }
        let mut transport = at;
        if came[at] == NEXT_TRANSPORT {
            // The mark and the fields.
            may[at + 3..at + 20].copy_from_slice(&left[at + 3..at + 20]);
            transport += came[at + 1] as usize;
        } else {
            may[at + 1] = came[at + 1] & 0x0f | left[at + 1] & 0xf0; // the mark
        }
        if transport + TRANSPORT_LEN <= at + headers {
            may[transport] |= left[transport] & flag::CONGESTED;
        }
    }
    let at = may.iter().zip(left).position(|(may, is)| may != is)?;
    Some(format!("byte {at} was {:#04x} and is {:#04x}, {:?}", came[at], left[at], parsed.kind))
}

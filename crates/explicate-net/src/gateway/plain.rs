//! Packets of the site that are not carried: UDP, ICMP, TCP to other networks. They come by a tunnel interface, wait in queues of
//! their flows with CoDel (RFC 8290) or, marked as voice, in a queue of their own, and leave by raw sockets.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use explicate_core::params::Values;
use explicate_core::qdisc::{ActiveQueue, Discipline, QdiscInit, Queued};
use explicate_core::registry;
use explicate_core::rng::Rng;
use explicate_core::units::{Rate, Time};
use explicate_core::wire::{Ecn, Packet};
use rustix::net::{SendFlags, sendto};

use crate::error::{Context, Error, Result};
use crate::sys;

/// Longest packet.
const LONGEST: usize = 65_535;
/// Packets that are read at a time.
const MOST_AT_ONCE: usize = 64;
/// Most packets that wait.
const MOST_WAITING: u32 = 4096;
/// DSCP of what goes first: EF (RFC 3246), VOICE-ADMIT (RFC 5865), CS6 and CS7 (RFC 4594).
const VOICE: [u8; 4] = [46, 44, 48, 56];
/// Voice goes first up to this share of the line.
pub const VOICE_SHARE: f64 = 0.3;

/// Plain packets that wait.
pub struct Plain {
    tun: OwnedFd,
    raw: [OwnedFd; 2],
    queue: Box<dyn ActiveQueue>,
    voice: VecDeque<Vec<u8>>,
    slots: Vec<Option<Vec<u8>>>,
    free: Vec<u32>,
    /// Packets in the queues of flows.
    waiting: u32,
    buffer: Vec<u8>,
    /// Bytes that may leave in this turn.
    pub credit: i64,
    /// Bytes of voice since the meter was read.
    pub metered_voice: u64,
    /// Bytes of all since then.
    pub metered: u64,
    /// Rate of all, bytes/s.
    pub used: f64,
    /// Packets sent, dropped, and refused by the kernel or malformed.
    pub counters: [u64; 3],
}

/// What a packet says of itself: its destination, DSCP, ECN field, and a hash of its flow.
pub fn read(packet: &[u8]) -> Option<(IpAddr, u8, u8, u32)> {
    let hash = |parts: &[&[u8]]| {
        let bytes = parts.iter().flat_map(|part| part.iter());
        bytes.fold(0x811c_9dc5_u32, |hash, &byte| (hash ^ byte as u32).wrapping_mul(0x0100_0193))
    };
    let ports = |at: usize| packet.get(at..at + 4).unwrap_or_default();
    match packet.first()? >> 4 {
        4 => {
            let (header, to) = (packet.get(..20)?, Ipv4Addr::new(packet[16], packet[17], packet[18], packet[19]));
            let (tos, length) = (header[1], (header[0] & 15) as usize * 4);
            // Fragments have no ports but for the first.
            let whole = header[6] & 0x3f == 0 && header[7] == 0;
            let ports = if whole { ports(length) } else { &[] };
            Some((to.into(), tos >> 2, tos & 3, hash(&[&header[12..20], &header[9..10], ports])))
        }
        6 => {
            let header = packet.get(..40)?;
            let to: [u8; 16] = header[24..40].try_into().ok()?;
            let tos = header[0] << 4 | header[1] >> 4;
            Some((Ipv6Addr::from(to).into(), tos >> 2, tos & 3, hash(&[&header[8..40], &header[6..7], ports(40)])))
        }
        _ => None,
    }
}

impl Plain {
    /// Packets of this interface, before a line of this rate.
    pub fn open(interface: &str, rate: Rate) -> Result<Plain> {
        let tun = sys::open_tun(interface).or_fail(|| format!("open the interface `{interface}`"))?;
        let raw = sys::raw_sockets().or_fail(|| "open raw sockets".to_string())?;
        let values = Values::default();
        let init = QdiscInit {
            values: &values,
            capacity: rate.bytes_per_sec(),
            mean_packet: 1500.0,
            rng: Rng::stream(sys::monotonic(), "gateway/plain"),
        };
        let queue = match registry::qdisc("fq_codel").map(|kind| kind.build(&init)) {
            Some(Discipline::Departure(queue)) => queue,
            _ => return Err(Error::Failed("no queue for plain packets".to_string())),
        };
        let (voice, slots, free, buffer) = (VecDeque::new(), Vec::new(), Vec::new(), vec![0; LONGEST]);
        let counters = [0; 3];
        Ok(Plain {
            tun,
            raw,
            queue,
            voice,
            slots,
            free,
            waiting: 0,
            buffer,
            credit: 0,
            metered_voice: 0,
            metered: 0,
            used: 0.0,
            counters,
        })
    }
    /// The interface.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.tun.as_fd()
    }
    /// Whether voice waits, and whether other packets do.
    pub fn waits(&self) -> (bool, bool) {
        (!self.voice.is_empty(), self.waiting > 0)
    }

    /// Reads what the interface has.
    pub fn read(&mut self, now: Time) {
        for _ in 0..MOST_AT_ONCE {
            let Ok(length) = rustix::io::read(&self.tun, &mut self.buffer) else { return };
            let bytes = self.buffer[..length].to_vec();
            let Some((_, dscp, ecn, flow)) = read(&bytes) else {
                self.counters[2] += 1;
                continue;
            };
            if VOICE.contains(&dscp) && self.voice.len() < MOST_WAITING as usize / 4 {
                self.voice.push_back(bytes);
                continue;
            }
            if self.waiting >= MOST_WAITING {
                self.counters[1] += 1;
                continue;
            }
            let mut packet = Packet { ip_len: length as u16, tos: ecn, ..Packet::EMPTY };
            packet.transport.set_flow(flow);
            let handle = self.free.pop().unwrap_or_else(|| {
                self.slots.push(None);
                self.slots.len() as u32 - 1
            });
            self.slots[handle as usize] = Some(bytes);
            self.waiting += 1;
            let capable = packet.ecn() != Ecn::NotCapable;
            let mut gone = Vec::new();
            self.queue.enqueue(Queued { handle, bytes: length as u16, capable, since: now }, &packet, &mut gone);
            self.drop(gone.into_iter().map(|(queued, _)| queued));
        }
    }
    fn drop(&mut self, gone: impl Iterator<Item = Queued>) {
        for queued in gone {
            self.slots[queued.handle as usize] = None;
            self.free.push(queued.handle);
            self.waiting -= 1;
            self.counters[1] += 1;
        }
    }
    /// The next packet of voice.
    pub fn next_voice(&mut self) -> Option<Vec<u8>> {
        let bytes = self.voice.pop_front()?;
        self.metered_voice += bytes.len() as u64;
        self.metered += bytes.len() as u64;
        Some(bytes)
    }
    /// The next other packet.
    pub fn next(&mut self, now: Time) -> Option<Vec<u8>> {
        let mut gone = Vec::new();
        let found = self.queue.dequeue(now, &mut gone);
        self.drop(gone.into_iter().map(|(queued, _)| queued));
        let (queued, mark) = found?;
        let mut bytes = self.slots[queued.handle as usize].take()?;
        self.free.push(queued.handle);
        self.waiting -= 1;
        if mark {
            mark_congestion(&mut bytes);
        }
        self.metered += bytes.len() as u64;
        Some(bytes)
    }
    /// Sends a packet.
    pub fn send(&mut self, bytes: &[u8]) {
        let Some((to, ..)) = read(bytes) else { return };
        let socket = &self.raw[to.is_ipv6() as usize];
        let sent = sendto(socket, bytes, SendFlags::DONTWAIT, &SocketAddr::new(to, 0));
        self.counters[if sent.is_ok() { 0 } else { 2 }] += 1;
    }
}

/// Sets the mark CE (RFC 3168). The kernel fills in the IPv4 checksum of what a raw socket sends.
fn mark_congestion(bytes: &mut [u8]) {
    match bytes[0] >> 4 {
        4 => bytes[1] |= 3,
        _ => bytes[1] |= 3 << 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_both_families_are_read_and_nonsense_is_not() {
        let mut v4 = vec![0x45, 46 << 2 | 2, 0, 28, 0, 0, 0x40, 0, 64, 17, 0, 0];
        v4.extend([[10, 0, 0, 1], [192, 0, 2, 9], [0, 7, 0, 8], [0, 8, 0, 0]].concat());
        let (to, dscp, ecn, flow) = read(&v4).unwrap();
        assert_eq!((to, dscp, ecn), ("192.0.2.9".parse().unwrap(), 46, 2));
        v4[21] = 9;
        assert_ne!(read(&v4).unwrap().3, flow, "another port");
        mark_congestion(&mut v4);
        assert_eq!(read(&v4).unwrap().2, 3);
        let mut v6 = vec![0x6b, 0x80, 0, 0, 0, 8, 17, 64];
        v6.extend([0xfd; 32]);
        v6.extend([0, 7, 0, 8, 0, 8, 0, 0]);
        assert_eq!(read(&v6).map(|(to, dscp, ..)| (to.is_ipv6(), dscp)), Some((true, 46)));
        mark_congestion(&mut v6);
        assert_eq!(read(&v6).unwrap().2, 3);
        for length in 0..20 {
            assert_eq!(read(&v4[..length]), None);
            assert_eq!(read(&v6[..length]), None);
        }
        assert_eq!(read(&[0x55; 60]), None);
    }
}

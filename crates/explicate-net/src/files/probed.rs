//! Answers to probes, which come to the socket of a receiver beside QUIC's packets.
//!
//! A paired sender asks for them on a stream, and gets a number. While the stream is open, probes from the sender's address that carry the
//! number are echoed, with the time of their arrival. They are messages of the core's datagrams, 28 bytes and filling, because QUIC's own
//! packets would wait for the window, and for each other:
//!
//! | byte | field |
//! | --- | --- |
//! | 0 | kind: 0x83 a probe, 0x84 its echo |
//! | 2-3 | number of the probe |
//! | 4-7 | lower half of the permission's number; the upper half is in bytes 8-11 of the transport header, before the message |
//! | 8-15 | when it was sent, ns |
//! | 16-23 | when it arrived, in an echo, ns |
//!
//! Kinds below 0x80 are those of the core's agents. In IPv6 there is no answer.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use explicate_core::agent::CONTROL_LEN;
use explicate_core::datagram::{self, MOST_HEADERS};
use explicate_core::units::Time;
use explicate_core::wire::{Packet, SackRanges, flag};

use super::pairing::random;
use crate::clock::Clock;
use crate::error::Result;

const PROBE: u8 = 0x83;
const ECHO: u8 = 0x84;

/// A probe, or its echo.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Probe {
    /// Its number.
    pub index: u16,
    /// The number of the permission.
    pub permit: u64,
    /// When it was sent.
    pub sent: Time,
    /// When it arrived, by the receiver's clock, in its echo.
    pub came: Option<Time>,
}

impl Probe {
    /// The packet that carries it.
    pub fn to_packet(self) -> Packet {
        let mut bytes = [0; CONTROL_LEN];
        bytes[0] = if self.came.is_some() { ECHO } else { PROBE };
        bytes[2..4].copy_from_slice(&self.index.to_be_bytes());
        bytes[4..8].copy_from_slice(&(self.permit as u32).to_be_bytes());
        bytes[8..16].copy_from_slice(&self.sent.0.to_be_bytes());
        bytes[16..24].copy_from_slice(&self.came.unwrap_or(Time::ZERO).0.to_be_bytes());
        let mut packet = Packet::EMPTY;
        packet.transport.set_flags(flag::CONTROL);
        packet.transport.set_segment((self.permit >> 32) as u32);
        packet.transport.0[12..].copy_from_slice(&bytes[..12]);
        packet.congestion.0[4..].copy_from_slice(&bytes[12..]);
        packet
    }
    /// Parses it; `None` for other packets.
    pub fn of(packet: &Packet) -> Option<Probe> {
        let mut bytes = [0; CONTROL_LEN];
        bytes[..12].copy_from_slice(&packet.transport.0[12..]);
        bytes[12..].copy_from_slice(&packet.congestion.0[4..]);
        let kind = bytes[0];
        if !packet.transport.has(flag::CONTROL) || !matches!(kind, PROBE | ECHO) {
            return None;
        }
        let time = |at| Some(Time(u64::from_be_bytes(*bytes.get(at..)?.first_chunk()?)));
        let low = u32::from_be_bytes(*bytes.get(4..)?.first_chunk()?);
        let permit = u64::from(packet.transport.segment()) << 32 | u64::from(low);
        let came = if kind == ECHO { Some(time(16)?) } else { None };
        Some(Probe { index: u16::from_be_bytes([bytes[2], bytes[3]]), permit, sent: time(8)?, came })
    }
}

/// What answers probes: the permissions by their numbers, and the address of each.
pub struct Probed {
    permits: Mutex<BTreeMap<u64, IpAddr>>,
    clock: Clock,
}

/// A permission, which ends when it is dropped.
pub struct Permit {
    /// The number that probes carry.
    pub number: u64,
    probed: Arc<Probed>,
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.probed.permits.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.number);
    }
}

impl Probed {
    /// Without permissions.
    pub fn new() -> Arc<Probed> {
        Arc::new(Probed { permits: Mutex::default(), clock: Clock::start() })
    }
    /// Permits probes from this address.
    pub fn permit(self: &Arc<Probed>, from: IpAddr) -> Result<Permit> {
        let number = u64::from_be_bytes(random()?);
        self.permits.lock().unwrap_or_else(PoisonError::into_inner).insert(number, from.to_canonical());
        Ok(Permit { number, probed: self.clone() })
    }
    /// The answer to a datagram, if it is a probe that is permitted. It is no longer than the probe.
    pub fn answer(&self, from: SocketAddr, bytes: &[u8]) -> Option<Vec<u8>> {
        let probe = Probe::of(&datagram::read(bytes).ok()?.packet).filter(|probe| probe.came.is_none())?;
        let permits = self.permits.lock().unwrap_or_else(PoisonError::into_inner);
        permits.get(&probe.permit).filter(|permitted| **permitted == from.ip().to_canonical())?;
        let echo = Probe { came: Some(self.clock.now()), ..probe };
        let mut headers = [0; MOST_HEADERS];
        let length = datagram::write(&echo.to_packet(), &SackRanges::NONE, &mut headers);
        (length <= bytes.len()).then(|| headers[..length].to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(probe: Probe) -> Vec<u8> {
        let mut headers = [0; MOST_HEADERS];
        let length = datagram::write(&probe.to_packet(), &SackRanges::NONE, &mut headers);
        headers[..length].to_vec()
    }

    #[test]
    fn probes_come_back() {
        let probe = Probe { index: 65535, permit: u64::MAX - 1, sent: Time(1 << 50), came: None };
        for probe in [probe, Probe { came: Some(Time(7)), ..probe }] {
            assert_eq!(Probe::of(&probe.to_packet()), Some(probe));
        }
        assert_eq!(Probe::of(&Packet::EMPTY), None);
    }

    #[test]
    fn a_probe_is_echoed_to_a_paired_sender_alone() {
        let probed = Probed::new();
        let [asks, other, mapped] =
            ["10.0.0.1:5", "10.0.0.2:5", "[::ffff:10.0.0.1]:9"].map(|address| address.parse::<SocketAddr>().unwrap());
        let permit = probed.permit(asks.ip()).unwrap();
        let probe = Probe { index: 1, permit: permit.number, sent: Time(3), came: None };
        for from in [asks, mapped] {
            let echo = probed.answer(from, &bytes(probe)).unwrap();
            assert!(echo.len() <= bytes(probe).len());
            let echo = Probe::of(&datagram::read(&echo).unwrap().packet).unwrap();
            assert!(echo.came.is_some() && echo == Probe { came: echo.came, ..probe });
            assert!(probed.answer(from, &bytes(echo)).is_none(), "an echo has no echo");
        }
        let guessed = Probe { permit: permit.number ^ 1, ..probe };
        assert!(probed.answer(other, &bytes(probe)).is_none() && probed.answer(asks, &bytes(guessed)).is_none());
        drop(permit);
        assert!(probed.answer(asks, &bytes(probe)).is_none(), "the connection is closed");
    }
}

//! Measurement of a path between two of our nodes: the core's estimators on real packets.
//!
//! The receiver answers each probe with a shorter message that carries the time of arrival by its own clock. Only differences
//! of these times are used. The available bandwidth comes from an estimator of the core; the capacity from pairs of
//! packets sent back to back, which the narrowest link spreads (Dovrolis, Ramanathan, Moore, INFOCOM 2001): the median of
//! length over spread, since single pairs are unreliable. A packet that is not measured precedes each pair.

use std::net::{SocketAddrV4, UdpSocket};
use std::os::fd::AsFd;

use explicate_core::agent::Address;
use explicate_core::datagram;
use explicate_core::estimate::{ESTIMATORS, Estimator, EstimatorInit};
use explicate_core::params::Values;
use explicate_core::rng::Rng;
use explicate_core::units::Time;
use explicate_core::wire::{IP_UDP_LEN, SackRanges};

use super::auth::{self, Key, ShortCode};
use super::message::Message;
use super::outbox::Outbox;
use super::pmtu::Search;
use crate::clock::{Clock, Waiter};
use crate::error::{Context, Error, Result};
use crate::sys::{self, Batch};

/// Results.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// Estimates of the available bandwidth in order of time, bit/s.
    pub available: Vec<f64>,
    /// Estimates of the capacity by pairs of packets, bit/s.
    pub capacity: Vec<f64>,
    /// Probes sent, and echoes received.
    pub probes: (u64, u64),
}

/// Properties of a path.
#[derive(Clone, Debug, Default)]
pub struct Sight {
    /// Median of the round-trip time.
    pub trip: Time,
    /// Share of packets lost, assumed equal in both directions.
    pub loss: f64,
    /// Estimates of the capacity by pairs of packets, bit/s.
    pub capacity: Vec<f64>,
    /// Path MTU, bytes of IP, up to that of most links.
    pub packet: Option<u16>,
}

/// The median.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied()
}

/// IP length of the packets of a pair.
const PAIR_LEN: u16 = 1500;
/// Headers of a message, bytes of IP.
const HEADERS: usize = IP_UDP_LEN + 40;
/// First number of pairs, beyond those of the estimator's probes.
const PAIRS: u16 = 0x8000;
/// The number of packets before pairs; no pair has it.
const WAKER: u16 = 0x7fff;
/// Interval between two requests for a cookie.
const KNOCK_EVERY: Time = Time::secs(1);
/// Longest wait for the first cookie.
const TIMEOUT: Time = Time::secs(5);
const BETWEEN_PAIRS: Time = Time::millis(20);
/// Number of packets that measure round-trip times and losses, and their interval.
const SHORT_LEN: u16 = 200;
const BETWEEN_LOOKS: Time = Time::millis(5);
/// A search for the path MTU ends after this time without an answer.
const MTU_TIMEOUT: Time = Time::secs(5);

/// Interval at which the kernel's path MTU, set by routers' messages, is read.
const READ_MTU_EVERY: Time = Time::millis(20);

/// The kernel's path MTU to a host, bytes of IP.
pub fn kernel_mtu(peer: SocketAddrV4) -> Result<u16> {
    let asked = UdpSocket::bind("0.0.0.0:0").and_then(|s| s.connect(peer).and_then(|()| sys::path_mtu(s.as_fd())));
    Ok(asked.or_fail(|| format!("reach {peer}"))?.min(u16::MAX as usize) as u16)
}

/// Whether an estimator sends probes without any input; the simulator's oracle does not.
fn sends_probes(estimator: &mut dyn Estimator) -> bool {
    let mut now = Time::ZERO;
    (0..100).any(|_| {
        let sends = estimator.poll_probe(now).is_some();
        now = estimator.poll_timeout().max(now + Time::millis(1));
        sends
    })
}

/// A node that measures.
pub struct Prober {
    socket: UdpSocket,
    peer: SocketAddrV4,
    clock: Clock,
    waiter: Waiter,
    batch: Batch,
    out: Outbox,
    nonce: u64,
    key: Option<Key>,
    /// The code that probes carry, and when to renew its cookie.
    code: Option<ShortCode>,
    knocks: Time,
    refused: Option<&'static str>,
}

impl Prober {
    /// Opens a socket. Echoes have to repeat the nonce.
    pub fn open(peer: SocketAddrV4, nonce: u64, key: Option<Key>) -> Result<Prober> {
        let clock = Clock::start();
        let socket = UdpSocket::bind("0.0.0.0:0").or_fail(|| "open a socket".to_string())?;
        let waiter = socket
            .set_nonblocking(true)
            .and_then(|()| sys::tell_ttl_and_ecn(socket.as_fd()))
            .and_then(|()| Waiter::with_timer(clock))
            .or_fail(|| "prepare the socket".to_string())?;
        let (batch, out) = (Batch::new(2048), Outbox::default());
        let (code, knocks, refused) = (None, Time::ZERO, None);
        Ok(Prober { socket, peer, clock, waiter, batch, out, nonce, key, code, knocks, refused })
    }

    /// Requests a cookie if that is due: each is valid for some seconds.
    fn knock(&mut self) {
        let now = self.clock.now();
        if self.knocks <= now {
            self.knocks = now + KNOCK_EVERY;
            let knock = Message::knock_with(self.nonce, self.key.as_ref()).to_packet();
            self.out.push(self.peer, &knock, &SackRanges::NONE, |_| 0);
            self.out.flush(self.socket.as_fd());
        }
    }
    /// Waits for the first cookie.
    fn wait_for_cookie(&mut self, stop: &dyn Fn() -> bool) -> Result<()> {
        let end = self.clock.now() + TIMEOUT;
        while self.code.is_none() && !stop() {
            if self.clock.now() >= end {
                let hint = "is `explicated recv` of this version running there?";
                return Err(Error::Failed(format!("no probe was answered by {}; {hint}", self.peer)));
            }
            self.knock();
            self.echoes()?;
            self.waiter.wait(&[self.socket.as_fd()], self.knocks.min(end)).or_fail(|| "wait".to_string())?;
        }
        Ok(())
    }

    fn push(&mut self, index: u16, ip_len: u16) {
        let packet = Message::Probe(index, self.nonce, self.clock.now(), self.code.unwrap_or_default()).to_packet();
        self.out.push(self.peer, &packet, &SackRanges::NONE, |room| {
            let more = (ip_len as usize).saturating_sub(HEADERS).min(room.len());
            room[..more].fill(0);
            more
        });
    }

    /// Echoes received: number, time of sending and time of arrival of the probe.
    fn echoes(&mut self) -> Result<Vec<(u16, Time, Time)>> {
        let count = self.batch.receive(self.socket.as_fd()).or_fail(|| "receive".to_string())?;
        let mut all = Vec::new();
        for i in 0..count {
            let message = self.batch.message(i);
            if message.from == Some(self.peer)
                && let Ok(read) = datagram::read(message.bytes)
            {
                match Message::of(&read.packet) {
                    Some(Message::Echo(index, nonce, sent, came)) if nonce == self.nonce => {
                        all.push((index, sent, came))
                    }
                    Some(Message::Cookie(nonce, cookie)) if nonce == self.nonce => {
                        self.code = Some(auth::probe_code(self.key.as_ref(), &cookie));
                    }
                    Some(Message::Refused(nonce, why)) if nonce == self.nonce => self.refused = Some(why.sentence()),
                    _ => {}
                }
            }
        }
        Ok(all)
    }

    /// Measures path MTU, round-trip time and losses for this time and a little more.
    pub fn look(&mut self, length: Time, stop: &dyn Fn() -> bool) -> Result<Sight> {
        self.wait_for_cookie(stop)?;
        let mut found = Found::default();
        self.pairs(length.min(Time::secs(1)), &mut found, stop)?;
        let packet = self.path_mtu(PAIR_LEN, MTU_TIMEOUT, stop)?;
        let (mut trips, mut sent, mut next) = (Vec::new(), 0u16, self.clock.now());
        let end = self.clock.now() + length;
        // The last ones need a round trip to return.
        let late = end + MTU_TIMEOUT;
        while self.clock.now() < late && !stop() {
            let now = self.clock.now();
            let slowest = trips.iter().copied().fold(0.0, f64::max);
            if now >= end + Time::from_secs_f64(2.0 * slowest) + Time::millis(100) {
                break;
            }
            self.knock();
            if now >= next && now < end && sent < WAKER {
                self.push(sent, SHORT_LEN);
                self.out.flush(self.socket.as_fd());
                (sent, next) = (sent + 1, now + BETWEEN_LOOKS);
            }
            for (index, sent, _) in self.echoes()? {
                if index < WAKER && sent >= end - length {
                    trips.push(self.clock.now().since(sent).as_secs_f64());
                }
            }
            let due = if now < end { next } else { now + BETWEEN_LOOKS };
            self.waiter.wait(&[self.socket.as_fd()], due).or_fail(|| "wait".to_string())?;
        }
        let Some(trip) = median(&trips) else { return Err(self.no_answer()) };
        let back = (trips.len() as f64 / sent.max(1) as f64).min(1.0);
        Ok(Sight { trip: Time::from_secs_f64(trip), loss: 1.0 - back.sqrt(), capacity: found.capacity, packet })
    }
    /// No probe was answered.
    fn no_answer(&self) -> Error {
        let hint = self.refused.unwrap_or("is `explicated recv` running there with the same key, or without one?");
        Error::Failed(format!("no probe was answered by {}; {hint}", self.peer))
    }

    /// The path MTU, up to `wanted` bytes of IP; `None` if no probe is answered for this time.
    pub fn path_mtu(&mut self, wanted: u16, timeout: Time, stop: &dyn Fn() -> bool) -> Result<Option<u16>> {
        let mut search = Search::new(wanted);
        let end = self.clock.now() + timeout;
        while self.clock.now() < end && !stop() {
            self.knock();
            if self.code.is_none() {
                self.echoes()?;
                self.waiter.wait(&[self.socket.as_fd()], self.knocks.min(end)).or_fail(|| "wait".to_string())?;
                continue;
            }
            for length in search.poll(self.clock.now()) {
                self.push(length, length);
            }
            let refused = self.out.too_long;
            self.out.flush(self.socket.as_fd());
            for (length, ..) in self.echoes()? {
                search.handle_echo(self.clock.now(), length);
            }
            // ICMP messages of routers are delivered to the kernel only.
            let known = kernel_mtu(self.peer)?;
            if known < wanted || self.out.too_long > refused {
                search.limit(known);
            }
            if let Some(found) = search.found() {
                return Ok(Some(found));
            }
            let due = search.due().min(self.clock.now() + READ_MTU_EVERY).min(end);
            self.waiter.wait(&[self.socket.as_fd()], due).or_fail(|| "wait".to_string())?;
        }
        Ok(None)
    }

    /// Measures for this time, with this estimator.
    pub fn run(&mut self, estimator: &str, values: &Values, length: Time, stop: &dyn Fn() -> bool) -> Result<Found> {
        let Some(kind) = ESTIMATORS.iter().find(|e| e.name() == estimator) else {
            let names: Vec<&str> = ESTIMATORS.iter().map(|e| e.name()).collect();
            return Err(Error::Input(format!("no estimator is called `{estimator}`; there are {}", names.join(", "))));
        };
        let (peer, nonce) = (u32::from(*self.peer.ip()), self.nonce);
        let build = |now| {
            kind.build(EstimatorInit {
                values,
                own: Address(0),
                peer: Address(peer),
                period: Time::millis(100),
                rng: Rng::stream(nonce, "probe"),
                now,
            })
        };
        if !sends_probes(&mut *build(Time::ZERO)) {
            return Err(Error::Input(format!("`{}` sends no probes: it exists only in the simulator", kind.name())));
        }
        let mut found = Found::default();
        self.wait_for_cookie(stop)?;
        self.pairs(length.min(Time::secs(1)), &mut found, stop)?;
        let now = self.clock.now();
        let (mut estimator, end) = (build(now), now + length);
        while self.clock.now() < end && !stop() {
            self.knock();
            let now = self.clock.now();
            while let Some(probe) = estimator.poll_probe(now) {
                if self.out.is_full() {
                    self.out.flush(self.socket.as_fd());
                }
                self.push(probe.index & !PAIRS, probe.ip_len);
                found.probes.0 += 1;
            }
            self.out.flush(self.socket.as_fd());
            // Late echoes of pairs are no input of the estimator.
            for (index, sent, came) in self.echoes()?.into_iter().filter(|echo| echo.0 & PAIRS == 0) {
                found.probes.1 += 1;
                estimator.handle_echo(self.clock.now(), index, sent, came);
            }
            if let Some(left) = estimator.poll_estimate(self.clock.now()) {
                found.available.push(8.0 * left);
            }
            let due = estimator.poll_timeout().min(end);
            self.waiter.wait(&[self.socket.as_fd()], due).or_fail(|| "wait".to_string())?;
        }
        if found.probes.1 == 0 {
            return Err(self.no_answer());
        }
        Ok(found)
    }

    /// Pairs of packets sent back to back, after a packet that wakes the processors on the path: an idle processor
    /// handles its first packet late, and the next two on time.
    fn pairs(&mut self, length: Time, found: &mut Found, stop: &dyn Fn() -> bool) -> Result<()> {
        let end = self.clock.now() + length;
        let mut first: Vec<Option<Time>> = Vec::new();
        let mut next = self.clock.now();
        while self.clock.now() < end && !stop() {
            self.knock();
            if self.clock.now() >= next && first.len() < 0x3fff {
                let index = PAIRS | (2 * first.len()) as u16;
                self.push(PAIRS | WAKER, PAIR_LEN);
                self.push(index, PAIR_LEN);
                self.push(index + 1, PAIR_LEN);
                self.out.flush(self.socket.as_fd());
                first.push(None);
                next = self.clock.now() + BETWEEN_PAIRS;
            }
            for (index, _, came) in self.echoes()? {
                let Some(pair) = first.get_mut((index & !PAIRS) as usize / 2) else { continue };
                match (index & 1, *pair) {
                    (0, _) => *pair = Some(came),
                    (_, Some(before)) if came > before => {
                        found.capacity.push(8.0 * PAIR_LEN as f64 / came.since(before).as_secs_f64());
                    }
                    _ => {}
                }
            }
            self.waiter.wait(&[self.socket.as_fd()], next.min(end)).or_fail(|| "wait".to_string())?;
        }
        Ok(())
    }
}

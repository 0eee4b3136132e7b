//! Measurement of the path to a receiver: the core's estimators on real packets.
//!
//! The receiver answers each [`Probe`] with a shorter message that carries the time of arrival by its own clock. Only differences
//! of these times are used. The available bandwidth comes from an estimator of the core; the capacity from pairs of
//! packets sent back to back, which the narrowest link spreads (Dovrolis, Ramanathan, Moore, INFOCOM 2001): the median of
//! length over spread, since single pairs are unreliable. A packet that is not measured precedes each pair.

use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::fd::AsFd;

use explicate_core::agent::Address;
use explicate_core::datagram;
use explicate_core::estimate::{AnyEstimatorKind, ESTIMATORS, Estimator, EstimatorInit};
use explicate_core::params::Values;
use explicate_core::rng::Rng;
use explicate_core::units::Time;
use explicate_core::wire::{IP_UDP_LEN, SackRanges};

use super::probed::Probe;
use crate::clock::{Clock, Waiter};
use crate::endpoint::outbox::Outbox;
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
const BETWEEN_PAIRS: Time = Time::millis(20);
/// Number of packets that measure round-trip times and losses, and their interval.
const SHORT_LEN: u16 = 200;
const BETWEEN_LOOKS: Time = Time::millis(5);
/// The last packets return within this time, or not at all.
const LATE: Time = Time::secs(5);

/// Whether an estimator sends probes without any input; the simulator's oracle does not.
fn sends_probes(estimator: &mut dyn Estimator) -> bool {
    let mut now = Time::ZERO;
    (0..100).any(|_| {
        let sends = estimator.poll_probe(now).is_some();
        now = estimator.poll_timeout().max(now + Time::millis(1));
        sends
    })
}

/// The estimator of this name, which has to send probes.
pub fn estimator(name: &str) -> Result<&'static AnyEstimatorKind> {
    let Some(kind) = ESTIMATORS.iter().find(|e| e.name() == name) else {
        let names: Vec<&str> = ESTIMATORS.iter().map(|e| e.name()).collect();
        return Err(Error::Input(format!("no estimator is called `{name}`; there are {}", names.join(", "))));
    };
    if !sends_probes(&mut *build(*kind, SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0), 0, Time::ZERO)) {
        return Err(Error::Input(format!("`{}` sends no probes: it exists only in the simulator", kind.name())));
    }
    Ok(*kind)
}

fn build(kind: &AnyEstimatorKind, peer: SocketAddrV4, seed: u64, now: Time) -> Box<dyn Estimator> {
    kind.build(EstimatorInit {
        values: &Values::default(),
        own: Address(0),
        peer: Address((*peer.ip()).into()),
        period: Time::millis(100),
        rng: Rng::stream(seed, "probe"),
        now,
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
    permit: u64,
}

impl Prober {
    /// Opens a socket. The receiver has permitted probes with this number.
    pub fn open(peer: SocketAddrV4, permit: u64) -> Result<Prober> {
        let clock = Clock::start();
        let socket = UdpSocket::bind("0.0.0.0:0").or_fail(|| "open a socket".to_string())?;
        let waiter = socket
            .set_nonblocking(true)
            .and_then(|()| sys::tell_ttl_and_ecn(socket.as_fd()))
            .and_then(|()| Waiter::with_timer(clock))
            .or_fail(|| "prepare the socket".to_string())?;
        let (batch, out) = (Batch::new(2048), Outbox::default());
        Ok(Prober { socket, peer, clock, waiter, batch, out, permit })
    }

    fn push(&mut self, index: u16, ip_len: u16) {
        let packet = Probe { index, permit: self.permit, sent: self.clock.now(), came: None }.to_packet();
        self.out.push(self.peer, &packet, &SackRanges::NONE, (ip_len as usize).saturating_sub(HEADERS));
    }

    /// Echoes received: number, time of sending and time of arrival of the probe.
    fn echoes(&mut self) -> Result<Vec<(u16, Time, Time)>> {
        let count = self.batch.receive(self.socket.as_fd()).or_fail(|| "receive".to_string())?;
        let mut all = Vec::new();
        for i in 0..count {
            let message = self.batch.message(i);
            if message.from == Some(self.peer)
                && let Ok(read) = datagram::read(message.bytes)
                && let Some(Probe { index, permit, sent, came: Some(came) }) = Probe::of(&read.packet)
                && permit == self.permit
            {
                all.push((index, sent, came));
            }
        }
        Ok(all)
    }

    /// Measures round-trip time and losses for this time and a little more.
    pub fn look(&mut self, length: Time) -> Result<Sight> {
        let capacity = self.pairs(length.min(Time::secs(1)))?;
        let (mut trips, mut sent, mut next) = (Vec::new(), 0u16, self.clock.now());
        let end = self.clock.now() + length;
        // The last ones need a round trip to return.
        let late = end + LATE;
        while self.clock.now() < late && !sys::stopped() {
            let now = self.clock.now();
            let slowest = trips.iter().copied().fold(0.0, f64::max);
            if now >= end + Time::from_secs_f64(2.0 * slowest) + Time::millis(100) {
                break;
            }
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
        Ok(Sight { trip: Time::from_secs_f64(trip), loss: 1.0 - back.sqrt(), capacity })
    }
    /// No probe was answered.
    fn no_answer(&self) -> Error {
        let hint = "do datagrams from other ports of this host come there by the same address?";
        Error::Failed(format!("no probe was answered by {}; {hint}", self.peer))
    }

    /// Measures for this time, with this estimator.
    pub fn run(&mut self, kind: &AnyEstimatorKind, length: Time) -> Result<Found> {
        let mut found = Found { capacity: self.pairs(length.min(Time::secs(1)))?, ..Found::default() };
        let now = self.clock.now();
        let (mut estimator, end) = (build(kind, self.peer, self.permit, now), now + length);
        while self.clock.now() < end && !sys::stopped() {
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

    /// Estimates of the capacity by pairs of packets sent back to back, after a packet that wakes the processors on the path: an idle processor
    /// handles its first packet late, and the next two on time.
    fn pairs(&mut self, length: Time) -> Result<Vec<f64>> {
        let end = self.clock.now() + length;
        let (mut first, mut capacity): (Vec<Option<Time>>, _) = (Vec::new(), Vec::new());
        let mut next = self.clock.now();
        while self.clock.now() < end && !sys::stopped() {
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
                        capacity.push(8.0 * PAIR_LEN as f64 / came.since(before).as_secs_f64());
                    }
                    _ => {}
                }
            }
            self.waiter.wait(&[self.socket.as_fd()], next.min(end)).or_fail(|| "wait".to_string())?;
        }
        Ok(capacity)
    }
}

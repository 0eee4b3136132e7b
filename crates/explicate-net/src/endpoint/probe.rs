//! Measuring a path between two of our nodes: the core's estimators on real packets.
//!
//! The listening end answers each probe with a shorter message that says when it came, by its own clock: of that only differences
//! are used. What is left of the path's capacity comes from an estimator of the core; the capacity itself from pairs of
//! packets sent back to back, which the narrowest link spreads (Dovrolis, Ramanathan, Moore, INFOCOM 2001): the median of
//! length over spread, for single pairs lie. A packet of which nothing is measured goes before each.

use std::net::{SocketAddrV4, UdpSocket};
use std::os::fd::AsFd;

use explicate_core::datagram;
use explicate_core::estimate::{ESTIMATORS, EstimatorInit};
use explicate_core::params::Values;
use explicate_core::protocol::Address;
use explicate_core::rng::Rng;
use explicate_core::units::Time;
use explicate_core::wire::{IP_UDP_LEN, SackRanges};

use super::auth::{self, Key, ShortCode};
use super::message::Message;
use super::outbox::Outbox;
use crate::clock::{Clock, Waiter};
use crate::error::{Context, Error, Result};
use crate::sys::{self, Batch};

/// What was found.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// Estimates of what the path has left, bit/s, one after the other.
    pub available: Vec<f64>,
    /// What pairs of packets say of its capacity, bit/s.
    pub capacity: Vec<f64>,
    /// Probes sent, and echoes that came.
    pub probes: (u64, u64),
}

/// The middle one of values.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied()
}

/// IP length of the packets of a pair.
const PAIR_LEN: u16 = 1500;
/// Headers of a message, bytes of IP.
const HEADERS: usize = IP_UDP_LEN + 40;
/// The estimator that asks a simulator instead of the path.
const ORACLE: &str = "oracle";
/// Pairs are numbered apart from the estimator's probes.
const PAIRS: u16 = 0x8000;
/// The number of packets before pairs; no pair has it.
const WAKER: u16 = 0x7fff;
/// Between two requests for a cookie.
const KNOCK_EVERY: Time = Time::secs(1);
/// How long to wait for the first.
const PATIENCE: Time = Time::secs(5);
const BETWEEN_PAIRS: Time = Time::millis(20);

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
    /// What probes carry, and when to ask for it anew.
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

    /// Asks for a cookie where it is time: each is good for some seconds.
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
        let end = self.clock.now() + PATIENCE;
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

    /// Echoes that have come: number, when the probe was sent and when it came.
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

    /// Measures for so long, by this estimator.
    pub fn run(&mut self, estimator: &str, values: &Values, length: Time, stop: &dyn Fn() -> bool) -> Result<Found> {
        let Some(kind) = ESTIMATORS.iter().find(|e| e.name() == estimator) else {
            let names: Vec<&str> = ESTIMATORS.iter().map(|e| e.name()).collect();
            return Err(Error::Input(format!("no estimator is called `{estimator}`; there are {}", names.join(", "))));
        };
        if kind.name() == ORACLE {
            return Err(Error::Input(format!("`{}` sends no probes: only a simulator can ask it", kind.name())));
        }
        let mut found = Found::default();
        self.wait_for_cookie(stop)?;
        self.pairs(length.min(Time::secs(1)), &mut found, stop)?;
        let now = self.clock.now();
        let mut estimator = kind.build(EstimatorInit {
            values,
            own: Address(0),
            peer: Address(u32::from(*self.peer.ip())),
            period: Time::millis(100),
            rng: Rng::stream(self.nonce, "probe"),
            now,
        });
        let end = now + length;
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
            // Echoes of pairs may still come: they are none of the estimator's.
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
            let hint = self.refused.unwrap_or("is `explicated recv` running there, and has it the same key, or none?");
            return Err(Error::Failed(format!("no probe was answered by {}; {hint}", self.peer)));
        }
        Ok(found)
    }

    /// Pairs of packets, back to back, behind a packet that wakes whom it meets: those who have slept for long handle it late,
    /// and the next two each in its time.
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

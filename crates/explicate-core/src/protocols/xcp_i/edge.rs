//! The upstream edge of a cloud: answers requests, runs the measurement of the path, and reports the result.
//!
//! Return-routability check: peers are neither probed nor notified until they prove that they receive at their claimed address.
//! A first request is answered by a challenge of the same length, which contains a cookie and leaves no state. A forged request
//! therefore makes this node send one packet, and a replayed one works only until the cookie expires.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::Params;
use super::message::{Kind, Message, pack};
use crate::agent::{Address, Control, PathOracle};
use crate::estimate::{Choice, Estimator, EstimatorInit};
use crate::params::Values;
use crate::rng::Rng;
use crate::units::Time;

/// IP length of a message: IPv4 and UDP headers and 28 bytes.
pub(super) const MESSAGE_LEN: u16 = 56;

/// In a request, in place of a number: compute on my behalf.
pub(super) const BEHALF: u16 = 1;

/// A result of a measurement.
#[derive(Clone, Copy)]
pub(super) struct Measured {
    /// Available bandwidth of the path, bytes/s; negative if the load exceeds its capacity.
    pub(super) left: f64,
    /// Capacity of its tight link, bytes/s, if the estimator measures it.
    pub(super) capacity: Option<f64>,
}

struct Session {
    nonce: u64,
    until: Time,
    /// The other end needs no results: this node has a virtual router for packets to it.
    behalf: bool,
    estimator: Box<dyn Estimator>,
    /// Bytes of probes sent, and the last estimate, bytes/s.
    probe_bytes: u64,
    found: Option<f64>,
}

pub(super) struct Edge {
    own: Address,
    values: Values,
    rng: Rng,
    secret: u64,
    sessions: BTreeMap<u32, Session>,
    most: usize,
    /// Lifetime of a request.
    lease: Time,
    least_period: Time,
    /// Results of such sessions.
    own_results: Vec<(Address, Measured)>,
    pub(super) probe_bytes: u64,
    pub(super) refused: u64,
}

impl Edge {
    pub(super) fn new(own: Address, values: &Values, mut rng: Rng) -> Edge {
        let params = Params::of(values);
        Edge {
            own,
            values: values.clone(),
            secret: rng.next_u64(),
            rng,
            sessions: BTreeMap::new(),
            most: params.table as usize,
            lease: Time::from_secs_f64(params.idle),
            least_period: Time::from_secs_f64(params.least_period),
            own_results: Vec::new(),
            probe_bytes: 0,
            refused: 0,
        }
    }

    /// Not a cryptographic hash: a deployment needs a keyed one.
    pub(super) fn cookie(&self, peer: Address, epoch: u64) -> u64 {
        let mut word = self.secret ^ (peer.0 as u64) << 32 ^ epoch;
        for multiplier in [0xbf58_476d_1ce4_e5b9u64, 0x94d0_49bb_1331_11eb] {
            word = (word ^ word >> 31).wrapping_mul(multiplier).wrapping_add(self.secret);
        }
        word ^ word >> 29
    }
    fn knows(&self, now: Time, peer: Address, cookie: u64) -> bool {
        let epoch = now.0 / self.lease.0;
        cookie == self.cookie(peer, epoch) || epoch > 0 && cookie == self.cookie(peer, epoch - 1)
    }

    pub(super) fn handle(&mut self, now: Time, peer: Address, message: &Message, out: &mut Vec<Control>) {
        let mut answer = |message: Message| {
            out.push(Control { peer, ip_len: MESSAGE_LEN, message: message.to_bytes() });
        };
        match message.kind {
            Kind::Request if !self.knows(now, peer, message.first) => {
                let cookie = self.cookie(peer, now.0 / self.lease.0);
                answer(Message { first: cookie, ..Message::new(Kind::Challenge, message.nonce) });
            }
            Kind::Request => {
                let period = Time(message.second.max(self.least_period.0).min(self.lease.0));
                let room = self.sessions.len() < self.most;
                if let Some(session) = self.sessions.get_mut(&peer.0) {
                    session.nonce = message.nonce;
                    session.behalf = message.index == BEHALF;
                    session.until = now + self.lease;
                    session.estimator.set_period(now, period);
                } else if room {
                    let kind = Choice::of(&self.values).estimator.kind();
                    let rng = Rng::stream(self.rng.next_u64(), kind.name());
                    let init = EstimatorInit { values: &self.values, own: self.own, peer, period, rng, now };
                    let estimator = kind.build(init);
                    self.sessions.insert(
                        peer.0,
                        Session {
                            nonce: message.nonce,
                            until: now + self.lease,
                            behalf: message.index == BEHALF,
                            estimator,
                            probe_bytes: 0,
                            found: None,
                        },
                    );
                } else {
                    self.refused += 1;
                    return;
                }
                answer(Message::new(Kind::Acknowledge, message.nonce));
            }
            Kind::Stop if self.sessions.get(&peer.0).is_some_and(|s| s.nonce == message.nonce) => {
                self.sessions.remove(&peer.0);
            }
            Kind::Echo => {
                if let Some(session) = self.sessions.get_mut(&peer.0).filter(|s| s.nonce == message.nonce) {
                    session.estimator.handle_echo(now, message.index, Time(message.first), Time(message.second));
                }
            }
            _ => {}
        }
    }

    pub(super) fn consult(&mut self, now: Time, oracle: &mut dyn PathOracle) {
        for session in self.sessions.values_mut() {
            session.estimator.consult(now, oracle);
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Time, out: &mut Vec<Control>) {
        self.sessions.retain(|_, session| session.until > now);
        for (&peer, session) in &mut self.sessions {
            let peer = Address(peer);
            if let Some(left) = session.estimator.poll_estimate(now) {
                session.found = Some(left);
                let capacity = session.estimator.capacity();
                if session.behalf {
                    self.own_results.push((peer, Measured { left, capacity }));
                } else {
                    let (index, first) = (pack(capacity), left as i64 as u64);
                    let message = Message { index, first, second: now.0, ..Message::new(Kind::Result, session.nonce) };
                    out.push(Control { peer, ip_len: MESSAGE_LEN, message: message.to_bytes() });
                }
            }
            while let Some(probe) = session.estimator.poll_probe(now) {
                let message = Message { index: probe.index, first: now.0, ..Message::new(Kind::Probe, session.nonce) };
                self.probe_bytes += probe.ip_len as u64;
                session.probe_bytes += probe.ip_len as u64;
                out.push(Control { peer, ip_len: probe.ip_len.max(MESSAGE_LEN), message: message.to_bytes() });
            }
        }
    }

    pub(super) fn poll_timeout(&self) -> Time {
        let due = self.sessions.values().map(|s| s.until.min(s.estimator.poll_timeout()));
        due.min().unwrap_or(Time::NEVER)
    }

    /// Whether the node `to` has requested this one to compute the feedback of the cloud before it.
    pub(super) fn computes_for(&self, to: Address) -> bool {
        self.sessions.get(&to.0).is_some_and(|s| s.behalf)
    }
    /// A result for the virtual routers of this node itself.
    pub(super) fn poll_own(&mut self) -> Option<(Address, Measured)> {
        self.own_results.pop()
    }

    /// Reports the last estimate of every measured path, and the cost of its probes so far.
    pub(super) fn probe(&self, put: &mut dyn FnMut(Address, &'static str, f64)) {
        for (&peer, session) in &self.sessions {
            put(Address(peer), "measured_bps", session.found.map_or(f64::NAN, |left| 8.0 * left));
            put(Address(peer), "probe_bytes", session.probe_bytes as f64);
        }
    }
    pub(super) fn sessions(&self) -> usize {
        self.sessions.len()
    }
}

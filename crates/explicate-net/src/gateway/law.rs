//! The window of a QUIC connection by a sender of the core.
//!
//! Headers of the connection's datagrams ask for more rate or less, routers on the way and the own port answer, the peer returns
//! the sum of the answers, and the sender moves the window by it. A loss leaves the window of an explicit sender alone. The peer's
//! sums are cumulative, so that a lost acknowledgement loses no feedback.
//!
//! *Start.* After an idle time the window is at least what the own port has to spare for a round trip: the port knows its line,
//! so nothing has to be probed.
//!
//! *Limit.* A narrower line without a router behind the own port shows in losses. Where in `ROUNDS` round trips in a row more
//! than `MOST_LOST` of the bytes are lost, CUBIC's window limits that of the sender, until `PATIENCE` has passed without such
//! a round trip.

use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use explicate_core::api::{AnyProtocol, AnySender, LossKind, SenderInit};
use explicate_core::params::Values;
use explicate_core::registry;
use explicate_core::testing;
use explicate_core::units::{Rate, Time};
use explicate_core::wire::{Congestion, Format, Packet};
use quinn::congestion::{Controller, ControllerFactory};
use quinn_proto::RttEstimator;

use super::transport::{ACK_DELAY, PER_ACK};
use crate::clock::Clock;

/// Round trips in a row with more loss than this share make CUBIC the limit.
const ROUNDS: u32 = 3;
const MOST_LOST: f64 = 0.1;
/// How long the limit lasts after the last such round trip.
const PATIENCE: Time = Time::secs(30);
/// Least window, packets.
const LEAST: f64 = 4.0;
/// Packets beyond the window for the first probe of a silent path, with QUIC's own, and for each of the next ones.
const FIRST_PROBE: f64 = 24.0;
const NEXT_PROBE: f64 = 4.0;
/// First window, packets (RFC 9002 section 7.2).
const INITIAL: f64 = 10.0;

/// A sender that a connection follows.
pub struct Law {
    sender: Box<AnySender>,
    /// The sender's packets carry requests.
    explicit: bool,
    /// CUBIC, for [`Law::limited_until`].
    tcp: Box<AnySender>,
    limited_until: Time,
    bad_rounds: u32,
    round: Round,
    /// Length of a full packet, bytes of IP.
    packet: f64,
    clock: Clock,
    srtt: Time,
    /// Bytes in flight after the last acknowledgements.
    in_flight: u64,
    last_sent: Time,
    granted: bool,
    /// Packets beyond the window, until the next acknowledgement.
    probes: f64,
    acknowledged: u64,
    /// The peer's last sum of feedback, and what has not been passed to the sender, bytes/s.
    sum: u32,
    feedback: i64,
}

/// A round trip.
#[derive(Default)]
struct Round {
    began: Time,
    acknowledged: u64,
    lost: u64,
}

/// A sender of this protocol whose losses do not move its window, if it has parameters for that.
fn sender(protocol: &AnyProtocol, packet: f64, rate: Rate) -> Box<AnySender> {
    let mut values = Values::default();
    for name in ["on_loss", "on_timeout"] {
        if let Some(param) = protocol.params().iter().find(|param| param.name == name) {
            values.set(param, 1.0);
        }
    }
    protocol.sender(&SenderInit { values: &values, packet, initial_window: INITIAL, interface: rate })
}

impl Law {
    /// A sender of this protocol over a line of this rate.
    pub fn new(protocol: &AnyProtocol, packet: u16, rate: Rate, clock: Clock) -> Law {
        let packet = packet as f64;
        let cubic = registry::protocol("cubic").unwrap_or(protocol);
        Law {
            sender: sender(protocol, packet, rate),
            explicit: protocol.explicit(),
            tcp: sender(cubic, packet, rate),
            limited_until: Time::ZERO,
            bad_rounds: 0,
            round: Round::default(),
            packet,
            clock,
            srtt: Time::ZERO,
            in_flight: 0,
            last_sent: Time::ZERO,
            granted: false,
            probes: 0.0,
            acknowledged: 0,
            sum: 0,
            feedback: 0,
        }
    }

    /// The window, packets.
    pub fn window(&self) -> f64 {
        let own = self.sender.allowance().cwnd;
        if self.is_limited() { own.min(self.tcp.allowance().cwnd).max(LEAST) } else { own.max(LEAST) }
    }
    /// What may be in flight, packets: acknowledgements wait for [`PER_ACK`] packets or [`ACK_DELAY`], and the window is for a round
    /// trip without that.
    pub fn allowed(&self) -> f64 {
        let waits =
            if self.srtt > Time::ZERO { ACK_DELAY.as_secs_f64() / self.srtt.as_secs_f64().max(1e-3) } else { 0.0 };
        self.window() * (1.0 + waits) + 2.0 * PER_ACK as f64 + self.probes
    }
    /// Lets a probe of a silent path pass a full window.
    pub fn allow_probe(&mut self) {
        self.probes += if self.probes == 0.0 { FIRST_PROBE } else { NEXT_PROBE };
    }
    /// CUBIC limits the window.
    pub fn is_limited(&self) -> bool {
        self.clock.now() < self.limited_until
    }
    /// Smoothed round-trip time.
    pub fn round_trip(&self) -> Time {
        self.srtt
    }

    /// The congestion header of a datagram that leaves; `spare` is what the own port has for this connection, bytes/s.
    pub fn header(&mut self, spare: f64) -> Congestion {
        let now = self.clock.now();
        let idle = now.since(self.last_sent).0 > self.srtt.0 / 2;
        self.last_sent = now;
        if self.srtt > Time::ZERO && (idle || !self.granted) && self.explicit {
            self.granted = true;
            let most = spare * self.srtt.as_secs_f64() / self.packet;
            if most > self.sender.allowance().cwnd {
                self.sender.resume(now, most, self.srtt);
            }
        }
        if !self.explicit {
            return Congestion::new(Format::MINIMAL);
        }
        let mut packet =
            Packet { ip_len: self.packet as u16, congestion: Congestion::new(Format::STANDARD), ..Packet::EMPTY };
        let in_flight = (self.in_flight as f64 / self.packet) as u32;
        self.sender.on_send(&mut packet, &testing::sent(now, in_flight));
        packet.congestion
    }

    /// The peer returns this sum of feedback, modulo 2^32.
    pub fn returned(&mut self, sum: u32) {
        self.feedback += sum.wrapping_sub(self.sum) as i32 as i64;
        self.sum = sum;
    }

    /// The sums of the peer begin at this one.
    pub fn begin_at(&mut self, sum: u32) {
        self.sum = sum;
    }
    /// Feedback that the sender has not got yet, bytes/s.
    #[cfg(test)]
    pub fn waiting_feedback(&self) -> i64 {
        self.feedback
    }

    fn on_ack(&mut self, bytes: u64, rtt: Time) {
        if self.srtt == Time::ZERO {
            let now = self.clock.now();
            self.sender.on_start(now, rtt);
            self.tcp.on_start(now, rtt);
        }
        self.srtt = rtt;
        self.probes = 0.0;
        self.acknowledged += bytes;
        self.round.acknowledged += bytes;
    }

    fn on_end_acks(&mut self, in_flight: u64, app_limited: bool) {
        let now = self.clock.now();
        self.in_flight = in_flight;
        let mut header = Congestion::new(Format::MINIMAL);
        let feedback = self.feedback.clamp(i32::MIN as i64, i32::MAX as i64);
        self.feedback -= feedback;
        header.set_reverse_feedback(feedback as i32);
        let mut ack = testing::ack(now, &header);
        ack.newly_acked = (self.acknowledged as f64 / self.packet) as u32;
        self.acknowledged -= (ack.newly_acked as f64 * self.packet) as u64;
        (ack.rtt, ack.srtt, ack.app_limited) = (self.srtt, self.srtt, app_limited);
        ack.in_flight = (in_flight as f64 / self.packet) as u32;
        self.sender.on_ack(&ack);
        if self.is_limited() {
            self.tcp.on_ack(&ack);
        }
        self.end_round(now);
    }

    fn end_round(&mut self, now: Time) {
        if now.since(self.round.began) < self.srtt {
            return;
        }
        let Round { acknowledged, lost, .. } =
            std::mem::replace(&mut self.round, Round { began: now, ..Round::default() });
        let all = (acknowledged + lost) as f64;
        let bad = all > 20.0 * self.packet && lost as f64 > MOST_LOST * all;
        self.bad_rounds = if bad { self.bad_rounds + 1 } else { 0 };
        if self.bad_rounds >= ROUNDS && self.explicit {
            if !self.is_limited() {
                self.tcp.resume(now, (acknowledged as f64 / self.packet / 2.0).max(LEAST), self.srtt);
            }
            self.limited_until = now + PATIENCE;
        }
    }

    fn on_loss(&mut self, bytes: u64, persistent: bool) {
        let kind = if persistent { LossKind::Timeout } else { LossKind::Duplicates };
        let mut loss = testing::loss(self.clock.now(), kind, (self.in_flight as f64 / self.packet) as u32);
        loss.srtt = self.srtt;
        self.round.lost += bytes;
        self.sender.on_loss(&loss);
        if self.is_limited() {
            self.tcp.on_loss(&loss);
        }
    }
}

/// A [`Law`] that the connection and its datagrams share.
#[derive(Clone)]
pub struct SharedLaw(pub Arc<Mutex<Law>>);

impl SharedLaw {
    /// The law.
    pub fn lock(&self) -> std::sync::MutexGuard<'_, Law> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ControllerFactory for SharedLaw {
    fn build(self: Arc<Self>, _: Instant, mtu: u16) -> Box<dyn Controller> {
        Box::new(OfConnection { law: self.as_ref().clone(), mtu })
    }
}

/// The law as quinn asks it.
struct OfConnection {
    law: SharedLaw,
    mtu: u16,
}

impl Controller for OfConnection {
    fn on_ack(&mut self, _: Instant, _: Instant, bytes: u64, _: bool, rtt: &RttEstimator) {
        self.law.lock().on_ack(bytes, Time(rtt.get().as_nanos() as u64));
    }
    fn on_end_acks(&mut self, _: Instant, in_flight: u64, app_limited: bool, _: Option<u64>) {
        self.law.lock().on_end_acks(in_flight, app_limited);
    }
    fn on_congestion_event(&mut self, _: Instant, _: Instant, persistent: bool, lost_bytes: u64) {
        self.law.lock().on_loss(lost_bytes, persistent);
    }
    fn on_mtu_update(&mut self, mtu: u16) {
        self.mtu = mtu;
    }
    fn window(&self) -> u64 {
        (self.law.lock().allowed() * self.mtu as f64) as u64
    }
    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(OfConnection { law: self.law.clone(), mtu: self.mtu })
    }
    fn initial_window(&self) -> u64 {
        (INITIAL * self.mtu as f64) as u64
    }
    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn law(name: &str) -> Law {
        Law::new(registry::protocol(name).unwrap(), 1500, Rate::mbps(20), Clock::start())
    }

    #[test]
    fn feedback_of_the_peer_moves_the_window_once_and_losses_do_not() {
        let mut law = law("xcp");
        law.on_ack(1500, Time::millis(600));
        law.on_end_acks(0, false);
        assert_eq!(law.window(), 10.0);
        // 25 kB/s for 0.6 s are ten packets.
        for _ in 0..2 {
            law.returned(25_000);
            law.on_end_acks(0, false);
            assert_eq!(law.window(), 20.0, "the same sum again says nothing new");
        }
        law.on_loss(1500, false);
        law.on_loss(1500, true);
        assert_eq!(law.window(), 20.0);
        law.returned(0u32.wrapping_sub(1000));
        law.on_end_acks(0, false);
        assert!((law.window() - 9.6).abs() < 1e-9, "26 kB/s less: {}", law.window());
    }

    #[test]
    fn a_start_takes_what_the_port_has_to_spare() {
        let mut law = law("xcp");
        law.header(2.5e6);
        assert_eq!(law.window(), 10.0, "the round trip is unknown");
        law.on_ack(1500, Time::millis(600));
        let header = law.header(2.5e6);
        assert!((law.window() - 1000.0).abs() < 1e-6, "2.5 MB/s for 0.6 s: {}", law.window());
        assert!(header.is_standard() && header.rtt() > 0);
        law.header(5e6);
        assert!(law.window() < 1001.0, "it is not idle now");
    }

    #[test]
    fn a_tenth_lost_for_three_round_trips_makes_it_tcp() {
        let mut law = law("xcp");
        law.on_ack(1500, Time(1));
        law.header(1e12);
        let before = law.window();
        for round in 0..ROUNDS {
            assert!(!law.is_limited(), "{round}");
            law.on_ack(800_000, Time(1));
            law.on_loss(200_000, false);
            law.on_end_acks(0, false);
        }
        assert!(law.is_limited() && law.window() < before / 2.0 + 600.0);
        assert!(!{
            let mut cubic = self::law("cubic");
            cubic.on_loss(1, false);
            cubic.is_limited()
        });
    }
}

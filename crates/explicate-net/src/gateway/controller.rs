//! The window of a QUIC connection by a sender of the core.
//!
//! Headers of the connection's datagrams ask for more rate or less, routers on the way and the own port answer, the peer returns
//! the sum of the answers, and the sender moves the window by it. A loss leaves the window of an explicit sender alone. The peer's
//! sums are cumulative, so that a lost acknowledgement loses no feedback.
//!
//! *Start.* After an idle time the window is at least what the own port has to spare for a round trip: the port knows its line,
//! so nothing has to be probed.
//!
//! *Limit.* A narrower line behind the own port, without a router, shows in losses that parity does not repair, and in round-trip
//! times beyond the least one and the own port's queue. TCP's window limits that of the sender by the rule of [`guard`](explicate_core::guard),
//! on all that the peer acknowledges. What a datagram waits in routers on the way is not returned, so their queues count as delay.
//!
//! *Fall-back.* Without an own port, TCP's law moves the window while no router answers ([`answers`](super::answers)).

use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use explicate_core::api::{Ack, AnyProtocol, AnySender, Loss, LossKind, Probe, SenderInit, Sent};
use explicate_core::guard::{
    ActiveController, Change, FEWEST, FullQueue, LeastRtt, Limit, Seen, TIMES_ARRIVED, UNPROVEN,
};
use explicate_core::params::Values;
use explicate_core::presets::{DEFAULT_FALLBACK, DEFAULT_TCP};
use explicate_core::registry;
use explicate_core::units::{Rate, Time};
use explicate_core::wire::{Congestion, Format, Packet, Transport};
use quinn::congestion::{Controller, ControllerFactory};
use quinn_proto::RttEstimator;

use super::answers::Answers;
use super::shim;
use super::transport::{ACK_DELAY, PER_ACK};
use crate::clock::Clock;

/// Least window, packets.
const LEAST: f64 = 4.0;
/// Packets beyond the window for the first probe of a silent path, with QUIC's own, and for each of the next ones.
const FIRST_PROBE: f64 = 24.0;
const NEXT_PROBE: f64 = 4.0;
/// So many packets are acknowledged without an answer of a router before datagrams leave in batches.
const SILENT: u64 = 100;
/// First window, packets (RFC 9002 section 7.2).
const INITIAL: f64 = 10.0;

/// By which laws windows move.
#[derive(Clone)]
pub struct ControllerConfig {
    /// The protocol of the core.
    pub protocol: &'static AnyProtocol,
    /// Its parameters.
    pub values: Values,
    /// Share of the datagrams that the air may lose beyond repair: no sign of a narrower line.
    pub air_loss: f64,
    /// Whether TCP's law limits the window, and moves it while no router answers.
    pub guard: bool,
}

impl ControllerConfig {
    /// This protocol with losses that do not move its window, if it has parameters for that, and with a guard.
    pub fn new(protocol: &'static AnyProtocol, air_loss: f64) -> ControllerConfig {
        ControllerConfig { protocol, values: unmoved_by_losses(protocol), air_loss, guard: true }
    }
    /// Whether a connection can follow this protocol: one of TCP, or an explicit one with neither a pace nor timers nor agents, whose
    /// receiver returns the sum of the feedback, or a code and a flag.
    pub fn can_follow(protocol: &AnyProtocol) -> bool {
        if !protocol.explicit() {
            let tcp = [DEFAULT_TCP, DEFAULT_FALLBACK].map(registry::resolve);
            return tcp.iter().flatten().any(|tcp| tcp.protocol.name() == protocol.name());
        }
        let values = unmoved_by_losses(protocol);
        let (sender, headed) = (sender(protocol, &values, 1500.0, Rate::mbps(1)), protocol.congestion_header());
        let timer = if headed { sender.interest().timer } else { sender.next_timer() != Time::NEVER };
        let plain = sender.allowance().pacing.is_none() && !timer && protocol.agent_params().is_empty();
        plain && protocol.receiver().is_some_and(|receiver| receiver.echoes() || !headed)
    }
}

/// A sender that a connection follows.
pub struct WindowController {
    sender: Box<AnySender>,
    /// The sender's packets carry requests.
    explicit: bool,
    /// They have a congestion header.
    headed: bool,
    /// TCP's law, whose window may be the limit.
    tcp: Box<AnySender>,
    limit: Limit,
    guard: bool,
    /// Datagrams leave through a port of this process, which is a router.
    own_port: bool,
    /// Whether routers answer; `None` with an own port, which always does, and without a guard.
    answers: Option<Answers>,
    /// Most packets under way without an own port, by those that arrived in this round trip and the one before.
    most: f64,
    /// Packets acknowledged since a router last answered.
    unanswered: u64,
    /// The last loss that TCP's law was given.
    lost_at: Time,
    least_rtt: LeastRtt,
    round: Round,
    /// The longest wait in the own port's queue in the round trip before.
    waited: Time,
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
    /// What the peer returns to a protocol without a congestion header.
    returned: Transport,
}

/// A round trip: bytes, the least round-trip time, and the longest wait in the own port's queue.
struct Round {
    began: Time,
    acknowledged: u64,
    lost: u64,
    rtt: Time,
    waited: Time,
}

impl Round {
    fn new(began: Time) -> Round {
        Round { began, acknowledged: 0, lost: 0, rtt: Time::NEVER, waited: Time::ZERO }
    }
}

/// Values by which losses do not move the window of this protocol, if it has parameters for that.
fn unmoved_by_losses(protocol: &AnyProtocol) -> Values {
    let mut values = Values::default();
    for param in protocol.params().iter().filter(|param| ["on_loss", "on_timeout"].contains(&param.name)) {
        values.set(param, 1.0);
    }
    values
}

fn sender(protocol: &AnyProtocol, values: &Values, packet: f64, rate: Rate) -> Box<AnySender> {
    protocol.sender(&SenderInit { values, packet, initial_window: INITIAL, interface: rate })
}

impl WindowController {
    /// A sender by these laws over a line of this rate.
    pub fn new(config: &ControllerConfig, packet: u16, rate: Rate, clock: Clock) -> WindowController {
        let (packet, protocol) = (packet as f64, config.protocol);
        let tcp = registry::protocol(DEFAULT_TCP).unwrap_or(protocol);
        WindowController {
            sender: sender(protocol, &config.values, packet, rate),
            explicit: protocol.explicit(),
            headed: protocol.congestion_header(),
            tcp: sender(tcp, &Values::default(), packet, rate),
            limit: Limit::new(config.air_loss),
            guard: config.guard,
            own_port: true,
            answers: None,
            most: UNPROVEN,
            unanswered: 0,
            lost_at: Time::ZERO,
            least_rtt: LeastRtt::default(),
            round: Round::new(Time::ZERO),
            waited: Time::ZERO,
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
            returned: Transport::EMPTY,
        }
    }

    /// There is no own port: with a guard, TCP's law moves the window while no router answers.
    pub fn expect_no_port(&mut self) {
        self.own_port = false;
        self.answers = (self.explicit && self.guard).then(Answers::default);
    }
    /// No router answers.
    pub fn is_unanswered(&self) -> bool {
        self.answers.as_ref().is_some_and(|answers| !answers.answering())
    }
    /// Whether datagrams leave one by one. In a batch that the interface does not divide (GSO on a virtual one) a router finds one
    /// header for all; where none answers, batches save most of the CPU time.
    pub fn sends_singly(&self) -> bool {
        self.explicit && self.unanswered < SILENT
    }
    /// The window, packets.
    pub fn window(&self) -> f64 {
        let own = self.sender.allowance().cwnd;
        if self.is_unanswered() {
            return self.tcp.allowance().cwnd.max(LEAST);
        }
        if self.is_limited() { own.min(self.tcp.allowance().cwnd).max(LEAST) } else { own.max(LEAST) }
    }
    /// What may be in flight, packets: acknowledgements wait for [`PER_ACK`] packets or [`ACK_DELAY`], and the window is for a round
    /// trip without that. Where TCP's law moves the window on a path without an own port, it is all: 32 packets more would fill a
    /// short queue for good.
    pub fn allowed(&self) -> f64 {
        let by_tcp = !self.explicit || self.in_force() != ActiveController::Own;
        if !self.own_port && by_tcp {
            return self.window() + self.probes;
        }
        let waits =
            if self.srtt > Time::ZERO { ACK_DELAY.as_secs_f64() / self.srtt.as_secs_f64().max(1e-3) } else { 0.0 };
        let bounded = self.answers.as_ref().is_some_and(Answers::answering);
        let most = if bounded { self.most } else { f64::INFINITY };
        (self.window() * (1.0 + waits) + 2.0 * PER_ACK as f64 + self.probes).min(most)
    }
    /// Lets a probe of a silent path pass a full window.
    pub fn allow_probe(&mut self) {
        self.probes += if self.probes == 0.0 { FIRST_PROBE } else { NEXT_PROBE };
    }
    /// TCP's law limits the window.
    pub fn is_limited(&self) -> bool {
        self.limit.is_on()
    }
    /// A datagram that joins the own port's queue waits there for so long.
    pub fn waits(&mut self, wait: Time) {
        self.round.waited = self.round.waited.max(wait);
    }
    /// Smoothed round-trip time.
    pub fn round_trip(&self) -> Time {
        self.srtt
    }
    /// Its variables, and those of the sender.
    pub fn probe(&self, put: Probe<'_>) {
        put("srtt_ms", self.srtt.as_millis_f64());
        put("window", self.window());
        put("in_flight", self.in_flight as f64 / self.packet);
        put("law", self.in_force() as u8 as f64);
        self.sender.probe(put);
    }
    /// The law that moves the window now.
    pub fn in_force(&self) -> ActiveController {
        match (self.is_unanswered(), self.is_limited()) {
            (true, _) => ActiveController::Fallback,
            (false, true) => ActiveController::Limited,
            (false, false) => ActiveController::Own,
        }
    }

    /// A packet with what the sender asks of routers in a datagram that leaves; `spare` is what the own port has for this connection,
    /// bytes/s.
    pub fn header(&mut self, spare: f64) -> Packet {
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
        let congestion = match (self.explicit, self.headed) {
            (true, true) => Congestion::new(Format::STANDARD),
            (true, false) => Congestion::NONE,
            (false, _) => Congestion::new(Format::MINIMAL),
        };
        let mut packet = Packet { ip_len: self.packet as u16, congestion, ..Packet::EMPTY };
        if !self.explicit {
            return packet;
        }
        let in_flight = (self.in_flight as f64 / self.packet) as u32;
        self.sender.on_send(&mut packet, &Sent::new(now, in_flight));
        packet
    }

    /// The peer returns this sum of feedback, modulo 2^32, or what it has seen ([`shim::Seen`]).
    pub fn returned(&mut self, sum: u32) {
        if self.explicit && !self.headed {
            self.returned = shim::returned_header(sum);
            return;
        }
        self.feedback += sum.wrapping_sub(self.sum) as i32 as i64;
        self.sum = sum;
    }

    /// So many datagrams that routers have answered arrived at the peer, modulo 2^32.
    pub fn answered(&mut self, count: u32) {
        if let Some(answers) = &mut self.answers {
            answers.count(count);
        }
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

    /// Bytes are acknowledged: the smoothed round-trip time, and that of these bytes.
    fn on_ack(&mut self, bytes: u64, srtt: Time, rtt: Time) {
        let now = self.clock.now();
        if self.srtt == Time::ZERO {
            self.sender.on_start(now, srtt);
            self.tcp.on_start(now, srtt);
        }
        self.srtt = srtt;
        self.probes = 0.0;
        self.least_rtt.advance(now);
        self.least_rtt.take(rtt);
        self.round.rtt = self.round.rtt.min(rtt);
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
        let newly_acked = (self.acknowledged as f64 / self.packet) as u32;
        self.acknowledged -= (newly_acked as f64 * self.packet) as u64;
        let mut ack = Ack::new(now, newly_acked, self.srtt, &header);
        (ack.app_limited, ack.in_flight) = (app_limited, (in_flight as f64 / self.packet) as u32);
        self.follow_answers(now);
        if self.is_unanswered() {
            self.tcp.on_ack(&ack);
            self.sender.resume(now, self.window(), self.srtt);
            self.round = Round::new(now);
            self.unanswered += newly_acked as u64;
            return;
        }
        self.unanswered = 0;
        if self.explicit && !self.headed {
            self.answer_each(&ack);
        } else {
            self.sender.on_ack(&ack);
        }
        if self.is_limited() {
            self.tcp.on_ack(&ack);
        }
        self.end_round(now);
        self.bound_start(now);
    }

    /// Routers much wider than what follows them grant windows that are far too large before a loss can be seen.
    fn bound_start(&mut self, now: Time) {
        self.most = self.most.max(TIMES_ARRIVED * self.round.acknowledged as f64 / self.packet);
        if self.answers.is_some() && self.sender.allowance().cwnd > self.most {
            self.sender.resume(now, self.most, self.srtt);
        }
    }

    /// Routers may have begun or ceased to answer. TCP's law goes on from what is under way.
    fn follow_answers(&mut self, now: Time) {
        let Some(answers) = &mut self.answers else { return };
        if answers.end_acks(now, self.srtt + ACK_DELAY) {
            let used = self.in_flight as f64 / self.packet;
            self.tcp.resume(now, used.min(self.sender.allowance().cwnd).max(LEAST), self.srtt);
        }
    }

    /// Codes and flags count for each packet. A window that is not used does not grow (RFC 7661): the own port may hold it back.
    fn answer_each(&mut self, acks: &Ack<'_>) {
        let returned = std::mem::replace(&mut self.returned, Transport::EMPTY);
        for _ in 0..acks.newly_acked {
            let unused = 2.0 * (acks.in_flight as f64) < self.sender.allowance().cwnd;
            let mut ack = Ack::new(acks.now, 1, acks.srtt, acks.header);
            (ack.in_flight, ack.app_limited, ack.transport) = (acks.in_flight, acks.app_limited || unused, &returned);
            self.sender.on_ack(&ack);
        }
    }

    fn end_round(&mut self, now: Time) {
        let sent = (self.round.acknowledged + self.round.lost) as f64 / self.packet;
        if now.since(self.round.began) < self.srtt || sent < FEWEST || !self.explicit {
            return;
        }
        let round = std::mem::replace(&mut self.round, Round::new(now));
        let span = now.since(round.began).as_secs_f64().max(1e-9);
        let arrived = round.acknowledged as f64 / self.packet * self.srtt.as_secs_f64() / span;
        self.most = UNPROVEN.max(TIMES_ARRIVED * arrived);
        let waited = round.waited.max(std::mem::replace(&mut self.waited, round.waited));
        let lost = round.lost as f64 / self.packet;
        let delay = round.rtt.since(self.least_rtt.get()).since(waited);
        let (most_delay, queue) = (self.least_rtt.most_delay(), FullQueue::Unseen);
        let seen = Seen { sent, lost, unexplained: lost, delay, most_delay, queue };
        if self.is_limited() && lost > self.limit.borne(&seen) {
            self.tcp.on_loss(&self.loss(LossKind::Duplicates));
        }
        if self.guard && self.limit.take(now, &seen) == Some(Change::Begins) {
            let arrives = sent - lost;
            self.tcp.resume(now, (arrives.min(self.sender.allowance().cwnd) / 2.0).max(LEAST), self.srtt);
        }
    }

    fn loss(&self, kind: LossKind) -> Loss {
        Loss::new(self.clock.now(), kind, (self.in_flight as f64 / self.packet) as u32, self.srtt)
    }
    fn on_loss(&mut self, bytes: u64, persistent: bool) {
        let loss = self.loss(if persistent { LossKind::Timeout } else { LossKind::Duplicates });
        self.round.lost += bytes;
        self.sender.on_loss(&loss);
        // quinn reports losses as it finds them; TCP's law reacts once in a round trip.
        let once = persistent || loss.now.since(self.lost_at) > self.srtt;
        if self.is_limited() && persistent || self.is_unanswered() && once {
            self.lost_at = loss.now;
            self.tcp.on_loss(&loss);
        }
    }
}

/// A [`WindowController`] that the connection and its datagrams share.
#[derive(Clone)]
pub struct SharedController(pub Arc<Mutex<WindowController>>);

impl SharedController {
    /// The law.
    pub fn lock(&self) -> std::sync::MutexGuard<'_, WindowController> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ControllerFactory for SharedController {
    fn build(self: Arc<Self>, _: Instant, mtu: u16) -> Box<dyn Controller> {
        Box::new(ConnectionController { controller: self.as_ref().clone(), mtu })
    }
}

/// The law as quinn asks it.
struct ConnectionController {
    controller: SharedController,
    mtu: u16,
}

impl Controller for ConnectionController {
    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, _: bool, rtt: &RttEstimator) {
        // Not the lesser of both: before its first sample the estimate is a guess of 333 ms, which no path need reach again.
        let time = |duration: Duration| Time(duration.as_nanos() as u64);
        self.controller.lock().on_ack(bytes, time(rtt.get()), time(now.saturating_duration_since(sent)));
    }
    fn on_end_acks(&mut self, _: Instant, in_flight: u64, app_limited: bool, _: Option<u64>) {
        self.controller.lock().on_end_acks(in_flight, app_limited);
    }
    fn on_congestion_event(&mut self, _: Instant, _: Instant, persistent: bool, lost_bytes: u64) {
        self.controller.lock().on_loss(lost_bytes, persistent);
    }
    fn on_mtu_update(&mut self, mtu: u16) {
        self.mtu = mtu;
    }
    fn window(&self) -> u64 {
        (self.controller.lock().allowed() * self.mtu as f64) as u64
    }
    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(ConnectionController { controller: self.controller.clone(), mtu: self.mtu })
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
    use explicate_core::guard::AIR_LOSS;
    use explicate_core::presets::DEFAULT_EXPLICIT;

    use super::*;

    fn controller(name: &str) -> WindowController {
        let config = ControllerConfig::new(registry::protocol(name).unwrap(), AIR_LOSS);
        WindowController::new(&config, 1500, Rate::mbps(20), Clock::start())
    }

    #[test]
    fn feedback_of_the_peer_moves_the_window_once_and_losses_do_not() {
        let mut controller = controller("xcp");
        controller.on_ack(1500, Time::millis(600), Time::millis(600));
        controller.on_end_acks(0, false);
        assert_eq!(controller.window(), 10.0);
        // 25 kB/s for 0.6 s are ten packets.
        for _ in 0..2 {
            controller.returned(25_000);
            controller.on_end_acks(0, false);
            assert_eq!(controller.window(), 20.0, "the same sum again says nothing new");
        }
        controller.on_loss(1500, false);
        controller.on_loss(1500, true);
        assert_eq!(controller.window(), 20.0);
        controller.returned(0u32.wrapping_sub(1000));
        controller.on_end_acks(0, false);
        assert!((controller.window() - 9.6).abs() < 1e-9, "26 kB/s less: {}", controller.window());
    }

    #[test]
    fn a_start_takes_what_the_port_has_to_spare() {
        let mut controller = controller("xcp");
        controller.header(2.5e6);
        assert_eq!(controller.window(), 10.0, "the round trip is unknown");
        controller.on_ack(1500, Time::millis(600), Time::millis(600));
        let header = controller.header(2.5e6);
        assert!((controller.window() - 1000.0).abs() < 1e-6, "2.5 MB/s for 0.6 s: {}", controller.window());
        assert!(header.congestion.is_standard() && header.congestion.rtt() > 0);
        controller.header(5e6);
        assert!(controller.window() < 1001.0, "it is not idle now");
    }

    /// Round trips of 100 packets, of which so many are lost, with this round-trip time and wait in the own port's queue, ms.
    fn rounds(controller: &mut WindowController, count: usize, lost: u64, rtt: u64, wait: u64) {
        for _ in 0..count {
            controller.waits(Time::millis(wait));
            controller.on_ack(1500 * (100 - lost), Time(1), Time::millis(rtt));
            controller.on_loss(1500 * lost, false);
            controller.on_end_acks(0, false);
        }
    }

    #[test]
    fn the_rule_of_the_guard_makes_tcp_the_limit() {
        let limited = |cases: &[(usize, u64, u64, u64)]| {
            let mut controller = controller("xcp");
            controller.sender.resume(controller.clock.now(), 1000.0, Time::millis(100));
            cases.iter().for_each(|&(count, lost, rtt, wait)| rounds(&mut controller, count, lost, rtt, wait));
            assert_eq!(controller.is_limited(), controller.window() < 500.0, "{cases:?}: {}", controller.window());
            controller.is_limited()
        };
        assert!(limited(&[(3, 30, 100, 0)]) && !limited(&[(2, 30, 100, 0)]), "a fifth, three times");
        assert!(limited(&[(4, 10, 100, 0)]) && !limited(&[(3, 10, 100, 0)]), "8 beyond the air each time");
        assert!(!limited(&[(1000, 2, 100, 0)]), "the stated loss of the air");
        assert!(!limited(&[(1, 0, 100, 0), (50, 0, 124, 0)]) && limited(&[(1, 0, 100, 0), (3, 0, 126, 0)]), "delay");
        assert!(!limited(&[(1, 0, 100, 0), (50, 0, 160, 40)]), "delay in the own port");
    }

    /// A code or a flag that the peer returns moves the window of a protocol without a congestion header.
    #[test]
    fn codes_and_flags_move_the_window() {
        use explicate_core::wire::{Ecn, flag};
        let after = |name: &str, word: u32| {
            let mut controller = controller(name);
            controller.on_ack(1500 * 40, Time::millis(100), Time::millis(100));
            controller.sender.resume(controller.clock.now(), 100.0, Time::millis(100));
            controller.returned(word);
            controller.on_end_acks(1500 * 100, false);
            controller.window()
        };
        let [low, high, over] = [Ecn::Capable1, Ecn::Capable0, Ecn::Marked].map(|code| after("vcp", code as u32));
        assert!((101.0..102.0).contains(&low) && (100.0..101.0).contains(&high), "{low} {high}");
        assert_eq!(over, 87.5, "cut once");
        assert_eq!(after("vcp", 0), 100.0, "no router has answered");
        assert!(after("xtcp", 0) > 100.0 && after("xtcp", (flag::CONGESTED as u32) << 8) < 60.0);
    }

    /// Routers grant 10 MB/s at once: without an own port at most 1024 packets are under way, and then eight times those that arrive.
    #[test]
    fn wide_routers_grant_no_more_than_eight_times_what_arrives() {
        let granted = |guard: bool, port: bool, arrived: u64| {
            let config =
                ControllerConfig { guard, ..ControllerConfig::new(registry::protocol("xcp").unwrap(), AIR_LOSS) };
            let mut controller = WindowController::new(&config, 1500, Rate::mbps(100_000), Clock::start());
            if !port {
                controller.expect_no_port();
            }
            controller.answered(1);
            controller.on_ack(1500 * arrived, Time::secs(1), Time::secs(1));
            controller.returned(10_000_000);
            controller.on_end_acks(0, false);
            controller.allowed()
        };
        assert_eq!(granted(true, false, 10), 1024.0);
        assert_eq!(granted(true, false, 200), 1600.0);
        for unbounded in [granted(true, true, 10), granted(false, false, 10)] {
            assert!(unbounded > 6000.0, "{unbounded}");
        }
    }

    /// Packets beyond it would fill a short queue for good. With an own port they wait there.
    #[test]
    fn without_an_own_port_no_more_is_in_flight_than_the_window_of_tcp() {
        for name in ["xcp", "vcp", DEFAULT_TCP] {
            let mut controller = controller(name);
            rounds(&mut controller, 1, 0, 100, 0);
            assert!(controller.allowed() > controller.window() + 30.0, "{name}");
            controller.expect_no_port();
            assert_eq!(controller.allowed(), controller.window(), "{name}");
        }
    }

    #[test]
    fn datagrams_leave_in_batches_where_no_router_answers() {
        let mut controller = controller("xcp");
        controller.expect_no_port();
        let mut acknowledged = |packets: u64, answered: u32| {
            controller.answered(answered);
            controller.on_ack(1500 * packets, Time(1), Time(1));
            controller.on_end_acks(0, false);
            controller.sends_singly()
        };
        assert_eq!(
            [(99, 0), (1, 0), (1, 1), (99, 1)].map(|(packets, count)| acknowledged(packets, count)),
            [true, false, true, true]
        );
        let mut tcp = self::controller(DEFAULT_TCP);
        tcp.expect_no_port();
        assert!(!tcp.sends_singly());
    }

    #[test]
    fn without_a_guard_neither_silence_nor_losses_make_tcp_the_law() {
        let config =
            ControllerConfig { guard: false, ..ControllerConfig::new(registry::protocol("xcp").unwrap(), AIR_LOSS) };
        let mut controller = WindowController::new(&config, 1500, Rate::mbps(20), Clock::start());
        controller.expect_no_port();
        controller.sender.resume(controller.clock.now(), 1000.0, Time::millis(100));
        rounds(&mut controller, 10, 40, 300, 0);
        assert_eq!((controller.window(), controller.in_force()), (1000.0, ActiveController::Own));
    }

    /// TCP's law has no routers that answer: quinn's losses move its window.
    #[test]
    fn tcp_is_no_limit_to_itself() {
        let mut controller = controller(DEFAULT_TCP);
        rounds(&mut controller, 10, 40, 100, 0);
        assert!(!controller.is_limited() && controller.window() < INITIAL * 100.0);
    }

    #[test]
    fn the_registry_says_which_protocols_a_connection_follows() {
        let names: Vec<&str> =
            registry::protocols().filter(|p| ControllerConfig::can_follow(*p)).map(|p| p.name()).collect();
        for name in [DEFAULT_TCP, DEFAULT_FALLBACK, DEFAULT_EXPLICIT, "vcp", "xtcp"] {
            assert!(names.contains(&registry::resolve(name).unwrap().protocol.name()), "{name} of {names:?}");
        }
        assert!(names.len() < registry::protocols().count() / 2, "{names:?}");
        for name in names {
            let mut controller = controller(name);
            rounds(&mut controller, 3, 0, 100, 0);
            assert!(controller.window() >= LEAST && controller.allowed().is_finite(), "{name}");
        }
    }
}

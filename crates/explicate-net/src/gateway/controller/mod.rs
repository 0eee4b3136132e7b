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
//! times beyond the least one, without the own port's queue. TCP's window limits that of the sender by the rule of [`guard`](explicate_core::guard),
//! on all that the peer acknowledges. What a datagram waits in routers on the way is not returned, so their queues count as delay. Where the own
//! port measures its line, it drains the queue of a change by itself, and its trains queue for a moment: only what stands longer is a sign.
//!
//! *Fall-back.* Without an own port, TCP's law moves the window while no router answers ([`answers`](super::answers)).

mod config;
mod quic;
mod signs;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use explicate_core::api::{Ack, AnyProtocol, AnySender, Loss, LossKind, Probe, SenderInit, Sent, measured_ms};
use explicate_core::guard::{
    ActiveController, Change, FEWEST, FullQueue, LeastRtt, Limit, Seen, TIMES_ARRIVED, UNPROVEN,
};
use explicate_core::params::Values;
use explicate_core::presets::DEFAULT_TCP;
use explicate_core::registry;
use explicate_core::rng::Rng;
use explicate_core::units::{Rate, Time};
use explicate_core::wire::{Congestion, Format, Packet, Transport};

pub use config::{ControllerConfig, is_of_udp};
pub use quic::SharedController;

use self::signs::Signs;
use super::answers::Answers;
use super::shim;
use crate::clock::Clock;

/// Acknowledgements wait for so many packets, or so long: narrow return paths carry them.
pub const PER_ACK: u32 = 16;
/// See there.
pub const ACK_DELAY: Time = Time::millis(20);
/// Least window, packets.
const LEAST: f64 = 4.0;
/// Most packets that TCP's law holds back until the next acknowledgement, at random, where there is no own port: as many as an
/// acknowledgement of TCP releases. Without that a short path, whose times never change, may drop the packets of one flow alone, again and
/// again (phase effects, Floyd and Jacobson 1992): CUBIC kept 0.74 of its share at 40 ms, 0.98 at 46 ms. At 40 ms, 1, 2 and 3 packets left it
/// 0.82, 0.98 and 1.06.
const HELD: f64 = 2.0;
/// Packets beyond the window for the first probe of a silent path, with QUIC's own, and for each of the next ones.
const FIRST_PROBE: f64 = 24.0;
const NEXT_PROBE: f64 = 4.0;
/// So many packets are acknowledged without an answer of a router before datagrams leave in batches.
const SILENT: u64 = 100;
/// So many round trips behind a loss others are expected.
const LOSES_FOR: u64 = 20;
/// A packet joins the own port's queue within this time, or when that has room; so many are known at most.
const JOINS: Time = Time::millis(1);
const MOST_LEFT: usize = 4096;
/// First window, packets (RFC 9002 section 7.2).
const INITIAL: f64 = 10.0;

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
    /// Delay has been a sign while the limit was on, and not losses alone.
    delayed: bool,
    /// Datagrams leave through a port of this process, which is a router.
    own_port: bool,
    /// Whether routers answer; `None` with an own port, which always does, and without a guard.
    answers: Option<Answers>,
    /// Most packets under way without an own port, by those that arrived in this round trip and the one before.
    most: f64,
    /// Packets acknowledged since a router last answered.
    unanswered: u64,
    /// The last loss that TCP's law was given. It recovers until a packet is acknowledged that was sent later.
    lost_at: Time,
    /// When the last one of the packets was sent that are acknowledged now.
    newest: Time,
    /// When something was last written after which the writer may wait for an answer.
    written: Time,
    /// Packets that TCP's window allows and that wait for the next acknowledgement.
    held: f64,
    rng: Rng,
    least_rtt: LeastRtt,
    round: Round,
    /// When packets joined the own port's queue, and when they left it, of those that are not acknowledged.
    left_port: VecDeque<(Time, Time)>,
    /// Bytes/s that arrived in the last round trip.
    arrives: f64,
    signs: Signs,
    /// Length of a full packet, bytes of IP.
    packet: f64,
    clock: Clock,
    srtt: Time,
    /// Bytes in flight after the last acknowledgements.
    in_flight: u64,
    /// Bytes of long datagrams that have left since.
    sent: u64,
    last_sent: Time,
    /// When losses were last reported.
    last_loss: Option<Time>,
    granted: bool,
    /// Packets beyond the window, until one of those that were sent since is acknowledged.
    probes: f64,
    /// When the first of them was allowed.
    probed: Time,
    acknowledged: u64,
    /// Packets that were acknowledged, and those of them while QUIC had more to send.
    arrived: [u64; 2],
    /// The peer's last sum of feedback, and what has not been passed to the sender, bytes/s.
    sum: u32,
    feedback: i64,
    /// What the peer returns to a protocol without a congestion header.
    returned: Transport,
}

/// A round trip: bytes there and back, whether some that are lost were sent behind TCP's last loss, and the least round-trip time without the own port's
/// queue.
struct Round {
    began: Time,
    acknowledged: u64,
    lost: u64,
    lost_anew: bool,
    received: u64,
    rtt: Time,
}

impl Round {
    fn new(began: Time) -> Round {
        Round { began, acknowledged: 0, lost: 0, lost_anew: false, received: 0, rtt: Time::NEVER }
    }
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
            sender: sender(protocol, &config.values_of(protocol), packet, rate),
            explicit: protocol.explicit(),
            headed: protocol.congestion_header(),
            tcp: sender(tcp, &config.values_of(tcp), packet, rate),
            limit: Limit::new(config.air_loss),
            guard: config.guard,
            delayed: false,
            own_port: true,
            answers: None,
            most: UNPROVEN,
            unanswered: 0,
            lost_at: Time::ZERO,
            newest: Time::ZERO,
            written: Time::ZERO,
            held: 0.0,
            rng: Rng::stream(clock.now().0 ^ u64::from(std::process::id()), "held"),
            least_rtt: LeastRtt::default(),
            round: Round::new(Time::ZERO),
            arrives: 0.0,
            signs: Signs::default(),
            left_port: VecDeque::new(),
            packet,
            clock,
            srtt: Time::ZERO,
            in_flight: 0,
            sent: 0,
            last_sent: Time::ZERO,
            last_loss: None,
            granted: false,
            probes: 0.0,
            probed: Time::ZERO,
            acknowledged: 0,
            arrived: [0; 2],
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
    /// What the window carries, bytes/s, without end before a round-trip time is known; where TCP's law limits it, what arrives.
    pub fn rate(&self) -> f64 {
        if self.is_limited() { self.arrives } else { self.window() * self.packet / self.loop_time().as_secs_f64() }
    }
    /// The round trip that an explicit sender and its routers reckon with. Without an own port it is no shorter than [`ACK_DELAY`]: acknowledgements
    /// of a few packets come no more often. A router whose control interval is shorter finds a burst in one, reduces, and in the next nothing to increase:
    /// over 0.2 ms XCP took 0.4 of a line of 20 Mbit/s.
    fn loop_time(&self) -> Time {
        if self.explicit && !self.own_port { self.srtt.max(ACK_DELAY) } else { self.srtt }
    }
    /// What may be in flight, packets: the window, which is for a round trip without delays of acknowledgements, and what waits for
    /// an acknowledgement at the peer, for [`PER_ACK`] packets or [`ACK_DELAY`]. An own port keeps what is too much; without one it would fill a
    /// short queue on the path for good, so that no more is added than arrives in [`ACK_DELAY`], and nothing where TCP's law moves the
    /// window. Where that is the limit beside an own port, what has arrived and waits for an acknowledgement is added, half of it in the mean: it has
    /// left the path, and TCP's acknowledgements, with which this end shares it, come at once.
    pub fn allowed(&self) -> f64 {
        let (window, many) = (self.window(), 2.0 * PER_ACK as f64);
        let (reckoned, full) = (self.loop_time(), self.srtt + ACK_DELAY);
        let delayed = match self.srtt {
            Time::ZERO => 0.0,
            _ => window * full.since(reckoned).as_secs_f64() / reckoned.as_secs_f64().max(1e-3),
        };
        let waits = if self.own_port {
            if self.is_limited() { delayed.min(PER_ACK as f64) / 2.0 } else { delayed + many }
        } else if self.explicit && self.in_force() == ActiveController::Own {
            delayed.min(many)
        } else {
            -self.held
        };
        let bounded = self.answers.as_ref().is_some_and(Answers::answering);
        let most = if bounded { self.most } else { f64::INFINITY };
        (window + waits + self.probes).min(most)
    }
    /// Lets a probe of a silent path pass a full window, in packets of so many bytes. What is under way may be more than the window, which
    /// losses have made smaller since.
    pub fn allow_probe(&mut self, mtu: u16) {
        let (under_way, allowed) = ((self.in_flight + self.sent) as f64 / mtu as f64, self.allowed() - self.probes);
        if self.probes == 0.0 {
            self.probed = self.clock.now();
        }
        let more = if self.probes == 0.0 { FIRST_PROBE } else { NEXT_PROBE };
        self.probes = (self.probes + more).max(under_way - allowed + NEXT_PROBE);
    }
    /// Something is written after which the writer may wait for an answer.
    pub fn writes(&mut self) {
        self.written = self.clock.now();
    }
    /// The time now, when something was last written, and when the newest packet was sent that is acknowledged.
    pub fn waits(&self) -> [Time; 3] {
        [self.clock.now(), self.written, self.newest]
    }
    /// Least round-trip time of the path, or the smoothed one if that is less.
    pub fn least_round_trip(&self) -> Time {
        self.least_rtt.get().min(self.srtt)
    }
    /// So many bytes have left.
    pub fn left(&mut self, bytes: u64) {
        // Acknowledgements are not under way.
        if bytes >= shim::SHORT as u64 {
            self.sent += bytes;
        }
    }
    /// TCP's law limits the window.
    pub fn is_limited(&self) -> bool {
        self.limit.is_on()
    }
    /// The limit is one of a queue, and not of losses alone.
    pub fn is_limited_by_delay(&self) -> bool {
        self.is_limited() && self.delayed
    }
    /// Packets that were acknowledged, and those of them while QUIC had more to send: the window or the line was the limit.
    pub fn arrived(&self) -> [u64; 2] {
        self.arrived
    }
    /// A packet that joined the own port's queue then leaves it now.
    pub fn leaves_port(&mut self, joined: Time, now: Time) {
        if self.left_port.len() == MOST_LEFT {
            self.left_port.pop_front();
        }
        self.left_port.push_back((joined, now));
    }
    /// The rates of the own port and the peer's, bytes/s.
    pub fn set_ports(&mut self, rates: [f64; 2]) {
        self.signs.set_ports(rates);
    }
    /// A mark of a train has come back to the own port, which sets its rate by them; a train queues for so long by itself.
    pub fn measures(&mut self, train: Time) {
        self.signs.measures(self.clock.now(), train);
    }
    /// So many bytes came from the peer.
    pub fn receives(&mut self, bytes: u64) {
        self.round.received += bytes;
    }
    /// Smoothed round-trip time.
    pub fn round_trip(&self) -> Time {
        self.srtt
    }
    /// Packets were lost in the last round trips.
    pub fn loses(&self) -> bool {
        self.last_loss.is_some_and(|at| self.clock.now().since(at).0 <= LOSES_FOR * self.srtt.0)
    }
    /// Its variables, and those of the sender.
    pub fn probe(&self, put: Probe<'_>) {
        put("srtt_ms", measured_ms(self.srtt));
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
            self.srtt = srtt;
            self.sender.on_start(now, self.loop_time());
            self.tcp.on_start(now, srtt);
        }
        self.srtt = srtt;
        // One of what was sent before the silence does not make what came after it lost: the window stays as full as it is.
        if now.0.saturating_sub(rtt.0) >= self.probed.0 {
            self.probes = 0.0;
        }
        self.least_rtt.advance(now);
        let sent = Time(now.0.saturating_sub(rtt.0));
        if sent >= self.newest {
            self.newest = sent;
            let path = rtt.since(self.in_port(sent));
            self.least_rtt.take(path);
            self.round.rtt = self.round.rtt.min(path);
        }
        self.acknowledged += bytes;
        self.round.acknowledged += bytes;
    }

    /// How long a packet was in the own port, from when QUIC made it. None is made before the one before has joined the queue.
    fn in_port(&mut self, sent: Time) -> Time {
        while self.left_port.pop_front_if(|(joined, _)| *joined + JOINS < sent).is_some() {}
        self.left_port.front().map_or(Time::ZERO, |(_, left)| left.since(sent))
    }

    fn on_end_acks(&mut self, in_flight: u64, app_limited: bool) {
        let now = self.clock.now();
        (self.in_flight, self.sent) = (in_flight, 0);
        self.held = HELD * self.rng.uniform();
        let mut header = Congestion::new(Format::MINIMAL);
        let feedback = self.feedback.clamp(i32::MIN as i64, i32::MAX as i64);
        self.feedback -= feedback;
        header.set_reverse_feedback(feedback as i32);
        let newly_acked = (self.acknowledged as f64 / self.packet) as u32;
        self.acknowledged -= (newly_acked as f64 * self.packet) as u64;
        self.arrived[0] += newly_acked as u64;
        self.arrived[1] += if app_limited { 0 } else { newly_acked as u64 };
        let mut ack = Ack::new(now, newly_acked, self.srtt, &header);
        (ack.app_limited, ack.in_flight) = (app_limited, (in_flight as f64 / self.packet) as u32);
        // Losses of the air are no reason for an explicit sender to wait.
        let recovering = self.lost_at > Time::ZERO && self.newest <= self.lost_at;
        ack.recovering = recovering && !self.explicit;
        self.follow_answers(now);
        if self.is_unanswered() {
            ack.recovering = recovering;
            self.tcp.on_ack(&ack);
            self.sender.resume(now, self.window(), self.loop_time());
            self.round = Round::new(now);
            self.unanswered += newly_acked as u64;
            return;
        }
        self.unanswered = 0;
        ack.srtt = self.loop_time();
        if self.explicit && !self.headed {
            self.answer_each(&ack);
        } else {
            self.sender.on_ack(&ack);
        }
        if self.is_limited() {
            (ack.srtt, ack.recovering) = (self.srtt, recovering);
            self.tcp.on_ack(&ack);
        }
        self.end_round(now);
        self.bound_start(now);
    }

    /// Routers much wider than what follows them grant windows that are far too large before a loss can be seen.
    fn bound_start(&mut self, now: Time) {
        self.most = self.most.max(TIMES_ARRIVED * self.round.acknowledged as f64 / self.packet);
        if self.answers.is_some() && self.sender.allowance().cwnd > self.most {
            self.sender.resume(now, self.most, self.loop_time());
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
        let lost = round.lost as f64 / self.packet;
        let delay = round.rtt.since(self.least_rtt.get());
        let most_delay = self.signs.most_delay(now, &self.least_rtt, delay, round.received as f64 / span);
        let queue = FullQueue::Unseen;
        let seen = Seen { sent, lost, unexplained: lost, delay, most_delay, queue };
        self.signs.bear(now, &self.limit, &seen);
        if self.is_limited() && round.lost_anew && self.signs.exceeds() {
            self.lost_at = now;
            self.tcp.on_loss(&self.loss(LossKind::Duplicates));
        }
        self.arrives = round.acknowledged as f64 / span;
        let change = if self.guard { self.limit.take(now, &seen) } else { None };
        self.delayed = delay > most_delay || self.delayed && change != Some(Change::Begins);
        if change == Some(Change::Begins) {
            let arrives = sent - lost;
            self.tcp.resume(now, (arrives.min(self.sender.allowance().cwnd) / 2.0).max(LEAST), self.srtt);
        }
    }

    fn loss(&self, kind: LossKind) -> Loss {
        Loss::new(self.clock.now(), kind, (self.in_flight as f64 / self.packet) as u32, self.srtt)
    }
    /// Bytes are lost; the last one of their packets was sent `ago` before.
    fn on_loss(&mut self, bytes: u64, ago: Time, persistent: bool) {
        let loss = self.loss(if persistent { LossKind::Timeout } else { LossKind::Duplicates });
        self.round.lost += bytes;
        self.round.lost_anew |= loss.now.0.saturating_sub(ago.0) > self.lost_at.0;
        self.last_loss = Some(loss.now);
        // quinn reports losses as it finds them; TCP's law takes those of a window for one (RFC 9002 section 7.3.2).
        let once = persistent || loss.now.0.saturating_sub(ago.0) > self.lost_at.0;
        let counts = if self.explicit { self.is_limited() && persistent || self.is_unanswered() && once } else { once };
        if self.explicit || counts {
            self.sender.on_loss(&loss);
        }
        if counts {
            self.lost_at = loss.now;
            self.tcp.on_loss(&loss);
        }
    }
}

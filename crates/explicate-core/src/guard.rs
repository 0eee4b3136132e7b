//! An explicit sender behaves as TCP until a router answers it.
//!
//! Senders of explicit protocols rely on routers to slow them down. Many paths have no such router: hops may not know the
//! protocol, or may tag, tunnel or strip its header. On those paths this module keeps the sender to TCP's window. It has three
//! parts: [`Marking`] wraps a router's controller and sets a mark in each packet that the controller answers; `Echoing` wraps
//! the receiver, returns marks, and ignores feedback in unmarked packets; `Guard` wraps the sender and chooses which law
//! limits the window.
//!
//! *Fall-back.* The window is TCP's until the first marked acknowledgement arrives. It becomes TCP's again when an unmarked
//! acknowledgement arrives more than one round trip after the last marked one: every packet of that round trip then passed
//! without an answer. A shorter time would misjudge paths where some packets take another route. TCP continues from the
//! present window, as far as the flow used it, and skips slow start. Packets leave as the window lets them, without the protocol's
//! pace unless the application's rate is less, and a flow that repairs nothing stands still for a round trip after a loss: else either would take more than TCP does.
//!
//! *Limit.* A path may have routers that answer and a bottleneck that does not. Each mark carries the time that the packet
//! waited in answering routers; the rest of the delay is the other hops'. The smaller of the two windows applies once one of
//! these conditions holds:
//!
//! - in three successive round trips, more than a fifth of the packets is lost, or every round-trip time exceeds the least one
//!   by more than max(25 ms, a quarter of it), in each case without the answering routers' own queues;
//! - the sum of losses beyond `air_loss` reaches 30 packets. One round trip adds at most 12 to the sum, and the sum never falls
//!   below zero. With independent losses at three quarters of `air_loss` a round trip ends with 30 at a probability of
//!   exp(-16.5) (Lundberg's bound: exp(0.55) - 1 = 0.55 / 0.75), which is once in five days of 2000 round trips a minute; losses
//!   at `air_loss` itself reach it within minutes. A single outage of the air is one round trip and does not reach it;
//! - packets behind lost ones waited longer than others where no router answers: a short queue is full. Such a bottleneck, hardly
//!   narrower than the routers before it, shows less delay than the first condition has and fewer losses than the second. Losses
//!   of the air come at any delay (`full_queue.rs` has the test and its error rate). Once half of the evidence is there, the
//!   window applies until later losses contradict it. Where losses come at delays that are all alike, nothing can be compared:
//!   the sender then sends less for some round trips, to see whether delays follow (`dip.rs`).
//!
//! For the first two, round trips in which a router reports overload or its own drops are not counted. Where routers report
//! neither, marks show drops: the first mark behind packets that its router dropped says no wait, and these packets are not
//! counted in the sum.
//!
//! The limit starts at half of what arrives in a round trip. It ends after 30 s without a sum of 10 and without
//! half of the delay above (a TCP flow in the same queue causes that much). A short queue hides a neighbour, so the limit may
//! end too early; each return of the limit doubles the 30 s, up to an hour, which bounds what a neighbour loses.
//!
//! *Start.* Until a sign comes, at most 8 times as many packets are under way as arrived in a round trip, or 1024, since
//! wide routers before a narrow port grant windows that are hundreds of times too large within one round trip.
//!
//! *What TCP's law counts as a loss.* Losses are found from echoed packet numbers and the receiver's count of arrivals. Lost
//! acknowledgements and the protocol's own recovery, which may report one loss an episode or none, do not distort them. While
//! TCP's window applies and the recovery reported no loss for 1.5 round trips, TCP's law reacts once to each round trip
//! with a loss in fall-back, and to each with more than `air_loss` under the limit; to each with a loss if a short queue is full.
//!
//! Deviations: none; there is no source.

use alloc::boxed::Box;

use self::dip::Dips;
use self::watch::{Round, Watch};
use crate::agent::Address;
pub use crate::api::object::ActiveController;
use crate::api::object::{Interest, SenderObject};
use crate::api::{Ack, Allowance, AnySender, Loss, LossKind, Probe, Sent};
use crate::units::{Rate, Time};
use crate::wire::{Congestion, Packet};

mod dip;
mod full_queue;
mod limit;
mod marks;
mod watch;

pub use self::limit::{AIR_LOSS, Change, FEWEST, FullQueue, LeastRtt, Limit, Seen};
pub(crate) use self::marks::Echoing;
pub use self::marks::Marking;

/// Most packets under way before more are known to arrive: 20 Mbit/s over a satellite have 1000.
pub const UNPROVEN: f64 = 1024.0;
/// Most packets under way, in those that arrived in a round trip: three round trips of losses are a sign, and TCP would double its
/// window as often.
pub const TIMES_ARRIVED: f64 = 8.0;

/// A sender that follows its own law while routers answer, and TCP's else.
pub(crate) struct Guard {
    own: Box<AnySender>,
    tcp: Box<AnySender>,
    /// Length of a full packet, bytes.
    packet: f64,
    /// Smoothed round-trip time of the last acknowledgement.
    srtt: Time,
    /// Routers answer.
    answered: bool,
    /// Whether TCP's window is a limit.
    limit: Limit,
    /// The last marked acknowledgement.
    marked_at: Time,
    watch: Watch,
    /// Whether less is sent, to see whether delays follow.
    dips: Dips,
    /// Most packets under way, by those that arrived in this round trip and the one before.
    most: f64,
    /// When TCP's law was last given a loss.
    tcp_lost_at: Time,
    /// Lost packets are sent again; and else until when TCP would repair.
    reliable: bool,
    repairs_until: Time,
    /// The recovery reports losses; one that repairs nothing does not.
    reports: bool,
}

impl Guard {
    /// Around the sender of a protocol, `tcp` beside it, in a flow that repairs losses or not; with the length of a full packet, bytes.
    pub(crate) fn new(own: Box<AnySender>, tcp: Box<AnySender>, reliable: bool, packet: f64, air_loss: f64) -> Guard {
        Guard {
            own,
            tcp,
            packet,
            srtt: Time::ZERO,
            answered: false,
            limit: Limit::new(air_loss),
            marked_at: Time::ZERO,
            watch: Watch::default(),
            dips: Dips::default(),
            most: UNPROVEN,
            tcp_lost_at: Time::ZERO,
            reliable,
            repairs_until: Time::ZERO,
            reports: false,
        }
    }

    /// The window that the protocol's law comes to, segments, whether by window or pace.
    fn own_window(&self, srtt: Time) -> f64 {
        let Allowance { cwnd, pacing } = self.own.allowance();
        let by_pace = pacing.map(|rate| rate.bytes_per_sec() * srtt.as_secs_f64() / self.packet);
        by_pace.map_or(cwnd, |window| window.min(cwnd))
    }
    /// TCP's window, without a pace unless the application's rate is less: a paced flow loses less than TCP, which sends in bursts,
    /// and took a quarter more than its share from the kernel's CUBIC.
    fn as_tcp(&self, own: Allowance) -> Allowance {
        let cwnd = self.tcp_window();
        // The protocol's law goes on from TCP's window: less by more than rounding is a limit of its own.
        let limited = self.own_window(self.srtt) < 0.99 * cwnd;
        Allowance { cwnd, pacing: own.pacing.filter(|_| limited) }
    }
    /// What the protocol's law allows, less while a dip lasts; one packet at least.
    fn dipped(&self, own: Allowance) -> Allowance {
        let share = self.dips.share(self.srtt);
        let pacing = own.pacing.map(|rate| Rate::from_bytes_per_sec(share * rate.bytes_per_sec()));
        Allowance { cwnd: (share * own.cwnd).max(own.cwnd.min(1.0)), pacing }
    }
    fn tcp_window(&self) -> f64 {
        self.tcp.allowance().cwnd
    }
    /// TCP's law moves the window, or limits it.
    fn tcp_counts(&self) -> bool {
        !self.answered || self.limit.is_on()
    }

    /// No acknowledgement has come: whether routers answer is not known, and both laws keep their first windows.
    fn nothing_came(&self) -> bool {
        self.watch.echoed.is_none()
    }

    fn on_answer(&mut self, ack: &Ack<'_>) {
        self.marked_at = ack.now;
        if !self.answered {
            self.answered = true;
            self.limit.forget();
            self.watch.full_queue.forget();
        }
        self.own.on_ack(ack);
        if self.limit.is_on() {
            // A window that the routers keep smaller is not TCP's to grow by.
            let unused = self.own_window(ack.srtt) < self.tcp_window();
            self.tcp_acks(&Ack { app_limited: ack.app_limited || unused, ..*ack });
        }
    }

    fn on_silence(&mut self, ack: &Ack<'_>) {
        if self.answered && ack.now.since(self.marked_at) > ack.srtt {
            if !self.limit.is_on() {
                let used = (ack.in_flight + ack.newly_acked) as f64;
                self.tcp.resume(ack.now, self.own_window(ack.srtt).min(used), ack.srtt);
            }
            self.answered = false;
        }
        if self.tcp_counts() {
            self.tcp_acks(ack);
        }
    }

    /// TCP's window does not grow for the round trip that a repair takes. A flow that repairs nothing has none of its own.
    fn tcp_acks(&mut self, ack: &Ack<'_>) {
        self.tcp.on_ack(&Ack { recovering: ack.recovering || ack.now < self.repairs_until, ..*ack });
    }
    fn tcp_loses(&mut self, loss: &Loss) {
        self.tcp.on_loss(loss);
        self.tcp_lost_at = loss.now;
        if !self.reliable && loss.kind == LossKind::Duplicates {
            self.repairs_until = loss.now + loss.srtt;
        }
    }

    /// Looks at a round trip that has ended.
    fn judge(&mut self, ack: &Ack<'_>, round: &Round) {
        let arrives = round.arrived * ack.srtt.as_secs_f64() / ack.now.since(round.began).as_secs_f64();
        self.most = UNPROVEN.max(TIMES_ARRIVED * arrives);
        let seen = self.watch.seen(round);
        // Without an answering router, losses of the air are unknown, so TCP's law counts every loss.
        let borne = if self.answered { self.limit.borne(&seen) } else { 0.0 };
        // A flow that repairs nothing never stands still for its holes as TCP does: it halves for each round trip with some.
        let reported = self.reports && 2 * ack.now.since(self.tcp_lost_at).0 <= 3 * ack.srtt.0;
        if self.tcp_counts() && round.lost() > borne && !reported {
            let Ack { now, in_flight, srtt, .. } = *ack;
            let (kind, repeated, marked) = (LossKind::Duplicates, false, false);
            self.tcp_loses(&Loss { now, kind, in_flight, srtt, repeated, marked });
        }
        if !self.answered || round.explained {
            return;
        }
        if !self.limit.is_on() {
            let queue = &self.watch.full_queue;
            self.dips.next_round(ack.now, seen.unexplained > 0.0, queue.is_alike(), queue.sum);
        }
        match self.limit.take(ack.now, &seen) {
            Some(Change::Begins) => {
                self.tcp.resume(ack.now, arrives.min(self.own_window(ack.srtt)) / 2.0, ack.srtt);
                self.tcp_lost_at = ack.now;
            }
            Some(Change::Ends) => self.watch.full_queue.forget(),
            None => (),
        }
    }

    /// The protocol's law goes on from the window that counts, which is also what packets carry.
    fn keep_in_step(&mut self, now: Time, srtt: Time) {
        let window = self.tcp_window();
        if !self.answered && !self.nothing_came() || self.limit.is_on() && self.own_window(srtt) > window {
            self.own.resume(now, window, srtt);
        } else if self.own_window(srtt) > self.most {
            self.own.resume(now, self.most, srtt);
        }
    }
}

impl SenderObject for Guard {
    fn interest(&self) -> Interest {
        let (own, tcp) = (self.own.interest(), self.tcp.interest());
        // A law that takes `on_send` may write into packets: TCP's is given none.
        Interest { writes: own.writes, timer: own.timer | tcp.timer }
    }
    fn allowance(&self) -> Allowance {
        let own = self.own.allowance();
        match self.active_controller() {
            ActiveController::Own => self.dipped(own),
            ActiveController::Limited => Allowance { cwnd: own.cwnd.min(self.tcp_window()), ..own },
            ActiveController::Fallback if self.nothing_came() => {
                Allowance { cwnd: own.cwnd.min(self.tcp_window()), ..own }
            }
            ActiveController::Fallback => self.as_tcp(own),
        }
    }
    fn on_start(&mut self, now: Time, rtt: Time) {
        self.own.on_start(now, rtt);
        self.tcp.on_start(now, rtt);
    }
    fn on_attach(&mut self, own: Address) {
        self.own.on_attach(own);
    }
    fn on_send(&mut self, packet: &mut Packet, sent: &Sent) {
        self.own.on_send(packet, sent);
    }
    fn state(&mut self, header: &mut Congestion) {
        self.own.state(header);
    }
    fn on_ack(&mut self, ack: &Ack<'_>) {
        let mark = if ack.header.is_present() { ack.header.mark() } else { ack.transport.mark() };
        let round = self.watch.take(ack, mark);
        if mark.is_set() {
            self.on_answer(ack);
        } else {
            self.on_silence(ack);
        }
        if let Some(round) = round {
            self.judge(ack, &round);
        }
        self.srtt = ack.srtt;
        self.most = self.most.max(TIMES_ARRIVED * self.watch.round.arrived);
        self.keep_in_step(ack.now, ack.srtt);
    }
    fn on_loss(&mut self, loss: &Loss) {
        if self.answered || self.nothing_came() {
            self.own.on_loss(loss);
        }
        if self.tcp_counts() {
            self.tcp_loses(loss);
        }
        self.reports |= loss.kind == LossKind::Duplicates;
        self.keep_in_step(loss.now, loss.srtt);
    }
    fn on_timer(&mut self, now: Time) {
        if self.own.next_timer() <= now {
            self.own.on_timer(now);
        }
        if self.tcp.next_timer() <= now {
            self.tcp.on_timer(now);
        }
    }
    fn next_timer(&self) -> Time {
        self.own.next_timer().min(self.tcp.next_timer())
    }
    fn resume(&mut self, _now: Time, _window: f64, _srtt: Time) {}
    fn active_controller(&self) -> ActiveController {
        match (self.answered, self.limit.is_on()) {
            (false, _) => ActiveController::Fallback,
            (true, true) => ActiveController::Limited,
            (true, false) => ActiveController::Own,
        }
    }
    fn probe(&self, put: Probe<'_>) {
        self.own.probe(put);
        put("law", self.active_controller() as u8 as f64);
        put("unanswered_delay_s", self.watch.round.known_delay().as_secs_f64());
        put("surplus_losses", self.limit.surplus());
        put("losses_with_delay", self.watch.full_queue.sum);
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;
    use crate::api::object::RouterObject;
    use crate::api::{AnyProtocol, AnyRouter, PortView, Receiver, RouterInit, SenderInit};
    use crate::params::Values;
    use crate::presets::DEFAULT_FALLBACK;
    use crate::registry::{self, PROTOCOLS};
    use crate::rng::Rng;
    use crate::testing::{ack, loss, sent};
    use crate::units::Rate;
    use crate::wire::flag;
    use crate::wire::{Format, Transport};

    fn explicit() -> impl Iterator<Item = &'static AnyProtocol> {
        PROTOCOLS.iter().copied().filter(|p| p.explicit())
    }
    fn sender(protocol: &AnyProtocol) -> Box<AnySender> {
        let values = Values::default();
        let init = SenderInit { values: &values, packet: 1000.0, initial_window: 3.0, interface: Rate::mbps(100) };
        let mut sender = protocol.sender(&init);
        sender.on_start(Time::ZERO, Time::millis(100));
        sender
    }
    fn guarded(protocol: &AnyProtocol) -> Guard {
        let fallback = registry::resolve(DEFAULT_FALLBACK).unwrap().protocol;
        Guard::new(sender(protocol), sender(fallback), true, 1000.0, 0.02)
    }
    /// A data packet as this protocol sends it.
    fn data(protocol: &AnyProtocol) -> Packet {
        let mut packet = Packet { ip_len: 1000, ..Packet::EMPTY };
        packet.transport.set_payload(900);
        if protocol.congestion_header() {
            packet.congestion = Congestion::new(Format::STANDARD);
        }
        let sender = &mut *sender(protocol);
        sender.state(&mut packet.congestion);
        sender.on_send(&mut packet, &sent(Time::ZERO, 0));
        packet
    }
    fn router(protocol: &'static AnyProtocol) -> Box<AnyRouter> {
        let values = Values::default();
        let rng = Rng::stream(1, "test");
        let init = RouterInit { values: &values, capacity: 1e6, delay: Time::ZERO, rng };
        registry::controller(protocol).unwrap().router(&init).unwrap()
    }

    #[test]
    fn every_explicit_protocol_and_every_fallback_goes_on_from_a_window() {
        let fallbacks = crate::presets::PRESETS.iter().map(|p| registry::resolve(p.fallback).unwrap().protocol);
        for protocol in explicit().chain(fallbacks) {
            let mut guard = guarded(protocol);
            guard.own.resume(Time::secs(1), 20.0, Time::millis(100));
            let window = guard.own_window(Time::millis(100));
            assert!((window - 20.0).abs() < 1e-3, "{}: {window}", protocol.name());
        }
    }

    /// After a timeout the window is one segment: a share of it would let nothing leave, ever.
    #[test]
    fn a_dip_leaves_one_segment() {
        let mut guard = guarded(registry::protocol("xcp").unwrap());
        (guard.answered, guard.srtt) = (true, Time::millis(100));
        (0..4).for_each(|_| guard.dips.next_round(Time::secs(1), true, true, 0.0));
        for (window, dipped) in [(100.0, 92.0), (1.0, 1.0)] {
            guard.own.resume(Time::secs(1), window, Time::millis(100));
            assert!((guard.allowance().cwnd - dipped).abs() < 1e-9, "{window}: {}", guard.allowance().cwnd);
        }
    }

    /// 40 kB wait before 1 MB/s: 40 ms, which marks of either kind give to half a unit.
    #[test]
    fn controllers_mark_what_they_speak_to_and_nothing_else() {
        let view = PortView { capacity: 1e6, backlog_bytes: 39_000, backlog_packets: 39, busy: true };
        for protocol in explicit() {
            let mut marking = Marking::new(router(protocol));
            let mut packet = data(protocol);
            assert!(!packet.mark().is_set(), "{}: a sender marks nothing", protocol.name());
            marking.on_arrival(Time::ZERO, &mut packet, &view);
            marking.on_departure(Time::ZERO, &mut packet, &view);
            let waited = packet.mark().waited().unwrap();
            assert!(packet.mark().is_set() && waited.since(Time::millis(40)) <= Time::millis(8), "{waited:?}");
            for other in explicit().filter(|other| other.congestion_header() != protocol.congestion_header()) {
                let mut foreign = data(other);
                marking.on_arrival(Time::ZERO, &mut foreign, &view);
                assert!(!foreign.mark().is_set(), "{} speaks to no {}", protocol.name(), other.name());
            }
            let mut answer = Packet { congestion: Congestion::new(Format::MINIMAL), ..Packet::EMPTY };
            answer.transport.set_flags(flag::ACK);
            marking.on_arrival(Time::ZERO, &mut answer, &view);
            assert!(!answer.mark().is_set(), "{}: an acknowledgement", protocol.name());
        }
    }

    #[test]
    fn an_answer_without_a_mark_is_passed_over() {
        let xcp = registry::protocol("xcp").unwrap();
        let mut receiver = Echoing::new(xcp.receiver());
        receiver.on_open(true);
        let mut returns = |marked: bool| {
            let mut packet = data(xcp);
            packet.congestion.set_delta_throughput(700);
            if marked {
                packet.set_mark(packet.mark().after(Time::millis(8)));
            }
            receiver.on_data(Time::ZERO, &packet);
            let mut ack = Packet { congestion: Congestion::new(Format::MINIMAL), ..Packet::EMPTY };
            receiver.on_ack(Time::ZERO, &mut ack);
            (
                ack.congestion.reverse_feedback(),
                ack.mark().waited().filter(|_| ack.mark().is_set()),
                ack.transport.arrived(),
            )
        };
        assert_eq!(
            [returns(false), returns(true), returns(false)],
            [(0, None, 1), (700, Some(Time::millis(8)), 2), (0, None, 3)]
        );
        let mut receiver = Echoing::new(xcp.receiver());
        receiver.on_open(false);
        let mut packet = data(xcp);
        packet.congestion.set_delta_throughput(700);
        receiver.on_data(Time::ZERO, &packet);
        let mut ack = Packet { congestion: Congestion::new(Format::MINIMAL), ..Packet::EMPTY };
        receiver.on_ack(Time::ZERO, &mut ack);
        assert_eq!(ack.congestion.reverse_feedback(), 700, "the sender wants all");
    }

    /// Acknowledgements at `ms`, with the packet's number, how many have arrived, and whether routers answered.
    fn receive(guard: &mut Guard, ms: u64, number: u32, arrived: u16, marked: bool) {
        let mut header = Congestion::new(Format::MINIMAL);
        if marked {
            header.set_mark(header.mark().after(Time::ZERO));
            header.set_reverse_feedback(30_000); // three packets more in 100 ms
        }
        let mut transport = Transport::EMPTY;
        transport.set_packet_number(number);
        transport.set_arrived(arrived);
        guard.on_ack(&Ack { transport: &transport, in_flight: 9, ..ack(Time::millis(ms), &header) });
    }

    #[test]
    fn routers_come_and_go() {
        let mut guard = guarded(registry::protocol("xcp").unwrap());
        assert_eq!(guard.active_controller(), ActiveController::Fallback);
        receive(&mut guard, 100, 1, 1, false);
        assert_eq!(
            (guard.active_controller(), guard.allowance().cwnd),
            (ActiveController::Fallback, 4.0),
            "slow start"
        );
        assert_eq!(guard.own_window(Time::millis(100)), 4.0, "headers say what is so");
        receive(&mut guard, 110, 2, 2, true);
        assert_eq!((guard.active_controller(), guard.allowance().cwnd), (ActiveController::Own, 7.0));
        receive(&mut guard, 200, 3, 3, false);
        assert_eq!(
            (guard.active_controller(), guard.allowance().cwnd),
            (ActiveController::Own, 7.0),
            "not a round trip yet"
        );
        receive(&mut guard, 211, 4, 4, false);
        assert_eq!(guard.active_controller(), ActiveController::Fallback);
        assert_eq!(guard.allowance().cwnd, 7.0 + 1.0 / 7.0, "congestion avoidance from the window that was used");
        guard.on_loss(&loss(Time::millis(220), LossKind::Duplicates, 6));
        assert_eq!(guard.allowance().cwnd, 3.0, "losses count");
    }

    /// Packets of 1000 B: 4 Mbit/s, the rate of the source, are 50 of them in 100 ms.
    #[test]
    fn a_fallback_is_paced_by_the_application_only() {
        let mut guard = guarded(registry::resolve("video").unwrap().protocol);
        receive(&mut guard, 100, 1, 1, false);
        assert_eq!(guard.allowance(), Allowance { cwnd: 4.0, pacing: None });
        (2..60).for_each(|i| receive(&mut guard, 100 + i as u64, i, i as u16, false));
        assert_eq!(guard.allowance(), Allowance { cwnd: 62.0, pacing: Some(Rate::mbps(4)) });
    }

    /// A loss at 110 ms: TCP would repair it until 210 ms.
    #[test]
    fn a_flow_that_repairs_nothing_stands_still_as_long_as_a_repair_takes() {
        for (reliable, window) in [(true, 5.0), (false, 4.0)] {
            let mut guard = guarded(registry::resolve("video").unwrap().protocol);
            guard.reliable = reliable;
            receive(&mut guard, 100, 1, 1, false);
            guard.on_loss(&loss(Time::millis(110), LossKind::Duplicates, 8));
            (0..8).for_each(|i| receive(&mut guard, 120 + 10 * i, 3 + i as u32, 2 + i as u16, false));
            assert!((guard.allowance().cwnd - window).abs() < 0.8, "{reliable}: {}", guard.allowance().cwnd);
            assert_eq!(guard.allowance().cwnd == 4.0, !reliable, "half of 8");
            receive(&mut guard, 211, 11, 10, false);
            assert!(guard.allowance().cwnd > 4.2, "{reliable}: {}", guard.allowance().cwnd);
        }
    }

    /// Routers grant 10^4 packets more with each acknowledgement.
    #[test]
    fn wide_routers_grant_no_more_than_arrives_eight_times() {
        let mut guard = guarded(registry::protocol("xcp").unwrap());
        let mut header = Congestion::new(Format::MINIMAL);
        header.set_mark(header.mark().after(Time::ZERO));
        header.set_reverse_feedback(100_000_000);
        let mut windows = Vec::new();
        for number in 0..1200u16 {
            let ms = 100 + u64::from(number) / 4; // 400 in a round trip of 100 ms
            let mut transport = Transport::EMPTY;
            transport.set_packet_number(number.into());
            transport.set_arrived(number);
            guard.on_ack(&Ack { transport: &transport, ..ack(Time::millis(ms), &header) });
            windows.push(guard.allowance().cwnd.round());
        }
        assert_eq!((windows[10], windows[120], windows[300]), (1024.0, 1024.0, 2400.0), "in the first round trip");
        assert!((3100.0..3300.0).contains(&windows[1199]), "{}", windows[1199]);
    }

    /// Four of twelve packets a round trip are lost: three round trips make a sign, and half of what arrives is the limit.
    #[test]
    fn losses_beside_the_routers_make_tcp_the_limit() {
        let mut guard = guarded(registry::protocol("p_xcp").unwrap());
        let (mut number, mut arrived) = (0, 0);
        let mut active = [ActiveController::Own; 6];
        for (round, controller) in active.iter_mut().enumerate() {
            for i in 0..8 {
                number += if i == 0 { 5 } else { 1 };
                arrived += 1;
                receive(&mut guard, 100 * (round as u64 + 1) + 12 * i, number, arrived, true);
            }
            *controller = guard.active_controller();
        }
        assert_eq!(
            active.map(|controller| controller == ActiveController::Limited),
            [false, false, false, true, true, true]
        );
        assert!(guard.allowance().cwnd < 10.0, "{}", guard.allowance().cwnd);
        assert_eq!(guard.allowance().cwnd, guard.own_window(Time::millis(100)), "headers say what is so");
    }
}

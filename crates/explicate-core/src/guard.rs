//! An explicit sender behaves as TCP until a router answers it.
//!
//! Senders of explicit protocols rely on routers to slow them down. Many paths have no such router: hops may not know the
//! protocol, or may tag, tunnel or strip its header. On those paths this module keeps the sender to TCP's window. It has three
//! parts: [`Marking`] wraps a router's controller and sets a mark in each packet that the controller answers; `Echoing` wraps
//! the receiver, returns marks, and ignores feedback in unmarked packets; `Guard` wraps the sender and chooses which law
//! limits the window.
//!
//! *Fall-back.* The window is TCP's, by the fallback of the flow in its own stack, until the first marked
//! acknowledgement arrives. It becomes TCP's again when an unmarked acknowledgement arrives more than one round trip
//! after the last marked one: every packet of that round trip then passed without an answer. A shorter time would
//! misjudge paths where some packets take another route. TCP continues from the present window, as far as the flow used
//! it, and skips slow start. Packets leave as the window lets them, without the protocol's pace unless the
//! application's rate is less, and a flow that repairs nothing stands still for a round trip after a loss: else either
//! would take more than TCP does.
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
use crate::api::{Ack, Allowance, AnySender, Loss, LossKind, Probe, Sent, Undo};
use crate::units::{Rate, Time};
use crate::wire::{Congestion, Packet};

mod dip;
mod full_queue;
mod limit;
mod marks;
#[cfg(test)]
mod tests;
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
            Some(Change::Lapses) | None => (),
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
    fn on_idle(&mut self, now: Time, idle: Time, timeout: Time) {
        self.own.on_idle(now, idle, timeout);
        self.tcp.on_idle(now, idle, timeout);
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
    fn threshold(&self) -> f64 {
        if self.tcp_counts() { self.tcp.threshold() } else { self.own.threshold() }
    }
    fn on_undo(&mut self, undo: &Undo) {
        if self.answered || self.nothing_came() {
            self.own.on_undo(undo);
        }
        if self.tcp_counts() {
            self.tcp.on_undo(undo);
        }
        self.keep_in_step(undo.now, undo.srtt);
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

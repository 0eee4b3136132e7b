//! The general path of a port: classes with queues of their own before one line. The packet that goes next is known only
//! when the line falls free, so a driver has to poll.
//!
//! Classes take turns by deficit round robin (Shreedhar and Varghese, SIGCOMM 1995), in the form of RFC 8290 section 4.2:
//! a class sends while its credit is positive and may overdraw it by a packet, which the next rounds make up for. A queue
//! need not tell the length of its next packet then, and may still drop it. One class alone takes every turn.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::balance::Balance;
use super::division::Division;
use super::{Arrival, At, Class, Gate, Note, Port, Store, mark_or_drop};
use crate::api::{PortView, Probe};
use crate::qdisc::common::Fifo;
use crate::qdisc::{ActiveQueue, Discipline, Gone, Queued, Verdict};
use crate::units::Time;
use crate::wire::{Ecn, Packet};

/// Bytes that the class of least weight is credited in a round.
const QUANTUM: f64 = 1500.0;

/// A class and what waits in it.
pub(super) struct Lane {
    pub(super) gate: Gate,
    queue: Box<dyn ActiveQueue>,
    /// Bytes and packets that wait in it.
    bytes: u64,
    packets: u32,
    /// A discipline decides what waits.
    limited: bool,
    /// Its part of the line, and of the capacity that its controller and discipline see.
    share: f64,
    pub(super) counts_on: f64,
    /// Bytes credited per round.
    quantum: i64,
    /// Bytes that it may send before the next round.
    credit: i64,
    /// When it last had nothing more to send, whatever the line did for others.
    idle_since: Time,
}

/// The packet in service: its handle, lengths, lane, and when it departs.
#[derive(Clone, Copy)]
pub(super) struct Serving {
    pub(super) handle: u32,
    bytes: u16,
    /// Bytes on the line.
    wire: u32,
    lane: usize,
    pub(super) departs: Time,
}

/// Names a packet's class.
pub(super) type Classify = Box<dyn Fn(&Packet) -> usize + Send>;

/// The scheduler.
pub(super) struct Lanes {
    pub(super) lanes: Vec<Lane>,
    classify: Classify,
    turn: usize,
    pub(super) serving: Option<Serving>,
    /// Departed, not yet polled.
    pub(super) sent: VecDeque<(u32, Time)>,
    /// Not a line sends the packets but a medium takes them, see `pulled.rs`.
    pub(super) pulled: bool,
    /// Given up by a queue, not yet told of.
    gone: Gone,
    /// The backlog that the statistics know.
    counted: (u64, u32),
    /// When a driver will come back, see [`Port::next_event`].
    pending: Time,
    /// Moves the weights, if they are not fixed.
    pub(super) balance: Option<Balance>,
    /// Moves them by the numbers of flows.
    pub(super) division: Option<Box<Division>>,
}

impl Lanes {
    pub(super) fn new(classes: Vec<(Class, f64)>, classify: Classify) -> Lanes {
        let sum: f64 = classes.iter().map(|(_, weight)| weight).sum();
        let least = classes.iter().map(|(_, weight)| *weight).fold(f64::INFINITY, f64::min);
        let lane = |(class, weight): (Class, f64)| {
            let limited = class.qdisc.is_some();
            let (qdisc, queue): (_, Box<dyn ActiveQueue>) = match class.qdisc {
                None => (None, Box::new(Fifo::default())),
                Some(Discipline::Arrival(qdisc)) => (Some(qdisc), Box::new(Fifo::default())),
                Some(Discipline::Departure(queue)) => (None, queue),
            };
            Lane {
                gate: Gate::new(qdisc, class.router),
                queue,
                bytes: 0,
                packets: 0,
                limited,
                share: weight / sum,
                counts_on: weight / sum,
                quantum: (QUANTUM * weight / least) as i64,
                credit: 0,
                idle_since: Time::ZERO,
            }
        };
        Lanes {
            lanes: classes.into_iter().map(lane).collect(),
            classify,
            turn: 0,
            serving: None,
            sent: VecDeque::new(),
            pulled: false,
            gone: Gone::new(),
            counted: (0, 0),
            pending: Time::NEVER,
            balance: None,
            division: None,
        }
    }
    /// When the weights move next.
    pub(super) fn moves(&self) -> Time {
        let balance = self.balance.as_ref().map_or(Time::NEVER, |b| b.due);
        balance.min(self.division.as_ref().map_or(Time::NEVER, |d| d.due))
    }
    /// The weights move if they are to, at `now`; `capacity` is the port's.
    pub(super) fn rebalance(&mut self, now: Time, capacity: f64) {
        if let Some(division) = self.division.as_mut().filter(|d| d.due <= now) {
            let parts = division.moved(now, capacity);
            let least = parts[0].share.min(parts[1].share);
            for (lane, part) in self.lanes.iter_mut().zip(parts) {
                (lane.share, lane.counts_on) = (part.share, part.capacity);
                lane.quantum = (QUANTUM * part.share / least) as i64;
            }
        }
        let Some(balance) = self.balance.as_mut().filter(|b| b.due <= now) else { return };
        let explicit = balance.explicit;
        let share = balance.moved(now, self.lanes[explicit].share);
        for (i, lane) in self.lanes.iter_mut().enumerate() {
            lane.share = if i == explicit { share } else { 1.0 - share };
            lane.counts_on = lane.share;
            lane.quantum = (QUANTUM * lane.share / share.min(1.0 - share)) as i64;
        }
    }
    /// Whether a discipline decides what waits in some class.
    pub(super) fn limited(&self) -> bool {
        self.lanes.iter().any(|l| l.limited)
    }
    /// What a lane's controller and discipline see.
    pub(super) fn view(&self, lane: usize, capacity: f64) -> PortView {
        let lane = &self.lanes[lane];
        // Where packets wait for a line that is shared, it is busy, if with another's.
        let busy = self.serving.is_some() || self.lanes.iter().any(|l| l.packets > 0);
        let (backlog_bytes, backlog_packets) = (lane.bytes, lane.packets);
        PortView { capacity: capacity * lane.counts_on, backlog_bytes, backlog_packets, busy }
    }
    /// Bytes and packets that wait in all lanes.
    pub(super) fn waiting(&self) -> (u64, u32) {
        self.lanes.iter().fold((0, 0), |sum, l| (sum.0 + l.bytes, sum.1 + l.packets))
    }
    /// Packets in the port.
    pub(super) fn len(&self) -> usize {
        self.waiting().1 as usize + self.serving.is_some() as usize + self.sent.len()
    }
    /// The lane that sends next.
    fn next(&mut self) -> Option<usize> {
        if self.lanes.iter().all(|l| l.packets == 0) {
            return None;
        }
        loop {
            let lane = &mut self.lanes[self.turn];
            if lane.packets == 0 {
                lane.credit = lane.credit.min(0); // credit is for those who wait, debt stays
            } else if lane.credit > 0 {
                return Some(self.turn);
            } else {
                lane.credit += lane.quantum;
            }
            self.turn = (self.turn + 1) % self.lanes.len();
        }
    }
    /// The packet in service is done with.
    pub(super) fn finish(&mut self, now: Time) {
        if let Some(done) = self.serving.take() {
            self.lanes[done.lane].idle_since = now; // until its next packet comes, if none waits
        }
    }
    /// Controller and discipline let the packet in service go.
    fn let_go(&mut self, at: Time, capacity: f64, store: &mut impl Store) {
        let Some(Serving { handle, lane, .. }) = self.serving else { return };
        let view = self.view(lane, capacity);
        let Gate { qdisc, router } = &mut self.lanes[lane].gate;
        if let Some(router) = router {
            router.on_departure(at, store.packet(handle), &view);
        }
        if let Some(qdisc) = qdisc {
            qdisc.law.on_departure(at, &view);
        }
    }
    /// Tells the variables of a lane's queue, discipline and controller.
    pub(super) fn probe(&self, lane: usize, put: Probe<'_>) {
        let lane = &self.lanes[lane];
        lane.gate.probe(put);
        lane.queue.probe(put);
    }
}

impl Port {
    pub(super) fn enqueue_in_lane(&mut self, now: Time, handle: u32, store: &mut impl Store) -> Arrival {
        let lanes = self.lanes.as_deref_mut().expect("checked by the caller");
        let packet = store.packet(handle);
        let index = (lanes.classify)(packet).min(lanes.lanes.len() - 1);
        let view = lanes.view(index, self.view.capacity);
        let lane = &mut lanes.lanes[index];
        let Gate { qdisc, router } = &mut lane.gate;
        if let Some(balance) = &mut lanes.balance {
            balance.arrived(index, packet);
        }
        if let Some(division) = &mut lanes.division {
            division.arrived(index, packet);
        }
        if let Some(router) = router {
            router.on_arrival(now, packet, &view);
        }
        let busy = view.backlog_packets > 0 || lanes.serving.is_some_and(|s| s.lane == index);
        let idle_since = (!busy).then_some(lane.idle_since);
        let verdict = qdisc.as_mut().map_or(Verdict::Accept, |q| q.law.on_arrival(now, packet, &view, idle_since));
        if let Some(balance) = lanes.balance.as_mut().filter(|_| verdict != Verdict::Accept) {
            balance.told(index);
        }
        if verdict != Verdict::Accept
            && !mark_or_drop(router, &mut self.stats, now, At { port: self.number, handle }, verdict, &view, store)
        {
            return Arrival::Dropped;
        }
        let packet = store.packet(handle);
        let capable = packet.ecn() != Ecn::NotCapable;
        let queued = Queued { handle, bytes: packet.ip_len, capable, since: now };
        lane.queue.enqueue(queued, packet, &mut lanes.gone);
        lane.bytes += queued.bytes as u64;
        lane.packets += 1;
        let refused = lanes.gone.iter().any(|(q, _)| q.handle == handle);
        self.tell_gone(now, index, store);
        if self.lanes.as_deref().is_some_and(|l| l.serving.is_none()) {
            self.serve_next(now, true, store);
        }
        self.count_waiting(now);
        if refused { Arrival::Dropped } else { Arrival::Queued }
    }

    /// The packet in service departs, the next one enters it.
    pub(super) fn depart_from_lane(&mut self, store: &mut impl Store) {
        let lanes = self.lanes.as_deref_mut().expect("checked by the caller");
        let Serving { handle, bytes, wire, departs: at, lane } = lanes.serving.expect("checked by the caller");
        if let Some(division) = &mut lanes.division {
            division.departed(lane, bytes);
        }
        lanes.let_go(at, self.view.capacity, store);
        lanes.finish(at);
        self.stats.departed(at, bytes);
        store.note(at, self.number, handle, Note::Departed);
        if self.lost_on_air(at, handle, wire, store) {
            self.lose(at, handle, store);
        } else {
            self.send(at, handle, store);
        }
        self.serve_next(at, false, store);
        self.count_waiting(at);
    }

    /// The next packet enters service; `idle` says that none was in it.
    pub(super) fn serve_next(&mut self, at: Time, idle: bool, store: &mut impl Store) {
        while let Some(lanes) = self.lanes.as_deref_mut()
            && let Some(index) = lanes.next()
        {
            if self.special.as_ref().and_then(|s| s.line.as_ref()).is_some_and(|line| !line.ask(at)) {
                return;
            }
            let lane = &mut lanes.lanes[index];
            let next = lane.queue.dequeue(at, &mut lanes.gone);
            assert!(next.is_some() || !lanes.gone.is_empty(), "a queue discipline keeps packets back");
            lane.idle_since = at;
            if let Some((sent, _)) = next {
                lane.bytes -= sent.bytes as u64;
                lane.packets -= 1;
            }
            self.tell_gone(at, index, store);
            let Some((Queued { handle, bytes, .. }, mark)) = next else { continue };
            if mark {
                store.packet(handle).set_ecn(Ecn::Marked);
                self.stats.marked();
                store.note(at, self.number, handle, Note::Marked);
            }
            let wire = self.wire_bytes(handle, bytes, store);
            let Some(lanes) = self.lanes.as_deref_mut() else { return };
            let departs = if lanes.pulled {
                Time::NEVER
            } else {
                self.busy_until = self.line.finish(at.0, wire, idle);
                Time(self.busy_until)
            };
            if let Some(line) = self.special.as_ref().and_then(|s| s.line.as_ref()) {
                line.occupy(departs);
            }
            lanes.balance.iter_mut().filter(|_| mark).for_each(|b| b.told(index));
            lanes.lanes[index].credit -= bytes as i64;
            lanes.serving = Some(Serving { handle, bytes, wire, lane: index, departs });
            if lanes.pulled {
                lanes.let_go(at, self.view.capacity, store);
            }
            return;
        }
    }

    /// A line that is shared may be had now, or the other end was faster.
    pub(super) fn ask_for_line(&mut self, at: Time, store: &mut impl Store) {
        self.serve_next(at, true, store);
        self.count_waiting(at);
    }

    /// When a driver of a scheduled port has to come back, if no event that it was told of is as early: it keeps one pending,
    /// and ignores those that [`Port::take_event`] does not know any more.
    pub fn next_event(&mut self, now: Time) -> Option<Time> {
        let (due, empty) = (self.settled_due().max(now), self.is_empty());
        let lanes = self.lanes.as_deref_mut()?;
        if due >= lanes.pending || empty {
            return None;
        }
        lanes.pending = due;
        Some(due)
    }
    /// Whether the event that comes now is the one that is awaited.
    pub fn take_event(&mut self, now: Time) -> bool {
        let pending = self.lanes.as_deref_mut().map(|l| &mut l.pending).filter(|p| **p == now);
        pending.map(|p| *p = Time::NEVER).is_some()
    }

    /// Carries out the drops of a lane's queue.
    fn tell_gone(&mut self, at: Time, index: usize, store: &mut impl Store) {
        let lanes = self.lanes.as_deref_mut().expect("a polled port");
        if lanes.gone.is_empty() {
            return;
        }
        for (queued, _) in &lanes.gone {
            lanes.lanes[index].bytes -= queued.bytes as u64;
            lanes.lanes[index].packets -= 1;
        }
        let view = lanes.view(index, self.view.capacity);
        let router = &mut lanes.lanes[index].gate.router;
        for (queued, cause) in lanes.gone.drain(..) {
            lanes.balance.iter_mut().for_each(|b| b.told(index));
            let packet = At { port: self.number, handle: queued.handle };
            mark_or_drop(router, &mut self.stats, at, packet, Verdict::Drop(cause), &view, store);
        }
    }

    /// Tells the statistics how much waits now, and when to come back.
    pub(super) fn count_waiting(&mut self, at: Time) {
        let lanes = self.lanes.as_deref_mut().expect("a polled port");
        let due = lanes.serving.map_or(self.timer, |s| s.departs.min(self.timer));
        let (was, is) = (lanes.counted, lanes.waiting());
        if is != was {
            self.stats.queue_changed(at, was.1, was.0, is.1 as i32 - was.1 as i32);
            lanes.counted = is;
        }
        if self.special.is_some() {
            self.rearm(); // the line may be another's
        } else {
            self.due = due;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two classes in which packets wait.
    fn lanes(weights: [f64; 2]) -> Lanes {
        let class = |weight| (Class { qdisc: None, router: None }, weight);
        let mut lanes = Lanes::new(weights.map(class).into(), Box::new(|packet| packet.transport.flow() as usize));
        lanes.lanes.iter_mut().for_each(|lane| lane.packets = 1);
        lanes
    }

    /// Whose turns the next are, if packets of the classes have these lengths.
    fn turns<const N: usize>(lanes: &mut Lanes, bytes: [i64; 2]) -> [usize; N] {
        [(); N].map(|()| {
            let turn = lanes.next().expect("packets wait");
            lanes.lanes[turn].credit -= bytes[turn];
            turn
        })
    }

    /// A round credits 1500 and 3000 bytes: one packet and two.
    #[test]
    fn turns_follow_the_weights() {
        let mut lanes = lanes([1.0, 2.0]);
        assert_eq!(turns(&mut lanes, [1500, 1500]), [0, 1, 1, 0, 1, 1, 0, 1, 1]);
        let capacity = |lane| lanes.view(lane, 3e6).capacity;
        assert_eq!([capacity(0), capacity(1)], [1e6, 2e6]);
    }

    /// 1500 bytes a round let two packets of 1000 bytes go, which leaves a debt of 500: in the next round one goes.
    #[test]
    fn what_was_overdrawn_is_paid_back() {
        assert_eq!(turns(&mut lanes([1.0, 1.0]), [1000, 500]), [0, 0, 1, 1, 1, 0, 1, 1, 1, 0, 0, 1, 1, 1]);
    }

    /// RFC 8290 section 4.2: a queue that becomes empty takes no credit along; its debt stays.
    #[test]
    fn an_empty_class_loses_its_credit_and_keeps_its_debt() {
        for (before, after) in [(700, 0), (-400, -400)] {
            let mut lanes = lanes([1.0, 1.0]);
            (lanes.lanes[1].credit, lanes.lanes[1].packets) = (before, 0);
            assert_eq!(turns(&mut lanes, [1500, 1500]), [0, 0]);
            assert_eq!(lanes.lanes[1].credit, after);
        }
    }
}

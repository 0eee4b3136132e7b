//! The general form of a port: classes with queues of their own before one line. The next packet is known only when
//! the line becomes free, so a driver has to poll.
//!
//! Classes take turns by deficit round robin (Shreedhar and Varghese, SIGCOMM 1995), in the form of RFC 8290 section
//! 4.2: a class sends while its credit is positive and may overdraw it by one packet, which later rounds compensate.
//! So a queue need not report the length of its next packet, and may still drop that packet. A single class takes
//! every turn.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::balance::Balance;
use super::division::Division;
use super::{Arrival, At, Class, Note, Port, QueueControl, Store, mark_or_drop};
use crate::api::{PortView, Probe};
use crate::estimate::hop_capacity::{Air, Served};
use crate::qdisc::common::Fifo;
use crate::qdisc::{ActiveQueue, Discipline, Dropped, Queued, Verdict};
use crate::units::Time;
use crate::wire::{Ecn, Packet};

/// Bytes per round that the class of least weight is credited.
const QUANTUM: f64 = 1500.0;

/// Bytes and packets in a queue, without the packet in service.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Backlog {
    pub(super) bytes: u64,
    pub(super) packets: u32,
}

impl Backlog {
    fn add(&mut self, bytes: u16) {
        self.bytes += bytes as u64;
        self.packets += 1;
    }
    fn remove(&mut self, bytes: u16) {
        self.bytes -= bytes as u64;
        self.packets -= 1;
    }
}

/// A class and its queue.
pub(super) struct ClassQueue {
    pub(super) control: QueueControl,
    queue: Box<dyn ActiveQueue>,
    backlog: Backlog,
    /// A discipline limits its queue.
    limited: bool,
    /// Its share of the line, and the capacity for its controller and discipline.
    share: f64,
    pub(super) capacity_share: f64,
    /// Bytes credited per round.
    quantum: i64,
    /// Bytes that it may still send in this round.
    credit: i64,
    /// When its queue last became empty, regardless of other classes.
    idle_since: Time,
}

/// The packet in service: handle, lengths, class, and departure.
#[derive(Clone, Copy)]
pub(super) struct Serving {
    pub(super) handle: u32,
    bytes: u16,
    /// Bytes on the line, with codings.
    wire: u32,
    class: usize,
    pub(super) departs: Time,
    /// Since when it is the first of the queues, and since when it has the line.
    since: Time,
    began: Time,
}

/// Returns a packet's class.
pub(super) type Classify = Box<dyn Fn(&Packet) -> usize + Send>;

/// The scheduler.
pub(super) struct ClassScheduler {
    pub(super) classes: Vec<ClassQueue>,
    classify: Classify,
    turn: usize,
    pub(super) serving: Option<Serving>,
    /// Packets that have departed and were not polled yet.
    pub(super) sent: VecDeque<(u32, Time)>,
    /// A medium takes the packets, instead of a line sending them; see `feeds_medium.rs`.
    pub(super) feeds_medium: bool,
    /// Packets dropped by a queue and not reported yet.
    dropped: Dropped,
    /// The backlog of all classes, and the one in the statistics.
    pub(super) waiting: Backlog,
    counted: Backlog,
    /// When a driver will call again, see [`Port::next_event`].
    pending: Time,
    /// Since when the first packet waits for a line that another port uses.
    asked: Option<Time>,
    /// Moves the weights, unless they are fixed.
    pub(super) balance: Option<Balance>,
    /// Moves them by the numbers of flows.
    pub(super) division: Option<Box<Division>>,
}

impl ClassScheduler {
    pub(super) fn new(classes: Vec<(Class, f64)>, classify: Classify) -> ClassScheduler {
        let sum: f64 = classes.iter().map(|(_, weight)| weight).sum();
        let least = classes.iter().map(|(_, weight)| *weight).fold(f64::INFINITY, f64::min);
        let class = |(class, weight): (Class, f64)| {
            let limited = class.qdisc.is_some();
            let (qdisc, queue): (_, Box<dyn ActiveQueue>) = match class.qdisc {
                None => (None, Box::new(Fifo::default())),
                Some(Discipline::Arrival(qdisc)) => (Some(qdisc), Box::new(Fifo::default())),
                Some(Discipline::Departure(queue)) => (None, queue),
            };
            ClassQueue {
                control: QueueControl::new(qdisc, class.router),
                queue,
                backlog: Backlog::default(),
                limited,
                share: weight / sum,
                capacity_share: weight / sum,
                quantum: (QUANTUM * weight / least) as i64,
                credit: 0,
                idle_since: Time::ZERO,
            }
        };
        ClassScheduler {
            classes: classes.into_iter().map(class).collect(),
            classify,
            turn: 0,
            serving: None,
            sent: VecDeque::new(),
            feeds_medium: false,
            dropped: Dropped::new(),
            waiting: Backlog::default(),
            counted: Backlog::default(),
            pending: Time::NEVER,
            asked: None,
            balance: None,
            division: None,
        }
    }
    /// When the weights next move.
    pub(super) fn next_rebalance(&self) -> Time {
        let balance = self.balance.as_ref().map_or(Time::NEVER, |b| b.due);
        balance.min(self.division.as_ref().map_or(Time::NEVER, |d| d.due))
    }
    /// Moves the weights if that is due at `now`; `capacity` is the port's.
    pub(super) fn rebalance(&mut self, now: Time, capacity: f64) {
        if let Some(division) = self.division.as_mut().filter(|d| d.due <= now) {
            let parts = division.moved(now, capacity);
            let least = parts[0].share.min(parts[1].share);
            for (class, part) in self.classes.iter_mut().zip(parts) {
                (class.share, class.capacity_share) = (part.share, part.capacity);
                class.quantum = (QUANTUM * part.share / least) as i64;
            }
        }
        let Some(balance) = self.balance.as_mut().filter(|b| b.due <= now) else { return };
        let explicit = balance.explicit;
        let share = balance.moved(now, self.classes[explicit].share);
        for (i, class) in self.classes.iter_mut().enumerate() {
            class.share = if i == explicit { share } else { 1.0 - share };
            class.capacity_share = class.share;
            class.quantum = (QUANTUM * class.share / share.min(1.0 - share)) as i64;
        }
    }
    /// Whether a discipline limits the queue of some class.
    pub(super) fn limited(&self) -> bool {
        self.classes.iter().any(|l| l.limited)
    }
    /// The port as a class's controller and discipline see it.
    pub(super) fn view(&self, class: usize, capacity: f64) -> PortView {
        let class = &self.classes[class];
        // While packets wait for a shared line, the line is busy, possibly with a packet of the other port.
        let busy = self.serving.is_some() || self.waiting.packets > 0;
        let Backlog { bytes: backlog_bytes, packets: backlog_packets } = class.backlog;
        PortView { capacity: capacity * class.capacity_share, backlog_bytes, backlog_packets, busy }
    }
    /// A packet of this length enters a class's queue.
    fn enter(&mut self, class: usize, bytes: u16) {
        self.classes[class].backlog.add(bytes);
        self.waiting.add(bytes);
    }
    /// It leaves the queue.
    fn leave(&mut self, class: usize, bytes: u16) {
        self.classes[class].backlog.remove(bytes);
        self.waiting.remove(bytes);
    }
    /// Packets in the port.
    pub(super) fn len(&self) -> usize {
        self.waiting.packets as usize + self.serving.is_some() as usize + self.sent.len()
    }
    /// The class that sends next.
    fn next(&mut self) -> Option<usize> {
        if self.waiting.packets == 0 {
            return None;
        }
        loop {
            let class = &mut self.classes[self.turn];
            if class.backlog.packets == 0 {
                class.credit = class.credit.min(0); // unused credit expires, debt stays
            } else if class.credit > 0 {
                return Some(self.turn);
            } else {
                class.credit += class.quantum;
            }
            self.turn = (self.turn + 1) % self.classes.len();
        }
    }
    /// The packet in service has left.
    pub(super) fn finish(&mut self, now: Time) {
        if let Some(done) = self.serving.take() {
            self.classes[done.class].idle_since = now; // until its next packet arrives, if none waits
        }
    }
    /// Reports the departure of the packet in service to controller and discipline.
    fn report_departure(&mut self, at: Time, capacity: f64, store: &mut impl Store) {
        let Some(Serving { handle, class, .. }) = self.serving else { return };
        let view = self.view(class, capacity);
        let QueueControl { qdisc, router } = &mut self.classes[class].control;
        if let Some(router) = router {
            router.on_departure(at, store.packet(handle), &view);
        }
        if let Some(qdisc) = qdisc {
            qdisc.discipline.on_departure(at, &view);
        }
    }
    /// Reports the variables of a class's queue, discipline and controller.
    pub(super) fn probe(&self, class: usize, put: Probe<'_>) {
        let class = &self.classes[class];
        class.control.probe(put);
        class.queue.probe(put);
    }
}

impl Port {
    pub(super) fn enqueue_in_class(&mut self, now: Time, handle: u32, store: &mut impl Store) -> Arrival {
        let scheduler = self.scheduler.as_deref_mut().expect("checked by the caller");
        let packet = store.packet(handle);
        let index = (scheduler.classify)(packet).min(scheduler.classes.len() - 1);
        let view = scheduler.view(index, self.view.capacity);
        let class = &mut scheduler.classes[index];
        let QueueControl { qdisc, router } = &mut class.control;
        if let Some(balance) = &mut scheduler.balance {
            balance.arrived(index, packet);
        }
        if let Some(division) = &mut scheduler.division {
            division.arrived(index, packet);
        }
        if let Some(router) = router {
            router.on_arrival(now, packet, &view);
        }
        let busy = view.backlog_packets > 0 || scheduler.serving.is_some_and(|s| s.class == index);
        let idle_since = (!busy).then_some(class.idle_since);
        let verdict =
            qdisc.as_mut().map_or(Verdict::Accept, |q| q.discipline.on_arrival(now, packet, &view, idle_since));
        if let Some(balance) = scheduler.balance.as_mut().filter(|_| verdict != Verdict::Accept) {
            balance.dropped_or_marked(index);
        }
        if verdict != Verdict::Accept
            && !mark_or_drop(router, &mut self.stats, now, At { port: self.number, handle }, verdict, &view, store)
        {
            return Arrival::Dropped;
        }
        let packet = store.packet(handle);
        let capable = packet.ecn() != Ecn::NotCapable;
        let queued = Queued { handle, bytes: packet.ip_len, capable, since: now };
        class.queue.enqueue(queued, packet, &mut scheduler.dropped);
        scheduler.enter(index, queued.bytes);
        let refused = scheduler.dropped.iter().any(|(q, _)| q.handle == handle);
        self.complete_drops(now, index, store);
        if self.scheduler.as_deref().is_some_and(|l| l.serving.is_none()) {
            self.serve_next(now, true, store);
        }
        self.count_waiting(now);
        if refused { Arrival::Dropped } else { Arrival::Queued }
    }

    /// The packet in service departs, and the next one enters service.
    pub(super) fn depart_from_class(&mut self, store: &mut impl Store) {
        self.measure_departure();
        let scheduler = self.scheduler.as_deref_mut().expect("checked by the caller");
        let Serving { handle, bytes, wire, departs: at, class, .. } = scheduler.serving.expect("checked by the caller");
        if let Some(division) = &mut scheduler.division {
            division.departed(class, bytes);
        }
        scheduler.report_departure(at, self.view.capacity, store);
        scheduler.finish(at);
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

    /// The next packet enters service; with `idle` the line was idle until now.
    pub(super) fn serve_next(&mut self, at: Time, idle: bool, store: &mut impl Store) {
        while let Some(scheduler) = self.scheduler.as_deref_mut()
            && let Some(index) = scheduler.next()
        {
            if self.impairments.as_ref().and_then(|s| s.line.as_ref()).is_some_and(|line| !line.ask(at)) {
                scheduler.asked.get_or_insert(at);
                return;
            }
            let class = &mut scheduler.classes[index];
            let next = class.queue.dequeue(at, &mut scheduler.dropped);
            assert!(next.is_some() || !scheduler.dropped.is_empty(), "a queue discipline keeps packets back");
            class.idle_since = at;
            if let Some((sent, _)) = next {
                scheduler.leave(index, sent.bytes);
            }
            self.complete_drops(at, index, store);
            let Some((Queued { handle, bytes, .. }, mark)) = next else { continue };
            if mark {
                store.packet(handle).set_ecn(Ecn::Marked);
                self.stats.marked();
                store.note(at, self.number, handle, Note::Marked);
            }
            let wire = self.wire_bytes(handle, bytes, store);
            let Some(scheduler) = self.scheduler.as_deref_mut() else { return };
            let departs = if scheduler.feeds_medium {
                Time::NEVER
            } else {
                self.busy_until = self.line.finish(at.0, wire, idle);
                Time(self.busy_until)
            };
            if let Some(line) = self.impairments.as_ref().and_then(|s| s.line.as_ref()) {
                line.occupy(departs);
            }
            scheduler.balance.iter_mut().filter(|_| mark).for_each(|b| b.dropped_or_marked(index));
            scheduler.classes[index].credit -= bytes as i64;
            let since = scheduler.asked.take().unwrap_or(at);
            scheduler.serving = Some(Serving { handle, bytes, wire, class: index, departs, since, began: at });
            if scheduler.feeds_medium {
                scheduler.report_departure(at, self.view.capacity, store);
            }
            return;
        }
    }

    /// Measures the capacity by the packet in service, which leaves the line.
    fn measure_departure(&mut self) {
        let Some(measured) = self.impairments.as_deref_mut().and_then(|s| s.measured.as_mut()) else { return };
        let Some(serving) = self.scheduler.as_deref().and_then(|s| s.serving) else { return };
        let (service, held) = (serving.departs.since(serving.since), serving.began.since(serving.since));
        self.view.capacity = measured.served(&Served { bytes: serving.bytes as u32, service, held, air: None });
    }

    /// The medium has finished with the first packet, for the capacity that is measured: `held` of the time since it
    /// became the first was others', and `air` are its frames.
    pub fn measure_frame(&mut self, now: Time, acknowledged: bool, held: Time, air: Air) {
        let Some(measured) = self.impairments.as_deref_mut().and_then(|s| s.measured.as_mut()) else { return };
        let Some(serving) = self.scheduler.as_deref().and_then(|s| s.serving) else { return };
        let bytes = if acknowledged { serving.bytes as u32 } else { 0 };
        let service = now.since(serving.since);
        self.view.capacity = measured.served(&Served { bytes, service, held, air: Some(air) });
    }

    /// The shared line may be free, or the other port may have taken it.
    pub(super) fn ask_for_line(&mut self, at: Time, store: &mut impl Store) {
        self.serve_next(at, true, store);
        self.count_waiting(at);
    }

    /// When a driver of a scheduled port has to call again, unless an earlier event is already pending. The driver
    /// keeps one event, and ignores those that [`Port::take_event`] rejects.
    pub fn next_event(&mut self, now: Time) -> Option<Time> {
        let (due, empty) = (self.next_due().max(now), self.is_empty());
        let scheduler = self.scheduler.as_deref_mut()?;
        if due >= scheduler.pending || empty {
            return None;
        }
        scheduler.pending = due;
        Some(due)
    }
    /// Whether the present event is the pending one.
    pub fn take_event(&mut self, now: Time) -> bool {
        let pending = self.scheduler.as_deref_mut().map(|l| &mut l.pending).filter(|p| **p == now);
        pending.map(|p| *p = Time::NEVER).is_some()
    }

    /// Completes the drops of a class's queue.
    fn complete_drops(&mut self, at: Time, index: usize, store: &mut impl Store) {
        let scheduler = self.scheduler.as_deref_mut().expect("a polled port");
        if scheduler.dropped.is_empty() {
            return;
        }
        for i in 0..scheduler.dropped.len() {
            scheduler.leave(index, scheduler.dropped[i].0.bytes);
        }
        let view = scheduler.view(index, self.view.capacity);
        let router = &mut scheduler.classes[index].control.router;
        for (queued, cause) in scheduler.dropped.drain(..) {
            scheduler.balance.iter_mut().for_each(|b| b.dropped_or_marked(index));
            let packet = At { port: self.number, handle: queued.handle };
            mark_or_drop(router, &mut self.stats, at, packet, Verdict::Drop(cause), &view, store);
        }
    }

    /// Updates the statistics of the queue and the time of the next call.
    pub(super) fn count_waiting(&mut self, at: Time) {
        let scheduler = self.scheduler.as_deref_mut().expect("a polled port");
        let due = scheduler.serving.map_or(self.timer, |s| s.departs.min(self.timer));
        let (was, is) = (scheduler.counted, scheduler.waiting);
        if is != was {
            self.stats.queue_changed(at, was.packets, was.bytes, is.packets as i32 - was.packets as i32);
            scheduler.counted = is;
        }
        if self.impairments.as_ref().is_some_and(|impairments| impairments.line.is_some()) {
            self.rearm(); // the line may be in use by the other port
        } else {
            self.due = due;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two classes with packets in their queues.
    fn scheduler(weights: [f64; 2]) -> ClassScheduler {
        let class = |weight| (Class { qdisc: None, router: None }, weight);
        let mut scheduler =
            ClassScheduler::new(weights.map(class).into(), Box::new(|packet| packet.transport.flow() as usize));
        (0..weights.len()).for_each(|class| scheduler.enter(class, 0));
        scheduler
    }

    /// The classes of the next turns, if their packets have these lengths.
    fn turns<const N: usize>(scheduler: &mut ClassScheduler, bytes: [i64; 2]) -> [usize; N] {
        [(); N].map(|()| {
            let turn = scheduler.next().expect("packets wait");
            scheduler.classes[turn].credit -= bytes[turn];
            turn
        })
    }

    /// A round credits 1500 and 3000 bytes: one packet and two.
    #[test]
    fn turns_follow_the_weights() {
        let mut scheduler = scheduler([1.0, 2.0]);
        assert_eq!(turns(&mut scheduler, [1500, 1500]), [0, 1, 1, 0, 1, 1, 0, 1, 1]);
        let capacity = |class| scheduler.view(class, 3e6).capacity;
        assert_eq!([capacity(0), capacity(1)], [1e6, 2e6]);
    }

    /// 1500 bytes per round allow two packets of 1000 bytes, which leaves a debt of 500: one packet in the next
    /// round.
    #[test]
    fn what_was_overdrawn_is_paid_back() {
        assert_eq!(turns(&mut scheduler([1.0, 1.0]), [1000, 500]), [0, 0, 1, 1, 1, 0, 1, 1, 1, 0, 0, 1, 1, 1]);
    }

    /// RFC 8290 section 4.2: a queue that becomes empty loses its credit; its debt stays.
    #[test]
    fn an_empty_class_loses_its_credit_and_keeps_its_debt() {
        for (before, after) in [(700, 0), (-400, -400)] {
            let mut scheduler = scheduler([1.0, 1.0]);
            scheduler.classes[1].credit = before;
            scheduler.leave(1, 0);
            assert_eq!(turns(&mut scheduler, [1500, 1500]), [0, 0]);
            assert_eq!(scheduler.classes[1].credit, after);
        }
    }
}

//! An output port: queue disciplines, router controllers and the link's service, composed.
//!
//! A port whose service is known in advance and whose queue is one first-in first-out class is *settled*: a packet's
//! departure is computed when it arrives, and everything that happens in between (departures with their feedback and
//! marks, control timers) is caught up lazily, in order of time, before anything looks at the port. A port with several
//! classes picks its next packet when the line falls free, so a driver has to come back at [`Port::poll_timeout`].
//!
//! On a tie departures come before timers, and both before arrivals.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::protocol::{Channel, DropCause, PortView, Probe, Qdisc, Router, ServiceCurve, Verdict};
use crate::units::{Rate, Time};
use crate::wire::{Ecn, Packet};

pub use crate::port_stats::PortStats;

/// Where a port finds packets by handle.
pub trait Store {
    /// The packet behind a handle.
    fn packet(&mut self, handle: u32) -> &mut Packet;
    /// A packet was dropped or lost: its handle is free.
    fn release(&mut self, handle: u32);
    /// Something happened to a packet (for traces); by default nobody listens.
    fn note(&mut self, at: Time, handle: u32, what: Note) {
        let _ = (at, handle, what);
    }
}

/// What a trace tells of a packet at a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Note {
    /// It came.
    Arrived,
    /// It was marked.
    Marked,
    /// Its last bit left, with the feedback that it now carries.
    Departed,
    /// It was dropped by the queue.
    Dropped(DropCause),
    /// The channel lost it.
    Lost,
}

/// What became of an arriving packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arrival {
    /// It departs at this time.
    Departs(Time),
    /// It departs at this time, and the channel will lose it.
    Doomed(Time),
    /// It waits for the scheduler: poll the port.
    Queued,
    /// It was dropped, and its handle released.
    Dropped,
}

/// The link's service: when the last byte of a packet leaves.
enum Line {
    /// Nanoseconds per byte in 32.32 fixed point.
    Constant(u64),
    Curve(Box<dyn ServiceCurve>),
}

/// A queue discipline and a router controller for one class of packets.
#[derive(Default)]
pub struct Class {
    /// Admission; `None` admits everything.
    pub qdisc: Option<Box<dyn Qdisc>>,
    /// Controller; `None` is a plain IP router.
    pub router: Option<Box<dyn Router>>,
}

/// A class that waits for the scheduler (deficit round robin).
struct Lane {
    class: Class,
    queue: VecDeque<(u32, u16)>,
    bytes: u64,
    /// Bytes added per round.
    quantum: u32,
    deficit: u32,
}

/// Several classes behind one line.
struct Scheduler {
    lanes: Vec<Lane>,
    classify: fn(&Packet) -> usize,
    turn: usize,
    /// The packet in service: its handle and lane, and when it departs.
    serving: Option<(u32, u16, usize, Time)>,
    sent: VecDeque<(u32, Time, bool)>,
}

#[derive(Clone, Copy)]
struct Waiting {
    departs: u64,
    handle: u32,
    bytes: u16,
    lost: bool,
}

/// An output port.
pub struct Port {
    line: Line,
    /// When the last admitted packet departs: whole nanoseconds and 2^-32 parts.
    busy_until: u64,
    busy_part: u32,
    /// Bytes of all packets in `ring`, the one in service included.
    bytes: u64,
    ring: VecDeque<Waiting>,
    /// The earliest thing to settle.
    due: Time,
    /// The controller's and discipline's next timer.
    timer: Time,
    capacity: f64,
    class: Class,
    impaired: Option<Box<Impairments>>,
    scheduler: Option<Box<Scheduler>>,
    /// Counters.
    pub stats: PortStats,
}

#[derive(Default)]
struct Impairments {
    before: Vec<Box<dyn Channel>>,
    on_air: Vec<Box<dyn Channel>>,
}

/// What a port is made from.
pub struct PortInit {
    /// The line's rate.
    pub rate: Rate,
    /// Replaces the constant rate.
    pub service: Option<Box<dyn ServiceCurve>>,
    /// The capacity that controllers believe in, bytes/s.
    pub capacity: f64,
    /// The single class.
    pub class: Class,
    /// Impairments before the queue, in order.
    pub before: Vec<Box<dyn Channel>>,
    /// Impairments on the air, in order.
    pub on_air: Vec<Box<dyn Channel>>,
    /// When the measured span begins.
    pub measured_from: Time,
}

impl Port {
    /// A port with one class.
    ///
    /// # Panics
    /// If the rate is zero and no service curve replaces it.
    pub fn new(init: PortInit) -> Port {
        let line = match init.service {
            Some(curve) => Line::Curve(curve),
            None => {
                assert!(init.rate.0 > 0, "a line needs a rate");
                Line::Constant((((8_000_000_000u128) << 32) / init.rate.0 as u128) as u64)
            }
        };
        let impaired = (!init.before.is_empty() || !init.on_air.is_empty())
            .then(|| Box::new(Impairments { before: init.before, on_air: init.on_air }));
        let mut port = Port {
            line,
            busy_until: 0,
            busy_part: 0,
            bytes: 0,
            ring: VecDeque::new(),
            due: Time::NEVER,
            timer: Time::NEVER,
            capacity: init.capacity,
            stats: PortStats::new(init.measured_from, init.class.qdisc.is_some()),
            class: init.class,
            impaired,
            scheduler: None,
        };
        port.rearm();
        port
    }

    /// Puts several classes with weights behind the line instead of the one; `classify` names a packet's class.
    pub fn schedule(&mut self, classes: Vec<(Class, u32)>, classify: fn(&Packet) -> usize) {
        let lanes = classes.into_iter().map(|(class, weight)| Lane {
            class,
            queue: VecDeque::new(),
            bytes: 0,
            quantum: 1500 * weight.max(1),
            deficit: 0,
        });
        self.scheduler = Some(Box::new(Scheduler {
            lanes: lanes.collect(),
            classify,
            turn: 0,
            serving: None,
            sent: VecDeque::new(),
        }));
        self.rearm();
    }

    /// Whether a driver must poll this port because departures are not known in advance.
    #[inline]
    pub fn is_scheduled(&self) -> bool {
        self.scheduler.is_some()
    }
    /// Whether departing packets are written to, or counted in a way that a controller sees.
    pub fn writes(&self) -> bool {
        self.class.router.is_some() || self.class.qdisc.is_some()
    }
    /// Whether the channel may lose packets.
    pub fn impaired(&self) -> bool {
        self.impaired.is_some()
    }
    /// The capacity that controllers believe in, bytes/s.
    pub fn capacity(&self) -> f64 {
        self.capacity
    }
    /// Bytes that the line offers in `(from, to]`.
    pub fn offered(&self, from: Time, to: Time) -> f64 {
        match &self.line {
            Line::Constant(per_byte) => to.since(from).0 as f64 * (1u64 << 32) as f64 / *per_byte as f64,
            Line::Curve(curve) => curve.offered(from, to),
        }
    }
    /// Packets in the port, waiting or in service.
    pub fn len(&self) -> usize {
        let lanes = self.scheduler.as_ref().map_or(0, |s| {
            s.lanes.iter().map(|l| l.queue.len()).sum::<usize>() + s.serving.is_some() as usize + s.sent.len()
        });
        self.ring.len() + lanes
    }
    /// Whether no packet is in the port.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Handles of packets that the channel will lose and that have not departed.
    pub fn doomed(&self) -> usize {
        self.ring.iter().filter(|w| w.lost).count()
    }
    /// Bytes and packets that wait, without the packet in service. Settle first.
    pub fn backlog(&self) -> (u64, u32) {
        let view = self.view();
        (view.backlog_bytes, view.backlog_packets)
    }

    #[inline]
    fn view(&self) -> PortView {
        if let Some(s) = &self.scheduler {
            let packets = s.lanes.iter().map(|l| l.queue.len() as u32).sum();
            let bytes = s.lanes.iter().map(|l| l.bytes).sum();
            return PortView {
                capacity: self.capacity,
                backlog_bytes: bytes,
                backlog_packets: packets,
                busy: s.serving.is_some(),
            };
        }
        match self.ring.front() {
            None => PortView { capacity: self.capacity, backlog_bytes: 0, backlog_packets: 0, busy: false },
            Some(first) => PortView {
                capacity: self.capacity,
                backlog_bytes: self.bytes - first.bytes as u64,
                backlog_packets: self.ring.len() as u32 - 1,
                busy: true,
            },
        }
    }

    fn rearm(&mut self) {
        let of = |class: &Class| {
            let router = class.router.as_ref().map_or(Time::NEVER, |r| r.next_timer());
            router.min(class.qdisc.as_ref().map_or(Time::NEVER, |q| q.next_timer()))
        };
        self.timer = match &self.scheduler {
            Some(s) => s.lanes.iter().map(|l| of(&l.class)).min().unwrap_or(Time::NEVER),
            None => of(&self.class),
        };
        let leaves = match &self.scheduler {
            Some(s) => s.serving.map_or(Time::NEVER, |(.., at)| at),
            None => self.ring.front().map_or(Time::NEVER, |w| Time(w.departs)),
        };
        self.due = self.timer.min(leaves);
    }

    /// A packet arrives. Call in order of time.
    pub fn handle_packet(&mut self, now: Time, handle: u32, store: &mut impl Store) -> Arrival {
        self.settle(now, store);
        self.stats.arrived += 1;
        store.note(now, handle, Note::Arrived);
        if let Some(impaired) = &mut self.impaired {
            let packet = store.packet(handle);
            let bytes = packet.ip_len as u32;
            if impaired.before.iter_mut().any(|c| c.loses(now, packet, bytes)) {
                self.stats.lost(now);
                store.note(now, handle, Note::Lost);
                store.release(handle);
                return Arrival::Dropped;
            }
        }
        if self.scheduler.is_some() {
            return self.enqueue_scheduled(now, handle, store);
        }
        if self.class.router.is_some() || self.class.qdisc.is_some() {
            let view = self.view();
            let idle_since = (!view.busy).then_some(Time(self.busy_until));
            if !admit(&mut self.class, &mut self.stats, now, handle, &view, idle_since, store) {
                return Arrival::Dropped;
            }
        }
        let packet = store.packet(handle);
        let bytes = packet.ip_len;
        let idle = self.ring.is_empty();
        let departs = self.serve(now, bytes, idle);
        let lost = match &mut self.impaired {
            None => false,
            Some(i) => i.on_air.iter_mut().any(|c| c.loses(departs, packet, bytes as u32)),
        };
        if idle {
            self.due = self.timer.min(departs);
        } else {
            self.stats.queue_changed(now, self.ring.len() as u32 - 1, self.bytes - self.ring[0].bytes as u64, 1);
        }
        self.ring.push_back(Waiting { departs: departs.0, handle, bytes, lost });
        self.bytes += bytes as u64;
        if lost { Arrival::Doomed(departs) } else { Arrival::Departs(departs) }
    }

    /// When a packet of `bytes` that comes now leaves, after those before it.
    #[inline]
    fn serve(&mut self, now: Time, bytes: u16, idle: bool) -> Time {
        let start = if idle { now.0 } else { self.busy_until };
        match &mut self.line {
            Line::Constant(per_byte) => {
                let part = if idle { 0 } else { self.busy_part };
                let span = bytes as u128 * *per_byte as u128 + part as u128;
                self.busy_part = span as u32;
                self.busy_until = start + (span >> 32) as u64;
            }
            Line::Curve(curve) => self.busy_until = curve.finish(Time(start), bytes as u32, idle).0,
        }
        Time(self.busy_until)
    }

    /// Catches up with everything that happened in the port up to `now`.
    #[inline]
    pub fn settle(&mut self, now: Time, store: &mut impl Store) {
        if self.due <= now {
            self.settle_due(now, store);
        }
    }

    fn settle_due(&mut self, now: Time, store: &mut impl Store) {
        while self.due <= now {
            if self.scheduler.is_some() {
                self.step_scheduled(store);
                continue;
            }
            match self.ring.front() {
                Some(&first) if first.departs <= self.timer.0 => self.depart(first, store),
                _ => self.run_timers(self.timer),
            }
        }
    }

    fn depart(&mut self, first: Waiting, store: &mut impl Store) {
        let at = Time(first.departs);
        self.ring.pop_front();
        self.bytes -= first.bytes as u64;
        if let Some(next) = self.ring.front() {
            // The next packet enters service: it waits no longer.
            self.stats.queue_changed(at, self.ring.len() as u32, self.bytes, -1);
            self.due = self.timer.min(Time(next.departs));
        } else {
            self.due = self.timer;
        }
        self.stats.departed(at, first.bytes);
        if self.class.router.is_some() || self.class.qdisc.is_some() {
            // All that waits when the last bit leaves, the packet about to enter service included.
            let view = PortView {
                capacity: self.capacity,
                backlog_bytes: self.bytes,
                backlog_packets: self.ring.len() as u32,
                busy: true,
            };
            if let Some(router) = &mut self.class.router {
                router.on_departure(at, store.packet(first.handle), &view);
            }
            if let Some(qdisc) = &mut self.class.qdisc {
                qdisc.on_departure(at, &view);
            }
        }
        store.note(at, first.handle, Note::Departed);
        if first.lost {
            self.stats.lost(at);
            store.note(at, first.handle, Note::Lost);
            store.release(first.handle);
        }
    }

    fn run_timers(&mut self, at: Time) {
        let view = self.view();
        let run = |class: &mut Class| {
            if let Some(r) = class.router.as_mut().filter(|r| r.next_timer() <= at) {
                r.on_timer(at, &view);
            }
            if let Some(q) = class.qdisc.as_mut().filter(|q| q.next_timer() <= at) {
                q.on_timer(at, &view);
            }
        };
        match &mut self.scheduler {
            Some(s) => s.lanes.iter_mut().map(|l| &mut l.class).for_each(run),
            None => run(&mut self.class),
        }
        self.rearm();
    }

    /// When this port next needs [`Port::handle_timeout`]; a settled port alone needs none to be exact, but a real line does.
    pub fn poll_timeout(&self) -> Time {
        self.due
    }
    /// The time asked for has come.
    pub fn handle_timeout(&mut self, now: Time, store: &mut impl Store) {
        self.settle(now, store);
    }
    /// A packet of a scheduled port that has left: its handle and when its last bit did. Lost packets are not told.
    pub fn poll_transmit(&mut self) -> Option<(u32, Time)> {
        let sent = &mut self.scheduler.as_mut()?.sent;
        sent.pop_front().map(|(handle, at, _)| (handle, at))
    }

    // -------------------------------------------------------------------------------- several classes

    fn enqueue_scheduled(&mut self, now: Time, handle: u32, store: &mut impl Store) -> Arrival {
        let capacity = self.capacity;
        let s = self.scheduler.as_mut().expect("checked by the caller");
        let class = (s.classify)(store.packet(handle)).min(s.lanes.len() - 1);
        let lane = &mut s.lanes[class];
        let busy = s.serving.is_some();
        let view = PortView { capacity, backlog_bytes: lane.bytes, backlog_packets: lane.queue.len() as u32, busy };
        let idle_since = (!busy).then_some(Time(self.busy_until));
        if !admit(&mut lane.class, &mut self.stats, now, handle, &view, idle_since, store) {
            return Arrival::Dropped;
        }
        let bytes = store.packet(handle).ip_len;
        lane.queue.push_back((handle, bytes));
        lane.bytes += bytes as u64;
        if busy {
            let (packets, bytes) = waiting(&s.lanes);
            self.stats.queue_changed(now, packets - 1, bytes, 1);
        } else {
            self.start_next(now);
        }
        self.rearm();
        Arrival::Queued
    }

    /// Deficit round robin: the lane whose turn it is sends while its deficit lasts.
    fn start_next(&mut self, now: Time) {
        let s = self.scheduler.as_mut().expect("a scheduled port");
        if s.lanes.iter().all(|l| l.queue.is_empty()) {
            return;
        }
        let (handle, bytes, turn) = loop {
            let lane = &mut s.lanes[s.turn];
            match lane.queue.front() {
                Some(&(handle, bytes)) if lane.deficit >= bytes as u32 => {
                    lane.queue.pop_front();
                    lane.bytes -= bytes as u64;
                    lane.deficit -= bytes as u32;
                    break (handle, bytes, s.turn);
                }
                Some(_) | None => {
                    if lane.queue.is_empty() {
                        lane.deficit = 0;
                    }
                    s.turn = (s.turn + 1) % s.lanes.len();
                    let next = &mut s.lanes[s.turn];
                    if !next.queue.is_empty() {
                        next.deficit += next.quantum;
                    }
                }
            }
        };
        let at = self.serve(now, bytes, true);
        self.scheduler.as_mut().expect("a scheduled port").serving = Some((handle, bytes, turn, at));
    }

    fn step_scheduled(&mut self, store: &mut impl Store) {
        let capacity = self.capacity;
        let s = self.scheduler.as_mut().expect("a scheduled port");
        match s.serving {
            Some((handle, bytes, turn, at)) if at <= self.timer => {
                s.serving = None;
                let (packets, waiting_bytes) = waiting(&s.lanes);
                let lane = &mut s.lanes[turn];
                let view = PortView {
                    capacity,
                    backlog_bytes: lane.bytes,
                    backlog_packets: lane.queue.len() as u32,
                    busy: true,
                };
                if let Some(router) = &mut lane.class.router {
                    router.on_departure(at, store.packet(handle), &view);
                }
                if let Some(qdisc) = &mut lane.class.qdisc {
                    qdisc.on_departure(at, &view);
                }
                self.stats.departed(at, bytes);
                store.note(at, handle, Note::Departed);
                let packet = store.packet(handle);
                let air = self.impaired.as_mut().map(|i| &mut i.on_air);
                if air.is_some_and(|air| air.iter_mut().any(|c| c.loses(at, packet, bytes as u32))) {
                    self.stats.lost(at);
                    store.note(at, handle, Note::Lost);
                    store.release(handle);
                } else {
                    s.sent.push_back((handle, at, false));
                }
                if packets > 0 {
                    self.stats.queue_changed(at, packets, waiting_bytes, -1);
                }
                self.start_next(at);
                self.rearm();
            }
            _ => self.run_timers(self.timer),
        }
    }

    /// Tells the port's variables: its queue, its controllers' and disciplines' own. Settle first.
    pub fn probe(&self, put: Probe<'_>) {
        let view = self.view();
        put("queue_packets", view.backlog_packets as f64);
        put("queue_bytes", view.backlog_bytes as f64);
        let lanes = self.scheduler.iter().flat_map(|s| s.lanes.iter().map(|l| &l.class));
        for class in core::iter::once(&self.class).chain(lanes) {
            if let Some(router) = &class.router {
                router.probe(put);
            }
            if let Some(qdisc) = &class.qdisc {
                qdisc.probe(put);
            }
        }
    }
}

fn waiting(lanes: &[Lane]) -> (u32, u64) {
    (lanes.iter().map(|l| l.queue.len() as u32).sum(), lanes.iter().map(|l| l.bytes).sum())
}

/// Controller, then discipline; on a drop the controller hears of it and the handle is released.
fn admit(
    class: &mut Class,
    stats: &mut PortStats,
    now: Time,
    handle: u32,
    view: &PortView,
    idle_since: Option<Time>,
    store: &mut impl Store,
) -> bool {
    let packet = store.packet(handle);
    if let Some(router) = &mut class.router {
        router.on_arrival(now, packet, view);
    }
    let Some(qdisc) = &mut class.qdisc else { return true };
    match qdisc.on_arrival(now, packet, view, idle_since) {
        Verdict::Accept => true,
        Verdict::Mark => {
            packet.set_ecn(Ecn::Marked);
            stats.marked(now);
            store.note(now, handle, Note::Marked);
            true
        }
        Verdict::Drop(cause) => {
            if let Some(router) = &mut class.router {
                router.on_drop(now, packet, cause, view);
            }
            stats.dropped(now, cause);
            store.note(now, handle, Note::Dropped(cause));
            store.release(handle);
            false
        }
    }
}

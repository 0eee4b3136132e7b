//! An output port: queue disciplines, router controllers and the link's service, composed.
//!
//! A port whose service is known in advance and whose queue is one first-in first-out class is *settled*: a packet's
//! departure is computed when it arrives, and everything that happens in between (departures with their feedback and
//! marks, control timers) is caught up lazily, in order of time, before anything looks at the port. A port with several
//! classes, or with a discipline that decides at departure, picks its next packet when the line falls free, so a driver has
//! to come back at [`Port::poll_timeout`].
//!
//! On a tie departures come before timers, and both before arrivals.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use crate::api::{AnyRouter, PortView};
use crate::channel::{Channel, ServiceCurve};
pub use crate::passage::Waiting;
use crate::qdisc::{Discipline, DropCause, Verdict};
use crate::units::{Rate, Time};
use crate::wire::{Ecn, Packet};

mod at_once;
mod balance;
mod counting;
mod division;
mod gate;
mod lanes;
mod line;
mod lone;
mod looking;
mod pulled;
mod put_off;
mod reference;
mod ring;
mod settling;
mod shared;
mod special;
pub mod stats;

pub use gate::Class;
use gate::{Admission, Gate};
use lanes::Lanes;
use line::Line;
use lone::Lone;
use reference::Reference;
use ring::Ring;
pub use shared::SharedLine;
pub use special::Equipment;
use special::Special;
pub use stats::PortStats;

/// Where a port finds packets by handle.
pub trait Store {
    /// The packet behind a handle.
    fn packet(&mut self, handle: u32) -> &mut Packet;
    /// All packets, if they stand side by side by handle and nobody wants notes; by default one asks for each.
    fn packets(&mut self) -> Option<&mut [Packet]> {
        None
    }
    /// A packet was dropped or lost: its handle is free.
    fn release(&mut self, handle: u32);
    /// A second packet like this one; by default there is none, and channels that double packets do not.
    fn copy(&mut self, handle: u32) -> Option<u32> {
        let _ = handle;
        None
    }
    /// Something happened to a packet at the port of this number (for traces); by default nobody listens.
    fn note(&mut self, at: Time, port: u32, handle: u32, what: Note) {
        let _ = (at, port, handle, what);
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
    /// The channel damaged it.
    Damaged,
    /// The channel made it, a copy.
    Copied,
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

/// An output port.
pub struct Port {
    /// The earliest thing to settle: one of the three that follow.
    due: Time,
    /// When the packet in service departs.
    leaves: Time,
    /// When the first packet arrives of which nothing was done yet.
    arrives: Time,
    /// The controller's and discipline's next timer.
    timer: Time,
    /// That packet, where it is alone; the ring is empty then.
    lone: Lone,
    ring: Ring,
    view: PortView,
    gate: Gate,
    line: Line,
    /// When the last admitted packet departs, ns.
    busy_until: u64,
    special: Option<Box<Special>>,
    lanes: Option<Box<Lanes>>,
    /// See `reference.rs`.
    reference: Option<Box<Reference>>,
    /// Nothing special and no lanes: one flag to test where packets pass.
    simple: bool,
    /// The discipline is more than a limit: it is asked about every packet.
    decides: bool,
    /// Nothing special, no discipline that is more than a limit: an idle port takes every packet.
    takes: bool,
    /// And no controller: see [`Port::handle_unseen`].
    counts: bool,
    /// A limit is all that the discipline is, and packets may pass at once: see `at_once.rs`.
    at_once: bool,
    /// Bytes that waited, at the least, when packets left since the last timer that had passed at once.
    least: u64,
    /// When the first packet in the ring leaves that did not pass at once; kept where packets may.
    unpassed: Time,
    /// See [`Port::put_off`].
    put_off: bool,
    /// What a packet's TTL falls by when it arrives foreseen: one, and one for each plain port that put it off before.
    hops: u8,
    /// Its packets wait at an interface of a shared medium, see `pulled.rs`.
    on_medium: bool,
    /// Timers expire at multiples of this, microseconds; zero is exact.
    tick_us: u32,
    /// What the store knows it by.
    number: u32,
    /// Counters.
    pub stats: PortStats,
}

/// What a port is made from.
pub struct PortInit {
    /// What the store knows the port by.
    pub number: u32,
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
}

impl Port {
    /// A port with one class.
    ///
    /// # Panics
    /// If the rate is zero and no service curve replaces it.
    pub fn new(init: PortInit) -> Port {
        let special = (!init.before.is_empty() || !init.on_air.is_empty())
            .then(|| Box::new(Special { before: init.before, on_air: init.on_air, ..Special::default() }));
        let Class { qdisc, router } = init.class;
        let (gate, polled) = match qdisc {
            None => (Gate::new(None, router), None),
            Some(Discipline::Arrival(qdisc)) => (Gate::new(Some(qdisc), router), None),
            Some(qdisc) => (Gate::default(), Some(Class { qdisc: Some(qdisc), router })),
        };
        let decides = gate.qdisc.as_ref().is_some_and(|q| q.room.is_none());
        let minded = gate.qdisc.as_ref().is_some_and(|q| q.minded);
        let takes = special.is_none() && !decides && !minded;
        let mut port = Port {
            due: Time::NEVER,
            leaves: Time::NEVER,
            arrives: Time::NEVER,
            timer: Time::NEVER,
            lone: Lone::NONE,
            ring: Ring::default(),
            view: PortView { capacity: init.capacity, backlog_bytes: 0, backlog_packets: 0, busy: false },
            line: Line::new(init.rate, init.service),
            busy_until: 0,
            decides,
            takes,
            counts: takes && gate.router.is_none(),
            at_once: takes && gate.router.as_ref().is_some_and(|r| r.order_independent()),
            simple: special.is_none(),
            least: u64::MAX,
            unpassed: Time::NEVER,
            put_off: false,
            stats: PortStats::default(),
            gate,
            special,
            lanes: None,
            reference: None,
            number: init.number,
            hops: 1,
            on_medium: false,
            tick_us: 0,
        };
        match polled {
            Some(class) => port.schedule(vec![(class, 1.0)], |_| 0),
            None => port.rearm(),
        }
        port
    }

    /// Puts several classes with weights (above zero) before the line instead of the one; `classify` names a packet's class. A
    /// class's controller sees its share of the capacity.
    pub fn schedule(&mut self, classes: Vec<(Class, f64)>, classify: impl Fn(&Packet) -> usize + Send + 'static) {
        self.gate = Gate::default();
        self.lanes = Some(Box::new(Lanes::new(classes, Box::new(classify))));
        self.complicate();
        self.rearm();
    }

    /// Lets the weights of two classes move until flows have equal windows in both; `explicit` is the number of the one whose
    /// packets carry a congestion header.
    pub fn balance(&mut self, explicit: usize, kappa: f64) {
        if let Some(lanes) = self.lanes.as_mut().filter(|l| l.lanes.len() == 2) {
            lanes.balance = Some(balance::Balance::new(explicit, kappa));
            self.rearm();
        }
    }

    /// Lets two classes divide the line by the numbers of flows that send in each, and a controller count on what the other
    /// class leaves. Classes then believe in the whole capacity while the other is silent.
    pub fn divide_by_flows(&mut self) {
        if let Some(lanes) = self.lanes.as_mut().filter(|l| l.lanes.len() == 2) {
            lanes.division = Some(Box::new(division::Division::new()));
            lanes.lanes.iter_mut().for_each(|lane| lane.counts_on = 1.0);
            self.rearm();
        }
    }

    /// Whether a driver must poll this port because departures are not known in advance.
    pub fn is_scheduled(&self) -> bool {
        self.lanes.is_some() || self.on_medium || self.reference.is_some()
    }
    /// Whether a controller or discipline may write into packets.
    pub fn writes(&self) -> bool {
        self.gate.router.is_some() || self.decides
    }
    /// The capacity that controllers believe in, bytes/s.
    pub fn capacity(&self) -> f64 {
        self.view.capacity
    }
    /// What controllers see; where classes [divide](Port::divide_by_flows) the line, that of the first one. Settle first.
    pub fn view(&self) -> PortView {
        let divided = self.lanes.as_ref().filter(|lanes| lanes.division.is_some());
        divided.map_or(self.view, |lanes| lanes.view(0, self.view.capacity))
    }

    fn rearm(&mut self) {
        let leaves = match &self.lanes {
            Some(l) => {
                let gates = l.lanes.iter().map(|l| l.gate.next_timer());
                self.timer = gates.min().unwrap_or(Time::NEVER).min(l.moves());
                l.serving.map_or(Time::NEVER, |s| s.departs)
            }
            None => {
                self.timer = self.gate.next_timer();
                self.leaves
            }
        };
        let mut line = Time::NEVER;
        if let Some(special) = &self.special {
            self.timer = self.timer.min(special.next_timer());
            line = special.line_timer();
        }
        self.timer = self.at_tick(self.timer);
        self.due = self.timer.min(leaves).min(self.arrives).min(line);
    }
    /// When a timer expires that is due at `due`.
    #[inline]
    fn at_tick(&self, due: Time) -> Time {
        if self.tick_us == 0 { due } else { due.next_multiple_of(Time::micros(self.tick_us as u64)) }
    }

    /// A packet arrives. Call in order of time.
    pub fn handle_packet(&mut self, now: Time, handle: u32, store: &mut impl Store) -> Arrival {
        let bytes = store.packet(handle).ip_len as u32;
        self.handle_unseen((now, Time::ZERO), (handle, bytes), store)
    }

    /// There is more to it than a class with a discipline and a controller before a line.
    fn complicate(&mut self) {
        (self.simple, self.takes, self.counts, self.at_once) = (false, false, false, false);
    }

    /// [`Port::handle_packet`], given the packet's length, by a driver that knows that nobody looks at the port before `unseen`.
    /// Then a packet that finds the line idle and that has left by then need not be kept in mind at a port that only counts: it
    /// is counted. At others nothing is done about it before the next one comes, see `lone.rs`.
    #[inline(always)]
    pub fn handle_unseen(
        &mut self,
        (now, unseen): (Time, Time),
        (handle, bytes): (u32, u32),
        store: &mut impl Store,
    ) -> Arrival {
        if self.counts {
            return self.handle_counting((now, unseen), (handle, bytes), store);
        }
        if self.at_once {
            return self.handle_at_once((now, unseen), (handle, bytes), store);
        }
        if self.lone.departs <= now && self.lone_passes(self.stats.unwatched(now.min(unseen)), store) {
            self.forget_lone();
        } else {
            self.settle_before_arrival(now, store);
        }
        if self.takes
            && !self.view.busy
            && let stats = &self.stats
            && let Some(departs) = self.line.finish_if(now.0, bytes, |at| stats.is_unwatched(Time(at), unseen))
        {
            self.busy_until = departs;
            self.expect(now, Lone { departs: Time(departs), handle, bytes: bytes as u16 });
            return Arrival::Departs(Time(departs));
        }
        self.stats.arrived += 1;
        store.note(now, self.number, handle, Note::Arrived);
        if !self.simple {
            return self.handle_specially(now, handle, store);
        }
        if !self.admit(now, (handle, bytes), store) {
            return Arrival::Dropped;
        }
        let departs = self.departure(now, bytes);
        self.ring.push(Waiting { arrives: now, departs, handle, bytes: bytes as u16, lost: false });
        self.join(now, departs, bytes);
        Arrival::Departs(departs)
    }

    /// Whether a packet may wait behind those that do, if a limit is all that the discipline is.
    #[inline(always)]
    fn has_room(&self, bytes: u32) -> bool {
        let waiting = (self.view.backlog_bytes, self.view.backlog_packets);
        let room = self.gate.qdisc.as_ref().and_then(|qdisc| qdisc.room.as_ref());
        room.is_none_or(|room| room.fits(waiting, bytes as u16))
    }

    #[cold]
    fn drop_packet(&mut self, now: Time, handle: u32, cause: DropCause, store: &mut impl Store) {
        let (router, stats) = (&mut self.gate.router, &mut self.stats);
        mark_or_drop(router, stats, now, (self.number, handle), Verdict::Drop(cause), &self.view, store);
    }

    /// Controller and discipline look at an arriving packet; whether it joins the queue.
    #[inline]
    fn admit(&mut self, now: Time, (handle, bytes): (u32, u32), store: &mut impl Store) -> bool {
        let packet = store.packet(handle);
        if let Some(router) = &mut self.gate.router {
            router.on_arrival(now, packet, &self.view);
        }
        let mut verdict = Verdict::Accept;
        if self.decides {
            let idle_since = (!self.view.busy).then_some(Time(self.busy_until));
            let decide = |q: &mut Box<Admission>| q.law.on_arrival(now, packet, &self.view, idle_since);
            verdict = self.gate.qdisc.as_mut().map_or(Verdict::Accept, decide);
        } else if self.view.busy && !self.has_room(bytes) {
            verdict = Verdict::Drop(DropCause::Overflow);
        }
        if verdict != Verdict::Accept {
            let (router, stats) = (&mut self.gate.router, &mut self.stats);
            return mark_or_drop(router, stats, now, (self.number, handle), verdict, &self.view, store);
        }
        true
    }

    /// When a packet leaves that comes at `at`, after those before it.
    #[inline]
    fn departure(&mut self, at: Time, bytes: u32) -> Time {
        let idle = self.busy_until <= at.0;
        self.busy_until = self.line.finish(if idle { at.0 } else { self.busy_until }, bytes, idle);
        Time(self.busy_until)
    }

    /// Whether [`Port::foresee`] is exact: nothing is decided at arrival, nothing lost.
    pub fn is_foreseeable(&self) -> bool {
        self.gate.qdisc.is_none() && self.simple
    }
    /// Packets foreseen that have not arrived.
    pub fn foreseen(&self) -> usize {
        self.ring.len_ahead() as usize + self.lone.is_there() as usize
    }

    /// A foreseen packet has passed `hops` routers since its TTL was last counted down, this one included; one by default.
    pub fn set_hops(&mut self, hops: u8) {
        self.hops = hops;
    }

    /// When this port next has something to settle. A simulator need not come back for a settled port; a real line does.
    pub fn poll_timeout(&self) -> Time {
        if let Some(due) = self.reference_due() {
            return due;
        }
        self.due.min(self.special.as_ref().map_or(Time::NEVER, |s| s.line_timer()))
    }
    /// The time asked for has come.
    pub fn handle_timeout(&mut self, now: Time, store: &mut impl Store) {
        if self.reference.is_some() {
            return self.run_reference(now, store);
        }
        self.due = self.poll_timeout(); // the other end of a shared line may have changed it
        self.settle(now, store);
    }
    /// A packet of a scheduled port that has left: its handle and when its last bit did. Lost packets are not told.
    pub fn poll_transmit(&mut self) -> Option<(u32, Time)> {
        match &mut self.reference {
            Some(reference) => reference.poll_transmit(),
            None => self.lanes.as_mut()?.sent.pop_front(),
        }
    }
}

/// Carries out a verdict other than acceptance; whether the packet joins the queue all the same.
#[cold]
fn mark_or_drop(
    router: &mut Option<Box<AnyRouter>>,
    stats: &mut PortStats,
    now: Time,
    (number, handle): (u32, u32),
    verdict: Verdict,
    view: &PortView,
    store: &mut impl Store,
) -> bool {
    let packet = store.packet(handle);
    let Verdict::Drop(cause) = verdict else {
        packet.set_ecn(Ecn::Marked);
        stats.marked();
        store.note(now, number, handle, Note::Marked);
        return true;
    };
    if let Some(router) = router {
        router.on_drop(now, packet, cause, view);
    }
    stats.dropped(cause);
    store.note(now, number, handle, Note::Dropped(cause));
    store.release(handle);
    false
}

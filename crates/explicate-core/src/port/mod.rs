//! An output port: queue disciplines, router controllers and the link's service, composed.
//!
//! `reference.rs` is the port as a textbook has it; read it first. The forms in `fast/` give the same results.
//!
//! A port whose service is known in advance and whose queue is one first-in first-out class is *settled*: a packet's
//! departure is computed when it arrives, and everything that happens in between (departures with their feedback and
//! marks, control timers) is caught up lazily, in order of time, before anything observes the port. A port with several
//! classes, or with a discipline that decides at departure, picks its next packet when the line falls free, so a driver has
//! to come back at [`Port::poll_timeout`].
//!
//! On a tie departures come before timers, and both before arrivals.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use crate::api::{AnyRouter, PortView};
use crate::channel::{Channel, ServiceCurve};
pub use crate::passage::{Slot, Waiting};
use crate::qdisc::{Discipline, DropCause, Verdict};
use crate::units::{Rate, Time};
use crate::wire::{Ecn, Packet};

mod balance;
mod division;
mod fast;
mod gate;
mod lanes;
mod line;
mod looking;
mod pulled;
mod reference;
mod shared;
mod special;
pub mod stats;

use fast::in_order::Lone;
use fast::ring::Ring;
pub use gate::Class;
use gate::Gate;
use lanes::Lanes;
use line::Line;
pub use shared::SharedLine;
pub use special::Equipment;
use special::Special;
pub use stats::PortStats;

/// Where a port finds packets by handle.
pub trait Store {
    /// The packet behind a handle.
    fn packet(&mut self, handle: u32) -> &mut Packet;
    /// All packets, if they stand side by side by handle and no notes are taken; by default none: each is asked for.
    fn slots(&mut self) -> Option<&mut [Slot]> {
        None
    }
    /// A packet was dropped or lost: its handle is free.
    fn release(&mut self, handle: u32);
    /// A second packet like this one; by default there is none, and channels that double packets do not.
    fn copy(&mut self, handle: u32) -> Option<u32> {
        let _ = handle;
        None
    }
    /// Something happened to a packet at the port of this number (for traces); by default it is ignored.
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

/// A packet that arrives: its handle and IP length.
#[derive(Clone, Copy)]
pub struct Arriving {
    /// What the store knows it by.
    pub handle: u32,
    /// IP bytes.
    pub bytes: u32,
}

/// The present, and how long nothing observes the port: no sample, trace or end of a warm-up before `unobserved_until`.
#[derive(Clone, Copy)]
pub struct Moment {
    /// Now.
    pub now: Time,
    /// Zero if anything may observe the port at any time.
    pub unobserved_until: Time,
}

/// How far ahead a foreseen packet may be dealt with.
#[derive(Clone, Copy)]
pub struct Horizon {
    /// Nothing observes the port before.
    pub unobserved_until: Time,
    /// Earlier ports write nothing more into packets that arrive before.
    pub headers_final_before: Time,
}

/// The form that a port has, which decides the way that packets take through it. The first four are the fast forms for a queue
/// that no more than a limit rules; each form may do what those after it may not.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Mode {
    /// Nothing is written, and all that is decided is whether there is room: packets are counted (`fast/counting.rs`).
    Counting,
    /// The same, and counting waits until something observes the port (`fast/deferred.rs`).
    Deferred,
    /// To the controller it is the same whether a packet departs before or after the next one arrives, so that it is shown
    /// the departure with the arrival (`fast/cut_through.rs`).
    CutThrough,
    /// The controller sees arrivals and departures in order of time (`fast/in_order.rs`).
    InOrder,
    /// A discipline decides about every packet, or sees departures.
    Deciding,
    /// Channels, codings or a belief about the capacity that changes (`special.rs`).
    Impaired,
    /// The next packet is chosen when the line falls free (`lanes.rs`).
    Scheduled,
    /// Packets wait at an interface of a shared medium (`pulled.rs`).
    OnMedium,
    /// One event for each departure (`reference.rs`).
    Reference,
}

impl Mode {
    /// Of a port with one class.
    fn of(gate: &Gate, impaired: bool) -> Mode {
        if impaired {
            return Mode::Impaired;
        }
        match &gate.router {
            _ if gate.qdisc.as_ref().is_some_and(|qdisc| qdisc.room.is_none() || qdisc.minded) => Mode::Deciding,
            None => Mode::Counting,
            Some(router) if router.order_independent() => Mode::CutThrough,
            Some(_) => Mode::InOrder,
        }
    }
}

/// An output port.
pub struct Port {
    // What all forms share.
    mode: Mode,
    view: PortView,
    gate: Gate,
    line: Line,
    special: Option<Box<Special>>,
    /// Timers expire at multiples of this, microseconds; zero is exact.
    tick_us: u32,
    /// What the store knows it by.
    number: u32,
    /// Counters.
    pub stats: PortStats,

    // The fast forms and the scheduler.
    /// The earliest thing to settle: one of the three that follow.
    due: Time,
    /// When the packet in service departs.
    leaves: Time,
    /// When the first packet arrives of which nothing was done yet.
    arrives: Time,
    /// The controller's and discipline's next timer.
    timer: Time,
    /// When the last admitted packet departs, ns.
    busy_until: u64,

    // The fast forms alone.
    /// The packet that arrives then, where it is alone; the ring is empty then.
    lone: Lone,
    ring: Ring,
    /// Bytes that waited, at the least, when packets left since the last timer that had been cut through.
    least: u64,
    /// When the first packet in the ring leaves that was not cut through; kept where packets may be.
    unpassed: Time,
    /// What a packet's TTL falls by when it arrives foreseen: one, and one for each plain port that deferred it before.
    hops: u8,

    // The forms whose departures are polled.
    lanes: Option<Box<Lanes>>,
}

/// What a port is made from.
pub struct PortInit {
    /// What the store knows the port by.
    pub number: u32,
    /// The line's rate.
    pub rate: Rate,
    /// Replaces the constant rate.
    pub service: Option<Box<dyn ServiceCurve>>,
    /// The capacity that controllers are configured with, bytes/s.
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
            mode: Mode::of(&gate, special.is_some()),
            least: u64::MAX,
            unpassed: Time::NEVER,
            stats: PortStats::default(),
            gate,
            special,
            lanes: None,
            number: init.number,
            hops: 1,
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
        self.mode = self.mode.max(Mode::Scheduled);
        self.rearm();
    }

    /// Lets the weights of two classes move until flows have equal windows in both; `explicit` is the number of the one whose
    /// packets carry a congestion header.
    pub fn balance(&mut self, explicit: usize, kappa: f64) {
        if let Some(lanes) = self.lanes.as_deref_mut().filter(|l| l.lanes.len() == 2) {
            lanes.balance = Some(balance::Balance::new(explicit, kappa));
            self.rearm();
        }
    }

    /// Lets two classes divide the line by the numbers of flows that send in each, and a controller count on what the other
    /// class leaves. The capacity of a class is then the whole while the other is idle.
    pub fn divide_by_flows(&mut self) {
        if let Some(lanes) = self.lanes.as_deref_mut().filter(|l| l.lanes.len() == 2) {
            lanes.division = Some(Box::new(division::Division::new()));
            lanes.lanes.iter_mut().for_each(|lane| lane.counts_on = 1.0);
            self.rearm();
        }
    }

    /// Whether a driver must poll this port because departures are not known in advance.
    pub fn is_scheduled(&self) -> bool {
        self.mode >= Mode::Scheduled
    }
    /// Whether a controller or discipline may write into packets.
    pub fn writes(&self) -> bool {
        self.gate.router.is_some() || self.gate.decides()
    }
    /// The capacity that controllers are configured with, bytes/s.
    pub fn capacity(&self) -> f64 {
        self.view.capacity
    }
    /// What controllers see; where classes [divide](Port::divide_by_flows) the line, that of the first one. Settle first.
    pub fn view(&self) -> PortView {
        let divided = self.lanes.as_deref().filter(|lanes| lanes.division.is_some());
        divided.map_or(self.view, |lanes| lanes.view(0, self.view.capacity))
    }

    fn rearm(&mut self) {
        let leaves = match self.lanes.as_deref() {
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
        self.handle_unobserved(Moment { now, unobserved_until: Time::ZERO }, Arriving { handle, bytes }, store)
    }

    /// When this port next has something to settle. A simulator need not come back for a settled port; a real line does.
    pub fn poll_timeout(&self) -> Time {
        if self.is_reference() {
            return self.reference_due();
        }
        self.settled_due()
    }
    /// The same, of a port that is settled.
    #[inline]
    fn settled_due(&self) -> Time {
        self.due.min(self.special.as_ref().map_or(Time::NEVER, |s| s.line_timer()))
    }
    /// The time asked for has come.
    pub fn handle_timeout(&mut self, now: Time, store: &mut impl Store) {
        if self.is_reference() {
            return self.run_reference(now, store);
        }
        self.due = self.settled_due(); // the other end of a shared line may have changed it
        self.settle(now, store);
    }
    /// A packet of a scheduled port that has left: its handle and when its last bit did. Lost packets are left out.
    pub fn poll_transmit(&mut self) -> Option<(u32, Time)> {
        if self.is_reference() {
            return self.poll_reference();
        }
        self.lanes.as_deref_mut()?.sent.pop_front()
    }
}

/// A packet at the port of this number.
#[derive(Clone, Copy)]
struct At {
    port: u32,
    handle: u32,
}

/// Carries out a verdict other than acceptance; whether the packet joins the queue all the same.
#[cold]
fn mark_or_drop(
    router: &mut Option<Box<AnyRouter>>,
    stats: &mut PortStats,
    now: Time,
    At { port: number, handle }: At,
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

//! An output port: queue disciplines, router controllers and the link's service, composed.
//!
//! `reference.rs` is the textbook version of a port; read it first. The forms in `fast/` give the same results.
//!
//! A port whose service is known in advance and which has a single FIFO class *catches up* lazily: a packet's
//! departure is computed when the packet arrives. What happens in between (departures with their feedback and marks,
//! control timers) is computed in order of time before anything observes the port. A port with several classes, or
//! with a discipline that decides at departure, selects its next packet when the line becomes free, so a driver has
//! to call again at [`Port::poll_timeout`].
//!
//! On a tie departures come before timers, and both before arrivals.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use crate::api::{AnyRouter, PortView};
use crate::channel::{Channel, ServiceCurve};
use crate::qdisc::{Discipline, DropCause, Verdict};
pub use crate::transit::{Slot, Waiting};
use crate::units::{Rate, Time};
use crate::wire::{Ecn, Packet};

mod balance;
mod class;
mod class_scheduler;
mod division;
mod fast;
mod impairments;
mod inspect;
mod line;
mod medium_interface;
mod reference;
mod shared;
pub mod stats;

pub use class::Class;
use class::QueueControl;
use class_scheduler::ClassScheduler;
pub use division::Flows;
use fast::ring::Ring;
pub use impairments::Equipment;
use impairments::Impairments;
use line::Line;
pub use shared::SharedLine;
pub use stats::PortStats;

/// Where a port finds packets by their handles.
pub trait Store {
    /// The packet behind a handle.
    fn packet(&mut self, handle: u32) -> &mut Packet;
    /// All packets, if they are contiguous by handle and no notes are taken. By default `None`: each is requested
    /// singly.
    fn slots(&mut self) -> Option<&mut [Slot]> {
        None
    }
    /// A packet was dropped or lost: its handle is free.
    fn release(&mut self, handle: u32);
    /// Copies this packet; by default returns nothing, and channels make no duplicates.
    fn copy(&mut self, handle: u32) -> Option<u32> {
        let _ = handle;
        None
    }
    /// Something happened to a packet at the port with this number (for traces); ignored by default.
    fn note(&mut self, at: Time, port: u32, handle: u32, what: Note) {
        let _ = (at, port, handle, what);
    }
}

/// Events of a packet at a port, for traces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Note {
    /// It arrived.
    Arrived,
    /// It was marked.
    Marked,
    /// Its last bit left, with its final feedback.
    Departed,
    /// It was dropped by the queue.
    Dropped(DropCause),
    /// The channel lost it.
    Lost,
    /// The channel damaged it.
    Damaged,
    /// The channel made this copy.
    Copied,
}

/// The fate of an arriving packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arrival {
    /// It departs at this time.
    Departs(Time),
    /// It departs at this time, and the channel will lose it.
    DepartsLost(Time),
    /// It waits for the scheduler: poll the port.
    Queued,
    /// It was dropped, and its handle released.
    Dropped,
}

/// A packet that arrives: its handle and IP length.
#[derive(Clone, Copy)]
pub struct Arriving {
    /// Its handle in the store.
    pub handle: u32,
    /// IP bytes.
    pub bytes: u32,
}

/// The present time, and how long nothing observes the port: no sample, trace or end of the warm-up before
/// `unobserved_until`.
#[derive(Clone, Copy)]
pub struct Moment {
    /// Now.
    pub now: Time,
    /// Zero if anything may observe the port at any time.
    pub unobserved_until: Time,
}

/// How far ahead a predicted packet may be processed.
#[derive(Clone, Copy)]
pub struct Horizon {
    /// No observation occurs before this time.
    pub unobserved_until: Time,
    /// Earlier ports no longer write into packets that arrive before this time.
    pub headers_final_before: Time,
}

/// The form of a port, which selects the code for its packets. The first four are the fast forms, for a queue whose
/// discipline is only a limit. Each form permits shortcuts that the later ones do not.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Mode {
    /// No packet is written into, and the only decision is whether there is room: packets are counted
    /// (`fast/counting.rs`).
    Counting,
    /// As `Counting`, and counting is deferred until something observes the port (`fast/deferred.rs`).
    Deferred,
    /// The controller's result does not depend on whether a packet departs before or after the next one arrives. It
    /// is called for the departure together with the arrival (`fast/cut_through.rs`).
    CutThrough,
    /// The controller is called for arrivals and departures in order of time (`fast/catch_up.rs`).
    InOrder,
    /// A discipline decides about every packet, or is called for departures.
    Deciding,
    /// Channels, codings or a configured capacity that changes (`impairments.rs`).
    Impaired,
    /// The next packet is selected when the line becomes free (`class_scheduler.rs`).
    Scheduled,
    /// Packets wait at an interface of a shared medium (`feeds_medium.rs`).
    OnMedium,
    /// One event for each departure (`reference.rs`).
    Reference,
}

impl Mode {
    /// The form of a port with one class.
    fn of(control: &QueueControl, impaired: bool) -> Mode {
        if impaired {
            return Mode::Impaired;
        }
        match &control.router {
            _ if control.qdisc.as_ref().is_some_and(|qdisc| qdisc.queue_limit.is_none() || qdisc.wants_departures) => {
                Mode::Deciding
            }
            None => Mode::Counting,
            Some(router) if router.order_independent() => Mode::CutThrough,
            Some(_) => Mode::InOrder,
        }
    }
}

/// An output port.
pub struct Port {
    // State of all forms.
    mode: Mode,
    view: PortView,
    control: QueueControl,
    line: Line,
    impairments: Option<Box<Impairments>>,
    /// Timers expire at multiples of this, microseconds; zero is exact.
    tick_us: u32,
    /// Its number in the store.
    number: u32,
    /// Counters.
    pub stats: PortStats,

    // State of the fast forms and the scheduler.
    /// The earliest of the three times that follow.
    due: Time,
    /// When the packet in service departs.
    leaves: Time,
    /// When the first unprocessed packet arrives.
    arrives: Time,
    /// The controller's and discipline's next timer.
    timer: Time,
    /// When the last admitted packet departs, ns.
    busy_until: u64,

    // State of the fast forms only.
    ring: Ring,
    /// The least backlog, in bytes, at departures of cut-through packets since the last timer.
    least: u64,
    /// When the first packet in the ring leaves that was not cut through; maintained where packets may be cut
    /// through.
    unpassed: Time,
    /// Decrement of a packet's TTL when it arrives as predicted: one, and one for each plain port that deferred it
    /// before.
    hops: u8,

    // State of the forms whose departures are polled.
    scheduler: Option<Box<ClassScheduler>>,
}

/// Arguments for making a port.
pub struct PortInit {
    /// The number of the port in the store.
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
    /// Impairments on the link, in order.
    pub on_air: Vec<Box<dyn Channel>>,
}

impl Port {
    /// A port with one class.
    ///
    /// # Panics
    /// If the rate is zero and no service curve replaces it.
    pub fn new(init: PortInit) -> Port {
        let impairments = (!init.before.is_empty() || !init.on_air.is_empty())
            .then(|| Box::new(Impairments { before: init.before, on_air: init.on_air, ..Impairments::default() }));
        let Class { qdisc, router } = init.class;
        let (control, polled) = match qdisc {
            None => (QueueControl::new(None, router), None),
            Some(Discipline::Arrival(qdisc)) => (QueueControl::new(Some(qdisc), router), None),
            Some(qdisc) => (QueueControl::default(), Some(Class { qdisc: Some(qdisc), router })),
        };
        let mut port = Port {
            due: Time::NEVER,
            leaves: Time::NEVER,
            arrives: Time::NEVER,
            timer: Time::NEVER,
            ring: Ring::default(),
            view: PortView { capacity: init.capacity, backlog_bytes: 0, backlog_packets: 0, busy: false },
            line: Line::new(init.rate, init.service),
            busy_until: 0,
            mode: Mode::of(&control, impairments.is_some()),
            least: u64::MAX,
            unpassed: Time::NEVER,
            stats: PortStats::default(),
            control,
            impairments,
            scheduler: None,
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

    /// Replaces the one class by several with weights (above zero); `classify` returns a packet's class. The
    /// controller of a class sees its share of the capacity.
    pub fn schedule(&mut self, classes: Vec<(Class, f64)>, classify: impl Fn(&Packet) -> usize + Send + 'static) {
        self.control = QueueControl::default();
        self.scheduler = Some(Box::new(ClassScheduler::new(classes, Box::new(classify))));
        self.mode = self.mode.max(Mode::Scheduled);
        self.rearm();
    }

    /// Moves the weights of two classes until flows have equal windows in both; `explicit` is the number of the class
    /// whose packets have a congestion header.
    pub fn balance(&mut self, explicit: usize, kappa: f64) {
        if let Some(scheduler) = self.scheduler.as_deref_mut().filter(|l| l.classes.len() == 2) {
            scheduler.balance = Some(balance::Balance::new(explicit, kappa));
            self.rearm();
        }
    }

    /// Makes two classes divide the line by the numbers of flows that send in each. The controller of a class may
    /// also use what the other class leaves: while that is idle, the whole capacity.
    pub fn divide_by_flows(&mut self) {
        if let Some(scheduler) = self.scheduler.as_deref_mut().filter(|l| l.classes.len() == 2) {
            scheduler.division = Some(Box::new(division::Division::new()));
            scheduler.classes.iter_mut().for_each(|class| class.capacity_share = 1.0);
            self.rearm();
        }
    }

    /// Whether a driver must poll this port because departures are not known in advance.
    pub fn is_scheduled(&self) -> bool {
        self.mode >= Mode::Scheduled
    }
    /// Whether a controller or discipline may write into packets.
    pub fn writes(&self) -> bool {
        self.control.router.is_some() || self.control.decides()
    }
    /// The capacity that controllers are configured with, bytes/s.
    pub fn capacity(&self) -> f64 {
        self.view.capacity
    }
    /// The port as controllers see it; where classes [divide](Port::divide_by_flows) the line, for the first class.
    /// Catch up first.
    pub fn view(&self) -> PortView {
        let divided = self.scheduler.as_deref().filter(|scheduler| scheduler.division.is_some());
        divided.map_or(self.view, |scheduler| scheduler.view(0, self.view.capacity))
    }

    fn rearm(&mut self) {
        let leaves = match self.scheduler.as_deref() {
            Some(l) => {
                let timers = l.classes.iter().map(|l| l.control.next_timer());
                self.timer = timers.min().unwrap_or(Time::NEVER).min(l.next_rebalance());
                l.serving.map_or(Time::NEVER, |s| s.departs)
            }
            None => {
                self.timer = self.control.next_timer();
                self.leaves
            }
        };
        let mut line = Time::NEVER;
        if let Some(impairments) = &self.impairments {
            self.timer = self.timer.min(impairments.next_timer());
            line = impairments.line_timer();
        }
        self.timer = self.at_tick(self.timer);
        self.due = self.timer.min(leaves).min(self.arrives).min(line);
    }
    /// When a timer due at `due` expires.
    #[inline]
    fn at_tick(&self, due: Time) -> Time {
        if self.tick_us == 0 { due } else { due.next_multiple_of(Time::micros(self.tick_us as u64)) }
    }

    /// A packet arrives. Call in order of time.
    pub fn handle_packet(&mut self, now: Time, handle: u32, store: &mut impl Store) -> Arrival {
        let bytes = store.packet(handle).ip_len as u32;
        self.handle_unobserved(Moment { now, unobserved_until: Time::ZERO }, Arriving { handle, bytes }, store)
    }

    /// When this port next has something to do. A simulator need not call a port that catches up; a real line must.
    pub fn poll_timeout(&self) -> Time {
        if self.is_reference() {
            return self.reference_due();
        }
        self.next_due()
    }
    /// As `poll_timeout`, for a port that catches up.
    #[inline]
    fn next_due(&self) -> Time {
        self.due.min(self.impairments.as_ref().map_or(Time::NEVER, |s| s.line_timer()))
    }
    /// The time returned by [`Port::poll_timeout`] has come.
    pub fn handle_timeout(&mut self, now: Time, store: &mut impl Store) {
        if self.is_reference() {
            return self.run_reference(now, store);
        }
        self.due = self.next_due(); // the other end of a shared line may have changed it
        self.catch_up(now, store);
    }
    /// A packet that has left a scheduled port: its handle and the time when its last bit left. Lost packets are
    /// omitted.
    pub fn poll_transmit(&mut self) -> Option<(u32, Time)> {
        if self.is_reference() {
            return self.poll_reference();
        }
        self.scheduler.as_deref_mut()?.sent.pop_front()
    }
}

/// A packet at the port with this number.
#[derive(Clone, Copy)]
struct At {
    port: u32,
    handle: u32,
}

/// Carries out a verdict other than acceptance; returns whether the packet still joins the queue.
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
    stats.dropped(cause, packet.is_data());
    store.note(now, number, handle, Note::Dropped(cause));
    store.release(handle);
    false
}

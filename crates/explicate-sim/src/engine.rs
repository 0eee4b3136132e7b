//! The engine: one event per hop, in order of time; ties are broken at random, each time independently (`wheel.rs`).
//!
//! A packet's event is its arrival at the end of a link. The port of the next link catches up to that time, the packet joins
//! the port, and its arrival at the far end of the link is then known. A link is *fused* if a single other link feeds it and
//! its port makes no decision: its hop is computed within the preceding event.

use std::collections::BTreeMap;

use explicate_core::agent::Agent;
use explicate_core::medium::dcf::Medium;
use explicate_core::port::{Arriving, Slot};
use explicate_core::rng;
use explicate_core::units::Time;
use explicate_core::wire::SackRanges;

use crate::arena::{Arena, NIL};
use crate::event::{Due, Event};
use crate::wheel::{Taken, Wheel};

mod ack_fusion;
mod agents;
mod delivery;
mod ends;
mod event_prefetch;
mod forwarding;
mod fusing;
mod hop;
mod host_queue;
mod inspect;
mod link;
mod media;
mod network;
mod processing;
mod reference;
mod reroute;
mod sender_fusion;
mod timers;

pub use ends::{Ends, Member, RoutePair};
pub(crate) use hop::Hop;
use hop::Mark;
pub use link::Link;
use media::Radio;
pub use processing::Processing;
pub use reroute::NewRoute;

/// Remaining work of an event.
enum Onward {
    /// The packet in this slot continues from this place; its IP length is cached from the last header access.
    Forward {
        slot: u32,
        place: u32,
        bytes: u32,
    },
    /// A flow may send, after it has taken the acknowledgement in this slot, unless that is [`NIL`].
    Send {
        flow: u32,
        slot: u32,
    },
    Nothing,
}

/// The outcome for a packet that joined a port.
struct Forwarded {
    /// The flow that is fused with the arrival of this packet, or [`NIL`].
    flow: u32,
    /// When the flow takes it; never if the port dropped it.
    at: Time,
}

/// A machine with the due time of its pending event.
struct Armed<T> {
    machine: T,
    due: Time,
}

impl<T> Armed<T> {
    /// A machine that has no event yet.
    fn new(machine: T) -> Armed<T> {
        Armed { machine, due: Time::NEVER }
    }
}

/// A network, its flows and the pending events.
pub struct Engine {
    arena: Arena,
    wheel: Wheel,
    /// Links, in the order in which they were added.
    pub links: Vec<Link>,
    /// Flows, in the order in which they were added.
    pub ends: Vec<Ends>,
    /// The first flow of each of the scenario's groups.
    groups: Vec<u32>,
    /// Routes, end to end.
    routes: Vec<Hop>,
    /// Due times of the pending events of receiving ends with delayed acknowledgements.
    held_back: BTreeMap<u32, Time>,
    /// Queues of hosts, and for each link the number of its queue, or [`NIL`]; empty without queues.
    host_queues: Vec<host_queue::Queue>,
    host_queue_of: Vec<u32>,
    /// Wireless media.
    media: Vec<Armed<Medium>>,
    /// For each link its number on a medium, or [`Radio::NONE`]; empty without media.
    radios: Vec<Radio>,
    /// For a link that shares its line, the link of the other direction.
    twins: BTreeMap<u32, u32>,
    /// Agents by node.
    agents: BTreeMap<u32, Armed<Box<dyn Agent>>>,
    /// Destination nodes of flows, if an agent needs them.
    destinations: Vec<u32>,
    /// Routes of control packets between nodes, found when first needed.
    control_routes: BTreeMap<(u32, u32), u32>,
    find_route: Option<RouteFinder>,
    /// Changes of routes.
    changes: Vec<reroute::Change>,
    /// ACKs that were in transit at the last observation and may be fused with their sender, the last one first; and the
    /// arrival time of the current one.
    waiting: Vec<u32>,
    waited: Time,
    /// The ranges of the last acknowledgement that had any.
    sack: SackRanges,
    now: Time,
    /// No sampler observes ports or flows before this time.
    unobserved_until: Time,
    /// All ones, or zero if ports must catch up to the present before any packet is read.
    lag: u64,
    /// Links at which ACKs are fused, and the number of events at the last observation.
    turns: u32,
    observed_after: u64,
    /// Packets since then that were not fused because a preceding packet was not.
    unturned: usize,
    end: Time,
    fuse: bool,
    /// Pending departures, in the reference version only.
    departures: Option<Box<reference::Departures>>,
    /// Progress of prefetching, which is done in large networks only.
    prefetch: event_prefetch::Prefetch,
    large: bool,
}

/// Finds the links from a node to another.
pub type RouteFinder = Box<dyn FnMut(u32, u32) -> Option<Vec<u32>> + Send>;

/// The rank of a slot's source: the number of a link, or the kind and owner of a timer. Fusion does not change it.
#[inline]
fn rank(routes: &[Hop], slot: &Slot) -> u32 {
    let event = Event::of(slot);
    if event.is_timer() { event.timer_rank() } else { routes[event.place() as usize].link() }
}

impl Engine {
    /// An empty network whose run ends at `end`. The seed breaks ties. `fuse = false` disables fusion, so that tests can show
    /// that it does not change results.
    pub fn new(seed: u64, end: Time, fuse: bool) -> Engine {
        Engine {
            arena: Arena::new(),
            wheel: Wheel::new(rng::key(seed, "ties")),
            links: Vec::new(),
            ends: Vec::new(),
            groups: Vec::new(),
            routes: Vec::new(),
            held_back: BTreeMap::new(),
            host_queues: Vec::new(),
            host_queue_of: Vec::new(),
            media: Vec::new(),
            radios: Vec::new(),
            twins: BTreeMap::new(),
            agents: BTreeMap::new(),
            destinations: Vec::new(),
            control_routes: BTreeMap::new(),
            find_route: None,
            changes: Vec::new(),
            waiting: Vec::new(),
            waited: Time::ZERO,
            sack: SackRanges::NONE,
            now: Time::ZERO,
            unobserved_until: Time::ZERO,
            lag: 0,
            turns: 0,
            observed_after: 0,
            unturned: 0,
            end,
            fuse,
            departures: None,
            prefetch: event_prefetch::Prefetch::default(),
            large: false,
        }
    }

    /// The current time.
    pub fn now(&self) -> Time {
        self.now
    }
    /// Events handled.
    pub fn events(&self) -> u64 {
        self.wheel.taken
    }
    /// Runs all events up to `until` (included).
    pub fn run_until(&mut self, until: Time) {
        self.run_unobserved(until, until);
    }

    /// As [`Engine::run_until`], given that no sampler observes ports or flows before `next_sample`.
    pub fn run_unobserved(&mut self, until: Time, next_sample: Time) {
        let until = until.min(self.end);
        let looks = !self.fuse || self.arena.log.is_some() || !self.agents.is_empty();
        let unobserved_until = if looks { Time::ZERO } else { next_sample.min(self.end) };
        self.lag = if looks { 0 } else { u64::MAX };
        if unobserved_until != self.unobserved_until {
            self.unobserved_until = unobserved_until;
            self.turn_waiting();
        }
        if self.departures.is_some() {
            self.run_reference(until);
            self.now = until;
            return;
        }
        if self.large {
            self.run_events::<true>(until);
        } else {
            self.run_events::<false>(until);
        }
        self.now = until;
    }

    /// Runs all events up to `until` (included); with prefetching if `LARGE`.
    #[inline(never)]
    fn run_events<const LARGE: bool>(&mut self, until: Time) {
        loop {
            if LARGE {
                self.look_ahead();
            }
            let Some(Taken { slot, time, event }) = self.wheel.pop(&mut self.arena, until.0, |p| rank(&self.routes, p))
            else {
                break;
            };
            // The time of the event: now, or the arrival of an ACK that is fused with its sender.
            let mut at = Time(time);
            self.now = at;
            let onward = if event.is_timer() {
                let due = self.timer(slot, event);
                at = self.waited;
                self.onward(due)
            } else if event.is_turned() {
                self.arrive_turned(slot, event.place())
            } else {
                self.arrive(slot, event.place())
            };
            // All packets are forwarded at this one place, so the call can be inlined.
            let (flow, slot) = match onward {
                Onward::Forward { slot, place, bytes } => {
                    let forwarded = self.forward(at, Arriving { handle: slot, bytes }, place);
                    at = forwarded.at;
                    (forwarded.flow, slot)
                }
                Onward::Send { flow, slot } => (flow, slot),
                Onward::Nothing => continue,
            };
            if flow != NIL && self.send_next(at, flow, slot) {
                self.send_more(at, flow);
            }
        }
    }

    #[inline(always)]
    fn onward(&self, due: Due) -> Onward {
        let slot = due.slot();
        match due.flow() {
            Some(flow) => Onward::Send { flow, slot },
            None if slot == NIL => Onward::Nothing,
            None => Onward::Forward { slot, place: due.place(), bytes: self.arena.get(slot).ip_len as u32 },
        }
    }
}

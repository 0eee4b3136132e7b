//! The engine: one event per hop, in order of time; ties are broken at random, each time independently (`wheel.rs`).
//!
//! A packet's event is its arrival at the end of a link. The port of the next link catches up to that time, the packet joins
//! the port, and its arrival at the far end of the link is then known. A link is *fused* if a single other link feeds it and
//! its port makes no decision: its hop is computed within the preceding event.

use std::collections::BTreeMap;

use explicate_build::source::Source;
use explicate_core::agent::Agent;
use explicate_core::flow::{Flow, FlowInit};
use explicate_core::medium::dcf::Medium;
use explicate_core::port::{Arrival, Arriving, Moment, Port};
use explicate_core::rng;
use explicate_core::sink::Sink;
use explicate_core::units::Time;
use explicate_core::wire::{Packet, SackRanges, flag};

use crate::arena::{Arena, NIL};
use crate::prefetch;
use crate::wheel::{Taken, Wheel};

mod ack_fusion;
mod agents;
mod ends;
mod event_prefetch;
mod fusing;
mod hop;
mod inspect;
mod link;
mod media;
mod processing;
mod reference;

mod reroute;
mod sender_fusion;
mod timers;

use ack_fusion::Turn;
pub use ends::{Ends, RoutePair};
pub(crate) use hop::Hop;
use hop::Mark;
pub use link::Link;
use link::{Foreseen, Reads};
pub use processing::Processing;

/// Work that an event leaves: a packet to forward from a place; a flow that may send, as [`FLOW`] with its number, after it
/// has taken the acknowledgement in the slot, if any; or nothing. Two words, returned in registers.
struct Due {
    slot: u32,
    what: u32,
}
const DONE: Due = Due { slot: NIL, what: 0 };

impl Due {
    /// What a flow may send.
    fn of(flow: u32) -> Due {
        Due { slot: NIL, what: FLOW | flow }
    }
}

/// Work that a forwarded packet leaves: a packet and the place from which it continues, or a flow that takes the
/// acknowledgement in the slot. Either field may be [`NIL`].
struct Onward {
    slot: u32,
    place: u32,
    flow: u32,
    /// IP length of the forwarded packet, cached from the last header access.
    bytes: u32,
}

/// In a packet's place: it has still to be turned where it came from, before the link of that place.
const TURNED: u32 = 0x4000_0000;

/// Kinds of timers, in the upper four bits of a slot's place. Packets' places lie below.
const TIMER: u32 = 0x8000_0000;
const FLOW: u32 = 0x8000_0000;
const SOURCE: u32 = 0x9000_0000;
const PORT: u32 = 0xa000_0000;
const AGENT: u32 = 0xb000_0000;
const SINK: u32 = 0xc000_0000;
const MEDIUM: u32 = 0xd000_0000;
const REROUTE: u32 = 0xe000_0000;
const WAITING: u32 = 0xefff_ffff;
const HELD: u32 = 0xf000_0000;
/// Flag in the place of a packet that its host holds: a retransmission. The lower bits are the flow's number.
const AGAIN: u32 = 0x0800_0000;
const KIND: u32 = 0xf000_0000;

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
    /// When the pending event of each receiving end that holds acknowledgements back is due.
    held_back: BTreeMap<u32, Time>,
    /// Shared media, with the due time of their pending events.
    media: Vec<(Medium, Time)>,
    /// For each link its medium and its number there, or [`NIL`]; empty without media.
    radios: Vec<(u32, u32)>,
    /// For a link that shares its line, the link of the other direction.
    twins: BTreeMap<u32, u32>,
    /// Agents by node, with the due time of their pending events.
    agents: BTreeMap<u32, (Box<dyn Agent>, Time)>,
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
    /// What the last acknowledgement with ranges reported.
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
    /// Departures that wait, on the reference way alone.
    departures: Option<Box<reference::Departures>>,
    /// Progress of prefetching, which is done in large networks only.
    prefetch: event_prefetch::Prefetch,
    large: bool,
}

/// Finds the links from a node to another.
pub type RouteFinder = Box<dyn FnMut(u32, u32) -> Option<Vec<u32>> + Send>;

/// The rank of a slot's source: the number of a link, or the kind and owner of a timer. Fusion does not change it. All packets
/// that a host holds for one flow have one rank, so packets that are due at the same time keep their order.
#[inline]
fn rank(routes: &[Hop], packet: &Packet) -> u32 {
    match packet.place {
        held if held & KIND == HELD => held & !AGAIN,
        timer if timer & TIMER != 0 => timer,
        place => routes[(place & !TURNED) as usize].link(),
    }
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
    /// Reserves capacity for links, flows and places of routes: repeated growth fragments memory.
    pub fn reserve(&mut self, links: usize, flows: usize, places: usize) {
        self.links.reserve_exact(links);
        self.ends.reserve_exact(flows);
        self.routes.reserve_exact(places);
        self.arena.reserve(flows);
        prefetch::in_large_pages(self.links.spare_capacity_mut());
        prefetch::in_large_pages(self.ends.spare_capacity_mut());
    }
    /// Adds a link and returns its index.
    pub fn add_link(&mut self, port: Port, delay: Time) -> u32 {
        let settles = port.writes();
        self.links.push(Link {
            port,
            delay,
            fused_to: NIL,
            settles,
            reads: Reads::Nothing,
            foresees: false,
            hops: 1,
            before: NIL,
            after: NIL,
            turn: NIL,
            in_transit: 0,
            bridged: false,
        });
        self.links.len() as u32 - 1
    }
    /// The node at the end of a link does not count TTLs down.
    pub fn end_at_bridge(&mut self, link: u32) {
        self.links[link as usize].bridged = true;
    }
    /// Declares two links half-duplex: transmission on one delays the other.
    pub fn pair(&mut self, one: u32, other: u32) {
        self.twins.extend([(one, other), (other, one)]);
    }
    /// Adds forward and reverse routes, which flows may share.
    pub fn add_routes(&mut self, there: &[u32], back: &[u32]) -> RoutePair {
        RoutePair { forward: self.add_route(there), back: self.add_route(back) }
    }
    /// The scenario's group of a flow.
    pub fn group_of(&self, flow: usize) -> usize {
        self.groups.partition_point(|first| *first as usize <= flow) - 1
    }
    /// Adds a flow with its number within its group. Groups must not decrease from flow to flow, and the number in `init` must
    /// be the number of flows so far.
    pub fn add_flow(
        &mut self,
        init: &FlowInit<'_>,
        way: RoutePair,
        source: Source,
        processing: Processing,
        start: Time,
        group: (u32, u32),
    ) {
        assert_eq!(init.id as usize, self.ends.len(), "flows are numbered in order");
        let RoutePair { forward, back } = way;
        self.groups.resize(self.groups.len().max(group.0 as usize + 1), init.id);
        self.ends.push(Ends {
            flow: Flow::new(init),
            sink: Sink::new(init),
            source,
            processing,
            start,
            number: group.1,
            completed: Time::NEVER,
            forward,
            back,
            timer: NIL,
            timer_due: Time::NEVER,
        });
        self.arm(SOURCE | init.id, start);
    }
    fn add_route(&mut self, links: &[u32]) -> u32 {
        let first = self.routes.len() as u32;
        assert!(self.routes.len() + links.len() < TURNED as usize, "too many routes");
        let last = links.last().expect("a route has links");
        assert!(!self.links[*last as usize].bridged, "no route ends at a bridge");
        self.routes.extend(links.iter().copied().map(Hop::over));
        if let Some(last) = self.routes.last_mut() {
            last.mark(Mark::LAST);
        }
        first
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
        loop {
            if self.large {
                self.look_ahead();
            }
            let Some(Taken { slot, time, place }) = self.wheel.pop(&mut self.arena, until.0, |p| rank(&self.routes, p))
            else {
                break;
            };
            // The time of the event: now, or the arrival of an ACK that is fused with its sender.
            let mut at = Time(time);
            self.now = at;
            let onward = if place & TIMER != 0 {
                let due = self.timer(slot, place);
                at = self.waited;
                self.onward(due)
            } else if place & TURNED != 0 {
                self.arrive_turned(slot, place & !TURNED)
            } else {
                self.arrive(slot, place)
            };
            // All packets take this one way on, so that it need not be a call.
            let Onward { slot, place, mut flow, bytes } = onward;
            if flow == NIL && slot != NIL {
                (flow, at) = self.forward(at, Arriving { handle: slot, bytes }, place);
            }
            if flow != NIL && self.send_next(at, flow, slot) {
                self.send_more(at, flow);
            }
        }
        self.now = until;
    }

    #[inline(always)]
    fn onward(&self, due: Due) -> Onward {
        let Due { slot, what } = due;
        if what & TIMER != 0 {
            return Onward { slot, place: NIL, flow: what & !KIND, bytes: 0 };
        }
        let bytes = if slot == NIL { 0 } else { self.arena.get(slot).ip_len as u32 };
        Onward { slot, place: what, flow: NIL, bytes }
    }

    /// A packet reaches the end of a link.
    #[inline(always)]
    fn arrive(&mut self, slot: u32, place: u32) -> Onward {
        let hop = self.routes[place as usize];
        let mut link = &mut self.links[hop.index()];
        let departed = Time(self.now.0.wrapping_sub(link.delay.0 & self.lag));
        if link.settle_own(departed, self.now, &mut self.arena) {
            self.settle_before_reading(hop.link(), departed);
            link = &mut self.links[hop.index()];
        }
        link.port.stats.delivered += 1;
        let hops = link.hops;
        link.in_transit -= (hop.has(Mark::TURN | Mark::REPLY)) as u32;
        let packet = self.arena.get_mut(slot);
        let onward = Onward { slot, place: place + 1, flow: NIL, bytes: packet.ip_len as u32 };
        if hop.has(Mark::LAST | Mark::SEEN) {
            packet.ttl = packet.ttl.saturating_sub(hops - 1);
            if !hop.has(Mark::SEEN) || self.show(slot, place) {
                let due = self.deliver(slot);
                return self.onward(due);
            }
            return onward;
        }
        packet.ttl = packet.ttl.saturating_sub(hops);
        onward
    }

    /// Makes the headers of a packet final that departed over this link at `departed`: the port, and the ports that it is fused
    /// to, have to catch up to that time. They catch up to the present, so that most later packets need no work.
    #[inline(always)]
    fn settle_before_reading(&mut self, link: u32, departed: Time) {
        let l = &self.links[link as usize];
        let feeder = l.fused_to;
        if l.settles {
            if l.port.is_due(departed) {
                self.settle_chain(link);
            }
        } else if feeder != NIL {
            let f = &mut self.links[feeder as usize];
            if f.fused_to != NIL {
                self.settle_chain(feeder);
            } else if f.settles && f.port.is_due(departed) {
                f.port.settle_due(self.now, &mut self.arena);
            }
        }
    }

    /// Lets a port catch up to the present, after the ports that it is fused to.
    #[inline(never)]
    fn settle_chain(&mut self, link: u32) {
        let feeder = self.links[link as usize].fused_to;
        if feeder != NIL {
            self.settle_chain(feeder);
        }
        let l = &mut self.links[link as usize];
        if l.settles {
            l.port.settle_due(self.now, &mut self.arena);
        }
    }

    /// A packet joins the port at its place and the ports of the links fused to it. Returns the flow that is fused with the
    /// arrival of this packet, if any, and the time; never if the port dropped it.
    #[inline(always)]
    fn forward(&mut self, now: Time, packet: Arriving, mut place: u32) -> (u32, Time) {
        let slot = packet.handle;
        let present = Moment { now: self.now, unobserved_until: self.unobserved_until };
        let mut hop = self.routes[place as usize];
        let mut link = &mut self.links[hop.index()];
        let mut at = if link.foresees {
            link.foresee(present, Foreseen { at: now, headers_final_before: Time::NEVER }, packet, &mut self.arena)
        } else {
            match link.port.handle_unobserved(Moment { now, ..present }, packet, &mut self.arena) {
                Arrival::Departs(departs) => link.end_of(departs),
                Arrival::Queued => {
                    self.arena.get_mut(slot).place = place;
                    self.queued(hop.link(), slot);
                    return (NIL, now);
                }
                Arrival::Doomed(_) => return (NIL, now),
                Arrival::Dropped => return (NIL, Time::NEVER),
            }
        };
        while hop.has(Mark::FUSED) {
            let headers_final_before = link.headers_final_before();
            place += 1;
            hop = self.routes[place as usize];
            link = &mut self.links[hop.index()];
            at = link.foresee(present, Foreseen { at, headers_final_before }, packet, &mut self.arena);
        }
        if hop.has(Mark::REPLY) {
            if let Some(flow) = link.reply_ahead(at, self.unobserved_until, &self.ends, self.arena.get(slot)) {
                return (flow, at);
            }
        } else if hop.has(Mark::TURN) {
            let turn = Turn { down: hop.link(), in_transit: link.in_transit, up: link.turn };
            self.turn_ahead(slot, at, place, turn);
            return (NIL, now);
        }
        self.wheel.insert(&mut self.arena, slot, at.0, place);
        (NIL, now)
    }

    /// As `forward`, for rare calls. Returns whether the port accepted the packet.
    #[inline(never)]
    pub(super) fn forward_slowly(&mut self, now: Time, packet: Arriving, place: u32) -> bool {
        self.forward(now, packet, place).1 != Time::NEVER
    }

    /// A packet has reached its destination node. The ACK reuses its slot.
    #[inline(never)]
    fn deliver(&mut self, slot: u32) -> Due {
        if self.arena.log.is_some() {
            self.arena.log_delivery(self.now, slot);
        }
        let packet = self.arena.get(slot);
        let header = &packet.transport;
        let flow = header.flow();
        let ends = self.ends.get_mut(flow as usize);
        let Some(ends) = ends.filter(|_| !header.has(flag::CONTROL)) else {
            self.deliver_rarely(slot);
            return DONE;
        };
        if packet.is_ack() {
            return Due { slot, what: FLOW | flow };
        }
        let packet = self.arena.get_mut(slot);
        if !ends.sink.turn(self.now, packet, &mut self.sack) {
            self.arena.give(slot);
            self.arm_sink(flow);
            return DONE;
        }
        let place = ends.back;
        if packet.transport.sack_count() > 0 {
            self.arena.set_sack(slot, &self.sack);
        }
        Due { slot, what: place }
    }

    /// A message between agents, or a packet without a receiver.
    #[cold]
    fn deliver_rarely(&mut self, slot: u32) {
        let packet = *self.arena.get(slot);
        self.arena.give(slot);
        if packet.is_damaged() {
            // Not acknowledged: its checksum is wrong.
            if let Some(ends) = self.ends.get_mut(packet.transport.flow() as usize) {
                if packet.is_ack() {
                    ends.flow.count_damaged();
                } else {
                    ends.sink.count_damaged();
                }
            }
        } else if packet.transport.has(flag::CONTROL) {
            self.deliver_control(&packet);
        }
    }

    /// Sends what a flow may still send.
    #[inline(never)]
    fn send_more(&mut self, now: Time, id: u32) {
        while self.send_next(now, id, NIL) {}
    }

    /// A flow takes the acknowledgement in `slot`, if any, and sends the next packet, if allowed, in that slot or a new one.
    /// Returns whether it may send more; otherwise its timer is armed.
    #[inline(always)]
    fn send_next(&mut self, now: Time, id: u32, slot: u32) -> bool {
        let ends = &mut self.ends[id as usize];
        let acknowledged = slot != NIL;
        let slot = if acknowledged { slot } else { self.arena.take() };
        let mut packet = self.arena.get_mut(slot);
        if acknowledged {
            if packet.transport.sack_count() != 0 {
                self.sack = self.arena.take_sack(slot);
                packet = self.arena.get_mut(slot);
            }
            ends.flow.handle_packet(now, packet, &self.sack);
        }
        let next = ends.flow.poll_next(now);
        if !next.is_some_and(|next| ends.flow.transmit(now, next, packet)) {
            self.nothing_of(now, id, slot);
            return false;
        }
        let full = ends.flow.is_full();
        let timer = if full { ends.rest(now) } else { Time::NEVER };
        let (place, bytes) = (ends.forward, packet.ip_len as u32);
        let hop = self.routes[place as usize];
        let link = &mut self.links[hop.index()];
        let leaves = ends.processing.leaves(now, &packet.transport);
        // Most leave by a link of their own, where nothing is in their way.
        if !hop.has(Mark::OWN) && leaves > now {
            self.hold(id, slot, leaves);
        } else if !hop.has(Mark::FUSED | Mark::REPLY | Mark::TURN)
            && link.foresees
            && let Some(departs) = link.port.leave(leaves, packet, bytes, self.unobserved_until)
        {
            let at = link.end_of(departs);
            (packet.time, packet.place, packet.next) = (at.0, place, NIL);
            self.wheel.put_in(&mut self.arena, slot, at.0);
        } else if !self.forward_slowly(leaves, Arriving { handle: slot, bytes }, place) {
            let flow = &mut self.ends[id as usize].flow;
            flow.refused(flow.sends_again());
        }
        if timer < Time::NEVER {
            self.arm_flow(now, id, timer);
        }
        !full
    }

    /// A flow has nothing to send now: frees the slot.
    fn nothing_of(&mut self, now: Time, id: u32, slot: u32) {
        self.arena.give(slot);
        let timer = self.ends[id as usize].rest(now);
        if timer < Time::NEVER {
            self.arm_flow(now, id, timer);
        }
    }
}

//! ACK fusion: a data packet and its acknowledgement are one event.
//!
//! The arrival time of a data packet is known as soon as it joins the last port that makes a decision. The arrival of its ACK
//! at the end of the ACK's first link is then known too, and becomes the next event, if the packet is the next in order, no
//! other traffic uses that link, and no sampler observes the flow before. By that time the ports before the receiver have
//! written their feedback, which goes into the ACK.

use std::collections::BTreeMap;

use explicate_build::source::Source;
use explicate_core::units::Time;
use explicate_core::wire::SACK_RANGES;

use super::{Engine, Hop, Link, Mark, NIL, Onward, rank};
use crate::event::{Event, Timer};

/// A link at whose end packets are turned into acknowledgements.
#[derive(Clone, Copy)]
pub(super) struct Turn {
    /// Its number.
    pub(super) down: u32,
    /// Packets in transit to its end whose acknowledgements are not computed yet.
    pub(super) in_transit: u32,
    /// The first link of the acknowledgements.
    pub(super) up: u32,
}

/// An event that was removed from the queue, with its sort key.
struct Pending {
    time: u64,
    rank: u32,
    slot: u32,
    event: Event,
    /// The place of a packet that may be turned or processed ahead.
    hop: Option<Hop>,
}

impl Engine {
    /// Finds the links at whose ends ACKs may be fused: all data that end there are acknowledged over one link that
    /// carries nothing else.
    pub(super) fn find_turns(&mut self) {
        if !self.fuse || !self.agents.is_empty() || !self.changes.is_empty() {
            return;
        }
        let uses = self.uses();
        for (down, (up, flows)) in self.answered() {
            let up_is_plain = |link: &Link| link.port.is_plain() && link.fused_to == NIL;
            if self.links.get(up as usize).is_some_and(up_is_plain)
                && uses[up as usize] == flows
                && !self.links[down as usize].port.is_scheduled()
            {
                self.links[down as usize].turn = up;
                self.links[up as usize].turn = down;
                self.turns += 1;
            }
        }
        let places: Vec<u32> = self.ends.iter().map(|ends| self.last_place(ends.forward)).collect();
        for place in places {
            if self.links[self.routes[place as usize].index()].turn != NIL {
                self.routes[place as usize].mark(Mark::TURN);
            }
        }
    }

    /// For each link before a receiver, the link over which all its data are acknowledged, and the number of flows. The link
    /// is `NIL` if there are several, or if an acknowledgement cannot be predicted.
    fn answered(&self) -> BTreeMap<u32, (u32, u32)> {
        let mut answered: BTreeMap<u32, (u32, u32)> = BTreeMap::new();
        for ends in &self.ends {
            let down = self.routes[self.last_place(ends.forward) as usize].link();
            let back = &self.routes[ends.back as usize];
            // An acknowledgement on a fused route reaches the end of more than one link at once.
            let predicted = !back.has(Mark::FUSED)
                && ends.receiver.can_predict_acks()
                && !matches!(ends.source, Source::Sessions(_));
            let (up, flows) = answered.entry(down).or_insert((back.link(), 0));
            if predicted && *up == back.link() {
                *flows += 1;
            } else {
                *up = NIL;
            }
        }
        answered
    }

    /// Number of routes over each link.
    pub(super) fn uses(&self) -> Vec<u32> {
        let mut uses = vec![0; self.links.len()];
        for first in self.ends.iter().flat_map(|ends| [ends.forward, ends.back]) {
            let route = &self.routes[first as usize..=self.last_place(first) as usize];
            route.iter().for_each(|hop| uses[hop.index()] += 1);
        }
        uses
    }
    /// The last place of the route that begins at `first`.
    pub(super) fn last_place(&self, first: u32) -> u32 {
        let rest = &self.routes[first as usize..];
        first + rest.iter().position(|hop| hop.has(Mark::LAST)).unwrap_or(0) as u32
    }

    /// A packet will reach the end of its route over link `down` at `at`. Its next event: that arrival, or its
    /// acknowledgement's arrival at the end of link `turn` after it, unless earlier packets are `in_transit` to their
    /// end.
    #[inline(always)]
    pub(super) fn turn_ahead(&mut self, slot: u32, at: Time, place: u32, turn: Turn) {
        let Turn { down, in_transit, up: turn } = turn;
        if in_transit == 0 {
            let pending = self.arena.slot_mut(slot);
            let packet = &mut pending.packet;
            if let Some(ends) = self.ends.get_mut(packet.transport.flow() as usize)
                && let Some(bytes) = ends.receiver.predict_ack(packet)
            {
                let up = &mut self.links[turn as usize];
                if let Some(departs) = up.port.pass_by(at, bytes as u32, self.unobserved_until.since(up.delay)) {
                    ends.receiver.take_ahead(packet);
                    let at = up.end_of(departs);
                    Event::turned(ends.back).schedule(pending, at.0);
                    return self.wheel.put_in(&mut self.arena, slot, at.0);
                }
            } else if let Some((at, event)) = self.turn_slowly(slot, at, turn) {
                return self.wheel.insert(&mut self.arena, slot, at.0, event);
            }
        } else {
            self.unturned += 1;
        }
        self.links[down as usize].in_transit += 1;
        self.wheel.insert(&mut self.arena, slot, at.0, Event::arrival(place));
    }

    /// A packet that is not the next in order.
    #[inline(never)]
    fn turn_slowly(&mut self, slot: u32, at: Time, up: u32) -> Option<(Time, Event)> {
        let packet = self.arena.get_mut(slot);
        let ends = self.ends.get_mut(packet.transport.flow() as usize)?;
        let up = &mut self.links[up as usize];
        let unobserved_until = self.unobserved_until.since(up.delay);
        if !up.port.passes_by(at, ends.receiver.answer_bytes(SACK_RANGES) as u32, unobserved_until) {
            return None;
        }
        let ranges = ends.receiver.take_and_predict_ack(packet, &mut self.sack)?;
        let departs = up.port.pass_by(at, ends.receiver.answer_bytes(ranges) as u32, unobserved_until)?;
        let turned = (up.end_of(departs), Event::turned(ends.back));
        if ranges > 0 {
            self.arena.set_sack(slot, &self.sack);
        }
        Some(turned)
    }

    /// Fuses, after an observation, the packets whose fusion it had prevented, unless that costs more than it saves;
    /// then acknowledgements with their senders, one by one.
    pub(super) fn turn_waiting(&mut self) {
        let events = self.wheel.taken - self.observed_after;
        self.observed_after = self.wheel.taken;
        if self.unobserved_until <= self.now || self.turns == 0 || events < self.wheel.len() as u64 {
            return;
        }
        self.turn_all(Mark::TURN | Mark::REPLY);
        self.waiting.reverse();
        if !self.waiting.is_empty() {
            self.arm(Timer::Waiting, self.now);
        }
    }

    /// If the packets of many flows end here, a packet that could not be fused, such as a SYN, prevents the fusion of
    /// the next one, and so on: there is always one in transit. Turns all of them once this has cost more events than
    /// there are packets.
    #[inline(always)]
    pub(super) fn turn_again(&mut self) {
        if self.unturned > 2 * self.wheel.len() {
            self.turn_all(Mark::TURN);
        }
    }

    /// Turns the packets that wait at places with one of these marks, or lets them wait for sender fusion.
    #[inline(never)]
    fn turn_all(&mut self, marks: Mark) {
        self.unturned = 0;
        let down = |routes: &[Hop], event: Event| {
            let hop = (!event.is_timer() && !event.is_turned()).then(|| routes[event.place() as usize]);
            hop.filter(|hop| hop.has(marks))
        };
        // Sort keys are stored beside the slots, because packets are scattered in memory.
        let slots = self.wheel.take_all(&self.arena);
        let mut events = Vec::with_capacity(slots.len());
        for slot in slots {
            let pending = self.arena.slot(slot);
            let event = Event::of(pending);
            let hop = down(&self.routes, event);
            events.push(Pending { time: pending.time, rank: rank(&self.routes, pending), slot, event, hop });
            if let Some(hop) = hop {
                self.links[hop.index()].in_transit -= 1;
            }
        }
        events.sort_by_key(|pending| (pending.time, pending.rank));
        for Pending { time, slot, event, hop, .. } in events {
            match hop {
                Some(hop) if hop.has(Mark::REPLY) => self.waiting.push(slot),
                Some(hop) => {
                    let down = &self.links[hop.index()];
                    let turn = Turn { down: hop.link(), in_transit: down.in_transit, up: down.turn };
                    self.turn_ahead(slot, Time(time), event.place(), turn);
                }
                None => self.wheel.insert(&mut self.arena, slot, time, event),
            }
        }
    }

    /// The ACK of a packet has reached the end of the first link of its route: writes it.
    #[inline(always)]
    pub(super) fn arrive_turned(&mut self, slot: u32, place: u32) -> Onward {
        let hop = self.routes[place as usize];
        let up = &mut self.links[hop.index()];
        up.port.stats.delivered += 1;
        let (down, since, hops) = (up.turn, up.delay.0, up.hops);
        let mut link = &mut self.links[down as usize];
        let departed = Time(self.now.0.wrapping_sub((since + link.delay.0) & self.lag));
        if link.catch_up_own(departed, self.now, &mut self.arena) {
            self.catch_up_before_reading(down, departed);
            link = &mut self.links[down as usize];
        }
        link.port.stats.delivered += 1;
        let packet = self.arena.get_mut(slot);
        if let Some(ends) = self.ends.get(packet.transport.flow() as usize) {
            ends.receiver.turn_late(packet);
        }
        if hop.has(Mark::LAST) {
            return self.deliver(slot);
        }
        packet.ttl -= hops; // it was written just now
        Onward::Forward { slot, place: place + 1, bytes: packet.ip_len as u32 }
    }
}

//! Prefetching: loads the memory of upcoming events into the processor's caches.
//!
//! With ten thousand flows and more, the packet, links and flow of an event are scattered over hundreds of megabytes, and each
//! is found by a pointer in the one before: a chain of cache misses. The event queue knows the next events, so each load of
//! the chain is issued some buckets in advance, for several events at once. Results do not depend on it.

use explicate_core::wire::{Packet, flag};

use super::{Engine, Mark, NIL};
use crate::event::{Event, Timer};
use crate::prefetch;

/// Number of flows from which prefetching pays off: their memory exceeds the inner caches.
const MANY: usize = 4096;
/// Distance in buckets at which events are searched for; a bucket holds about one event.
const BUCKETS: u64 = 20;
/// Number of events between two steps for one event.
const STEP: usize = 3;

/// Slots of the events found last. A slot may have been reused since; a wrong prefetch does no harm.
#[derive(Default)]
pub(super) struct Prefetch {
    /// The bucket of the last one.
    bucket: u64,
    found: [u32; 16],
    count: usize,
}

impl Prefetch {
    /// The event that was found `steps` steps before the last one.
    #[inline(always)]
    fn before(&self, steps: usize) -> u32 {
        self.found[(self.count.wrapping_sub(steps * STEP)) % 16]
    }
}

impl Engine {
    /// Whether prefetching pays off.
    pub(super) fn is_large(&self) -> bool {
        self.ends.len() >= MANY
    }

    /// Takes the steps that became due since the previous event.
    #[inline(never)]
    pub(super) fn look_ahead(&mut self) {
        self.turn_again();
        while let Some(slot) = self.wheel.ahead(&mut self.prefetch.bucket, BUCKETS) {
            self.prefetch.count = self.prefetch.count.wrapping_add(1);
            self.prefetch.found[self.prefetch.count % 16] = slot;
            prefetch::whole(self.arena.slot(slot));
            let next = self.arena.slot(self.prefetch.before(1)).next;
            if next != NIL {
                prefetch::whole(self.arena.slot(next));
            }
            self.fetch_both(self.prefetch.before(2), Engine::fetch);
            self.fetch_both(self.prefetch.before(3), Engine::fetch_apart);
            self.fetch_both(self.prefetch.before(4), Engine::fetch_down);
        }
    }

    /// Takes a step for an event and the one behind it in its bucket.
    #[inline(always)]
    fn fetch_both(&self, slot: u32, step: impl Fn(&Engine, u32)) {
        step(self, slot);
        let next = self.arena.slot(slot).next;
        if next != NIL {
            step(self, next);
        }
    }

    /// The links and the flow of an event whose packet is in the cache.
    fn fetch(&self, slot: u32) {
        let (event, packet) = (Event::of(self.arena.slot(slot)), self.arena.get(slot));
        match event.expires() {
            Some(Timer::Flow(flow) | Timer::Source(flow) | Timer::Receiver(flow) | Timer::Held { flow, .. }) => {
                return prefetch::whole(&self.ends[flow as usize]);
            }
            Some(_) => return,
            None => {}
        }
        let mut place = event.place() as usize;
        let mut hop = self.routes[place];
        prefetch::whole(&self.links[hop.index()]);
        if event.is_turned() {
            self.fetch_receiver(packet);
        } else if hop.has(Mark::LAST)
            && let Some(ends) = self.ends.get(packet.transport.flow() as usize)
        {
            prefetch::whole(ends);
        }
        while !hop.has(Mark::LAST) {
            place += 1;
            hop = self.routes[place];
            prefetch::whole(&self.links[hop.index()]);
            if !hop.has(Mark::FUSED) {
                break;
            }
        }
        if hop.has(Mark::TURN) {
            self.fetch_receiver(packet);
        }
    }
    fn fetch_receiver(&self, packet: &Packet) {
        if let Some(ends) = self.ends.get(packet.transport.flow() as usize) {
            prefetch::whole(&ends.receiver);
            prefetch::whole(&ends.back);
        }
    }

    /// Separate allocations of the links and the flow of an event, which are now in the cache.
    fn fetch_apart(&self, slot: u32) {
        let (event, packet) = (Event::of(self.arena.slot(slot)), self.arena.get(slot));
        if event.is_timer() {
            return;
        }
        let first = event.place() as usize;
        let (mut place, mut hop) = (first, self.routes[first]);
        if event.is_turned() {
            let down = self.links[hop.index()].turn;
            prefetch::whole(&self.links[down as usize]);
        } else {
            self.fetch_port(hop.link());
        }
        let answers = hop.has(Mark::LAST) && packet.transport.has(flag::ACK);
        if answers && let Some(ends) = self.ends.get(packet.transport.flow() as usize) {
            for (at, bytes) in ends.flow.kept_apart() {
                prefetch::lines(at, bytes);
            }
            prefetch::whole(&self.links[self.routes[ends.forward as usize].index()]);
        }
        if !hop.has(Mark::LAST) {
            self.fetch_port(self.routes[place + 1].link());
        }
        while !hop.has(Mark::LAST) && (place == first || hop.has(Mark::FUSED)) {
            place += 1;
            hop = self.routes[place];
        }
        if hop.has(Mark::TURN) {
            prefetch::whole(&self.links[self.links[hop.index()].turn as usize]);
        }
    }

    /// The port that catches up before an acknowledgement is written, and the one to which it is fused.
    fn fetch_down(&self, slot: u32) {
        let event = Event::of(self.arena.slot(slot));
        if event.is_turned() {
            let up = self.routes[event.place() as usize].link();
            let down = self.links[up as usize].turn;
            let feeder = self.links[down as usize].fused_to;
            self.fetch_port(down);
            if feeder != NIL {
                self.fetch_port(feeder);
            }
        }
    }

    /// A port's controller.
    #[inline(always)]
    fn fetch_port(&self, link: u32) {
        let port = &self.links[link as usize].port;
        if let Some((at, bytes)) = port.kept_apart() {
            prefetch::lines(at, bytes);
        }
    }
}

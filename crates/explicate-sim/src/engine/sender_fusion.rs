//! Sender fusion: the arrival of an acknowledgement at its sender and the packets sent in response are one event.
//!
//! The arrival time of an acknowledgement is known as soon as it joins the last shared port. The flow processes it
//! immediately, as of that time, if no later port writes into it, the flow needs no timer, no sampler observes the flow before,
//! and its packets leave over a private link. The next event is then the arrival of the packets that it sends.

use explicate_build::source::Source;
use explicate_core::units::Time;

use super::{Engine, Mark, NIL};
use crate::event::{Due, Event, Timer};

impl Engine {
    /// Finds the links at whose ends acknowledgements may be fused with their senders.
    pub(super) fn find_replies(&mut self) {
        if !self.fuse || !self.agents.is_empty() || !self.changes.is_empty() {
            return;
        }
        let uses = self.uses();
        let port = |place: u32| &self.links[self.routes[place as usize].index()].port;
        let replies = |forward: u32, back: u32, last: u32| {
            let mut first = last;
            while first > back && self.routes[first as usize - 1].has(Mark::FUSED) {
                first -= 1;
            }
            let own = self.routes[forward as usize].index();
            // An acknowledgement that was turned ahead has passed the first link of its route.
            first > back
                && port(first).only_counts()
                && (first + 1..=last).all(|place| port(place).is_plain())
                && uses[own] == 1
                && self.links[own].port.is_predictable()
                && self.links[own].fused_to == NIL
        };
        let mut places = Vec::new();
        for ends in self.ends.iter().filter(|e| matches!(e.source, Source::Bulk | Source::Sized(_))) {
            let last = self.last_place(ends.back);
            if replies(ends.forward, ends.back, last) {
                places.push(last);
            }
        }
        for place in places {
            self.routes[place as usize].mark(Mark::REPLY);
            self.turns += 1;
        }
    }

    /// [`Link::reply_ahead`] for the next ACK that was in transit at the last observation; sets [`Engine::waited`] to its arrival.
    pub(super) fn reply_waiting(&mut self) -> Due {
        let Some(slot) = self.waiting.pop() else { return Due::NOTHING };
        if !self.waiting.is_empty() {
            self.arm(Timer::Waiting, self.now);
        }
        let pending = self.arena.slot(slot);
        let (time, event) = (pending.time, Event::of(pending));
        let link = &mut self.links[self.routes[event.place() as usize].index()];
        let Some(flow) = link.reply_ahead(Time(time), self.unobserved_until, &self.ends, &pending.packet) else {
            self.wheel.insert(&mut self.arena, slot, time, event);
            return Due::NOTHING;
        };
        self.waited = Time(time);
        Due::answer(slot, flow)
    }
}

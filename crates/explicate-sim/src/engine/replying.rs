//! Replying ahead: an acknowledgement's last arrival and what its flow sends then are one event.
//!
//! When an acknowledgement will reach its sender is known as soon as it joins the last port that others share. If nothing is
//! written into it after that, the flow needs no timer and is not looked at before, and its packets leave over a link of
//! their own, then the flow takes it at once, as of that time: the next event is the arrival of what it sends.

use explicate_core::units::Time;
use explicate_core::wire::{Packet, flag};
use explicate_scenario::machines::source::Source;

use super::{DONE, Due, Engine, FLOW, FUSED, LINK, NIL, REPLY, WAITING, rank};

impl Engine {
    /// Looks for links at whose ends acknowledgements may be replied to ahead of time.
    pub(super) fn find_replies(&mut self) {
        if !self.fuse || !self.agents.is_empty() || !self.changes.is_empty() {
            return;
        }
        let uses = self.uses();
        let port = |place: u32| &self.links[(self.routes[place as usize] & LINK) as usize].port;
        let replies = |forward: u32, back: u32, last: u32| {
            let mut first = last;
            while first > back && self.routes[first as usize - 1] & FUSED != 0 {
                first -= 1;
            }
            let own = (self.routes[forward as usize] & LINK) as usize;
            // An acknowledgement that was turned ahead has passed the first link of its way.
            first > back
                && port(first).only_counts()
                && (first + 1..=last).all(|place| port(place).is_plain())
                && uses[own] == 1
                && self.links[own].port.is_foreseeable()
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
            self.routes[place as usize] |= REPLY;
            self.turns += 1;
        }
    }

    /// An acknowledgement will reach the end of its way over link `last` at `at`: the flow that takes it now, or nobody yet.
    #[inline(always)]
    pub(super) fn reply_ahead(&mut self, slot: u32, at: Time, last: u32) -> u32 {
        let link = &mut self.links[last as usize];
        let header = &self.arena.get(slot).transport;
        let flow = header.flow();
        if link.bound == 0
            && at <= self.unseen
            && self.ends.get(flow as usize).is_some_and(|ends| at <= ends.flow.poll_timeout())
            && header.flags() & (flag::ACK | flag::CONTROL) == flag::ACK
        {
            link.port.stats.delivered += 1;
            return flow;
        }
        link.bound += 1;
        NIL
    }

    /// [`Engine::reply_ahead`] for the next one that was under way when somebody looked; [`Engine::waited`] is its arrival then.
    pub(super) fn reply_waiting(&mut self) -> Due {
        let Some(slot) = self.waiting.pop() else { return DONE };
        if !self.waiting.is_empty() {
            self.arm(WAITING, self.now);
        }
        let &Packet { time, place, .. } = self.arena.get(slot);
        let flow = self.reply_ahead(slot, Time(time), self.routes[place as usize] & LINK);
        if flow == NIL {
            self.wheel.insert(&mut self.arena, slot, time, place, |p| rank(&self.routes, p));
            return DONE;
        }
        self.waited = Time(time);
        Due { slot, what: FLOW | flow }
    }
}

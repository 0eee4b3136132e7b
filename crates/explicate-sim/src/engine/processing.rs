//! Processing: the time that a sending host takes for a data packet, drawn for each packet, so that synchronised
//! flows do not stay synchronised (Floyd and Jacobson 1992). Packets of a flow keep their order.
//!
//! If a flow's first link is private, its packet joins that link's port immediately, with the time at which it leaves
//! the host: the port predicts it. If others share the port, the packet waits as a separate event. In both cases it
//! counts as sent and as on no link.

use explicate_build::source::Source;
use explicate_core::port::Arriving;
use explicate_core::rng;
use explicate_core::units::Time;
use explicate_core::wire::{Transport, flag};

use super::{Engine, Mark};
use crate::event::{Event, Timer};

/// Processing time of a flow's host.
pub struct Processing {
    /// When the last packet left, or will leave.
    last: Time,
    /// The upper half of the key of the flow's draws.
    key: u32,
    /// Maximum, ns; zero disables processing.
    most: u32,
}

impl Processing {
    /// At most `most` per data packet, no more than four seconds, drawn from the stream of this name.
    pub fn new(most: Time, seed: u64, name: &str) -> Processing {
        let key = (rng::key(seed, name) >> 32) as u32;
        Processing { last: Time::ZERO, key, most: most.0.min(u32::MAX as u64) as u32 }
    }

    /// No processing time.
    pub fn none() -> Processing {
        Processing { last: Time::ZERO, key: 0, most: 0 }
    }

    /// When a packet leaves that is sent now. Draws depend on the flow's packet numbers; a SYN takes no time, but
    /// does not overtake.
    #[inline(always)]
    pub(super) fn leaves(&mut self, now: Time, header: &Transport) -> Time {
        if self.most == 0 {
            return now;
        }
        let number = header.packet_number() as u64;
        let drawn = rng::drawn((self.key as u64) << 32, number) >> 32;
        let takes = if header.has(flag::SYN) { 0 } else { (drawn * self.most as u64) >> 32 };
        self.last = self.last.max(Time(now.0 + takes));
        self.last
    }

    /// A new connection numbers its packets from zero, so it gets a new stream.
    pub(super) fn renew(&mut self, connection: u64) {
        self.key = (rng::drawn((self.key as u64) << 32, connection.wrapping_neg()) >> 32) as u32;
    }
}

impl Engine {
    /// Finds flows that begin on private links whose ports make no decision.
    pub(super) fn find_own(&mut self) {
        if !self.fuse || !self.agents.is_empty() || !self.changes.is_empty() {
            return;
        }
        let uses = self.uses();
        for ends in &self.ends {
            let first = &mut self.routes[ends.forward as usize];
            let own = first.index();
            if uses[own] == 1 && self.links[own].port.is_predictable() {
                first.mark(Mark::OWN);
            }
        }
    }

    /// A packet has been sent and leaves its host later.
    #[inline(never)]
    pub(super) fn hold(&mut self, id: u32, slot: u32, leaves: Time) {
        let again = self.ends[id as usize].flow.sends_again();
        self.wheel.insert(&mut self.arena, slot, leaves.0, Event::timer(Timer::Held { flow: id, again }));
    }

    /// It leaves on the flow's current route, unless the host's own queue drops it.
    pub(super) fn let_go(&mut self, slot: u32, flow: u32, again: bool) {
        let id = flow as usize;
        let (bytes, first) = (self.arena.get(slot).ip_len as u32, self.ends[id].forward);
        if !self.forward_slowly(self.now, Arriving { handle: slot, bytes }, first) {
            self.ends[id].flow.refused(again);
        }
    }

    /// Call after an event of the flow's application; `before` is the earlier number of connections.
    pub(super) fn renew_processing(&mut self, id: u32, before: u64) {
        let ends = &mut self.ends[id as usize];
        if let Source::Sessions(sessions) = &ends.source
            && sessions.begun != before
        {
            ends.processing.renew(sessions.begun);
        }
    }
}

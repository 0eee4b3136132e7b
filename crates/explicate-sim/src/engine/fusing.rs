//! Fusion: selects the links that are computed within the preceding event, and the ports that defer their counting.

use super::link::Reads;
use super::{Engine, Mark, NIL};
use crate::prefetch;

impl Engine {
    /// Selects the shortcuts. Call once, after all links and flows were added.
    pub fn prepare(&mut self) {
        self.find_fused();
        self.find_seen();
        self.find_turns();
        self.find_replies();
        self.find_own();
        self.defer(self.arena.log.is_none());
        self.large = self.is_large();
        if self.large {
            prefetch::gather(self.ends.iter().flat_map(|ends| ends.flow.kept_apart()));
        }
    }

    /// Finds links that can be fused: fed by a single link, with a port that makes no decision.
    fn find_fused(&mut self) {
        const NO_FEEDER: u32 = NIL - 1;
        let mut feeder = vec![NO_FEEDER; self.links.len()];
        let mut before = NIL;
        for &hop in &self.routes {
            let known = &mut feeder[hop.index()];
            *known = if *known == NO_FEEDER || *known == before { before } else { NIL };
            before = if hop.has(Mark::LAST) { NIL } else { hop.link() };
        }
        for (index, feeder) in feeder.into_iter().enumerate() {
            // A bridge is at the end of no link except the last of a chain, so its TTL rule applies there.
            let alone =
                self.fuse && self.agents.is_empty() && feeder < NO_FEEDER && !self.links[feeder as usize].bridged;
            if alone && self.links[index].port.is_predictable() && !self.links[feeder as usize].port.is_scheduled() {
                self.links[index].fused_to = feeder;
                self.links[index].catches_up = true;
            }
        }
        for place in 1..self.routes.len() {
            let (before, link) = (self.routes[place - 1], self.routes[place].link());
            if !before.has(Mark::LAST) && self.links[link as usize].fused_to == before.link() {
                self.routes[place - 1].mark(Mark::FUSED);
            }
        }
    }

    /// Finds the places where an agent sees packets.
    fn find_seen(&mut self) {
        for place in 0..self.routes.len() {
            let hop = self.routes[place];
            let seen = if hop.has(Mark::LAST) {
                self.links[hop.index()].after
            } else {
                self.links[self.routes[place + 1].index()].before
            };
            if seen != NIL {
                self.routes[place].mark(Mark::SEEN);
            }
        }
    }

    /// Ports that have to catch up before a packet is read at the end of this link.
    fn reads(&self, index: usize) -> Reads {
        let catches_up = |link: u32| self.links[link as usize].catches_up;
        let feeder = |link: &u32| Some(self.links[*link as usize].fused_to).filter(|feeder| *feeder != NIL);
        let first = index as u32;
        if core::iter::successors(feeder(&first), feeder).any(catches_up) {
            Reads::Chain
        } else if !catches_up(first) {
            Reads::Nothing
        } else if feeder(&first).is_some() {
            Reads::Chain
        } else {
            Reads::Own
        }
    }

    /// Lets plain ports defer their counting, or not. Call before the first event.
    pub(super) fn defer(&mut self, yes: bool) {
        assert!(self.events() == 0, "packets are under way");
        for link in &mut self.links {
            link.port.defer(yes && self.fuse);
            link.predicts = self.fuse && link.port.is_predictable();
            link.catches_up = !link.port.defers() && (!yes || link.fused_to != NIL || link.port.writes());
        }
        // The next port in the chain that does not defer decrements the TTL for the deferring ports before it.
        for index in 0..self.links.len() {
            let (mut hops, mut before) = (0, self.links[index].fused_to);
            while before != NIL
                && self.links[before as usize].port.defers()
                && self.links[before as usize].fused_to != NIL
            {
                (hops, before) = (hops + 1, self.links[before as usize].fused_to);
            }
            let reads = self.reads(index);
            let link = &mut self.links[index];
            link.reads = reads;
            let off = link.fused_to != NIL && link.port.defers();
            // The TTL of packets from elsewhere was decremented when they arrived.
            link.port.set_hops(if link.fused_to == NIL { 0 } else { 1 + hops });
            link.hops = if off { 2 + hops } else { 1 } - link.bridged as u8;
        }
    }
}

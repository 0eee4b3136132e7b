//! A link, as the engine keeps it.

use explicate_core::port::{Arriving, Horizon, Moment, Port};
use explicate_core::units::Time;
use explicate_core::wire::{Packet, flag};

use super::Ends;
use crate::arena::{Arena, NIL};

/// A one-way link and the port that feeds it.
pub struct Link {
    /// The port.
    pub port: Port,
    /// Propagation delay.
    pub delay: Time,
    /// The only link that feeds this one, if it is fused to it.
    pub(super) fused_to: u32,
    /// The port writes into packets or foresees them, so it is settled before they are read.
    pub(super) settles: bool,
    /// What is settled before a packet is read that has come over this link.
    pub(super) reads: Reads,
    /// Nothing is decided at the port: its packets are foreseen.
    pub(super) foresees: bool,
    /// What a packet's TTL falls by at the end of this link: one, and one for each plain port that put it off before.
    pub(super) hops: u8,
    /// The node whose agent sees packets before they join this port, or else nobody.
    pub(super) before: u32,
    /// The node whose agent sees packets that are delivered at the end of this link, or else nobody.
    pub(super) after: u32,
    /// Where data ends that is answered over one link alone, that link; for that link, this one: see `turning.rs`.
    pub(super) turn: u32,
    /// Packets under way to their end here of which the engine has not seen to the answer.
    pub(super) bound: u32,
    /// It ends at a bridge, which does not count the TTL down.
    pub(super) bridged: bool,
}

/// An arrival that is foreseen.
#[derive(Clone, Copy)]
pub(super) struct Foreseen {
    /// When the packet arrives.
    pub(super) at: Time,
    /// If that is no later than its arrival, earlier ports may still write into it.
    pub(super) unsure: Time,
}

/// Which ports may still write into a packet at a link's end.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Reads {
    /// None.
    Nothing,
    /// The link's own, which is not fused.
    Own,
    /// Those that it is fused to, and perhaps its own.
    Chain,
}

impl Link {
    /// When a packet reaches the end that departs then. No departure is so late that this needs care.
    #[inline(always)]
    pub(super) fn end_of(&self, departs: Time) -> Time {
        Time(departs.0 + self.delay.0)
    }

    /// Settles the link's own port if a packet that departed at `departed` is to be read; whether others may have to be, before it.
    #[inline(always)]
    pub(super) fn settle_own(&mut self, departed: Time, now: Time, arena: &mut Arena) -> bool {
        if self.reads == Reads::Own && self.port.is_due(departed) {
            self.port.settle_due(now, arena);
        }
        self.reads == Reads::Chain && (!self.settles || self.port.is_due(departed))
    }

    /// What reaches the end of this link before that will not be written into any more.
    #[inline(always)]
    pub(super) fn unsure(&self) -> Time {
        if self.settles {
            self.port.settled_before() + self.delay
        } else if self.fused_to == NIL {
            Time::NEVER
        } else {
            Time::ZERO
        }
    }

    /// A packet arrives at a port that foresees it: when it reaches the end.
    #[inline(always)]
    pub(super) fn foresee(
        &mut self,
        present: Moment,
        Foreseen { at, unsure }: Foreseen,
        packet: Arriving,
        arena: &mut Arena,
    ) -> Time {
        let departs = if self.port.defers() {
            self.port.pass(present, at, packet.bytes)
        } else {
            let horizon = Horizon { unobserved_until: present.unobserved_until, headers_final_before: unsure };
            self.port.foresee(at, packet, horizon, arena)
        };
        self.end_of(departs)
    }

    /// An acknowledgement will reach the end of its way over this link at `at`: the flow that takes it now, or nobody yet.
    #[inline(always)]
    pub(super) fn reply_ahead(&mut self, at: Time, unseen: Time, ends: &[Ends], packet: &Packet) -> Option<u32> {
        let header = &packet.transport;
        let flow = header.flow();
        if self.bound == 0
            && at <= unseen
            && ends.get(flow as usize).is_some_and(|ends| at < ends.flow.poll_timeout())
            && header.flags() & (flag::ACK | flag::CONTROL) == flag::ACK
        {
            self.port.stats.delivered += 1;
            return Some(flow);
        }
        self.bound += 1;
        None
    }
}

//! State of a link in the engine.

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
    /// The only link that feeds this one, if the two are fused.
    pub(super) fused_to: u32,
    /// The port writes into packets or predicts them, so it catches up before they are read.
    pub(super) catches_up: bool,
    /// Ports that catch up before a packet is read that was carried by this link.
    pub(super) reads: Reads,
    /// The port makes no decision: its packets are predicted.
    pub(super) predicts: bool,
    /// Decrement of the TTL at the end of this link: one, plus one for each preceding port with deferred accounting.
    pub(super) hops: u8,
    /// The node whose agent inspects packets before they join this port, if any.
    pub(super) before: u32,
    /// The node whose agent inspects packets delivered at the end of this link, if any.
    pub(super) after: u32,
    /// For the last link of data that is acknowledged over a single link, that link, and vice versa (`ack_fusion.rs`).
    pub(super) turn: u32,
    /// Packets in transit to their receiver here whose ACK is not fused.
    pub(super) in_transit: u32,
    /// It ends at a bridge, which does not decrement the TTL.
    pub(super) bridged: bool,
}

/// A predicted arrival.
#[derive(Clone, Copy)]
pub(super) struct Predicted {
    /// When the packet arrives.
    pub(super) at: Time,
    /// If that is no later than its arrival, earlier ports may still write into it.
    pub(super) headers_final_before: Time,
}

/// Which ports may still write into a packet at a link's end.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Reads {
    /// No port.
    Nothing,
    /// The link's own port, which is not fused.
    Own,
    /// The ports to which it is fused, and possibly its own.
    Chain,
}

impl Link {
    /// When a packet that departs at this time reaches the end. Departure times cannot overflow.
    #[inline(always)]
    pub(super) fn end_of(&self, departs: Time) -> Time {
        Time(departs.0 + self.delay.0)
    }

    /// Lets the link's own port catch up before a packet is read that departed at `departed`. Returns whether other ports may
    /// have to catch up first.
    #[inline(always)]
    pub(super) fn catch_up_own(&mut self, departed: Time, now: Time, arena: &mut Arena) -> bool {
        if self.reads == Reads::Own && self.port.is_due(departed) {
            self.port.catch_up_due(now, arena);
        }
        self.reads == Reads::Chain && (!self.catches_up || self.port.is_due(departed))
    }

    /// Headers of packets that reach the end of this link before this time are final.
    #[inline(always)]
    pub(super) fn headers_final_before(&self) -> Time {
        if self.catches_up {
            self.port.final_before() + self.delay
        } else if self.fused_to == NIL {
            Time::NEVER
        } else {
            Time::ZERO
        }
    }

    /// A packet arrives at a port that predicts it: returns when it reaches the end.
    #[inline(always)]
    pub(super) fn predict(
        &mut self,
        present: Moment,
        Predicted { at, headers_final_before }: Predicted,
        packet: Arriving,
        arena: &mut Arena,
    ) -> Time {
        let departs = if self.port.defers() {
            self.port.pass(present, at, packet.bytes)
        } else {
            let horizon = Horizon { unobserved_until: present.unobserved_until, headers_final_before };
            self.port.predict(at, packet, horizon, arena)
        };
        self.end_of(departs)
    }

    /// An acknowledgement will reach its sender over this link at `at`. Returns the flow if it may process it now.
    #[inline(always)]
    pub(super) fn reply_ahead(
        &mut self,
        at: Time,
        unobserved_until: Time,
        ends: &[Ends],
        packet: &Packet,
    ) -> Option<u32> {
        let header = &packet.transport;
        let flow = header.flow();
        if self.in_transit == 0
            && at <= unobserved_until
            && ends.get(flow as usize).is_some_and(|ends| at < ends.flow.poll_timeout())
            && header.flags() & (flag::ACK | flag::CONTROL) == flag::ACK
        {
            self.port.stats.delivered += 1;
            return Some(flow);
        }
        self.in_transit += 1;
        None
    }
}

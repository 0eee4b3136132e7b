//! Ports on a shared medium: nobody knows when a packet will be sent until the medium is won, so none is settled.
//!
//! A radio has one queue for all its neighbours. That queue is a port of its own, the *interface*, with disciplines and
//! controllers as any port: [`Port::pulled`]. It has no line; the medium takes one packet after another. What the
//! controller writes is written when the medium takes the packet, for from then on its bytes may be on the air.
//!
//! The link to each neighbour keeps a port too ([`Port::share`]), in which no packet ever waits: it counts what goes over
//! this link, and holds the channels that stand before the queue and on the air of this link.

use alloc::boxed::Box;

use super::lanes::{Lanes, Serving};
use super::{Causes, Class, Note, Port, Store};
use crate::units::Time;
use crate::wire::Packet;

impl Port {
    /// Makes this port an interface: a medium takes its packets.
    pub fn pulled(&mut self) {
        let class = core::mem::take(&mut self.class);
        let mut lanes = Lanes::new(alloc::vec![(class, 1)], |_: &Packet| 0);
        lanes.pulled = true;
        self.lanes = Some(Box::new(lanes));
        self.simple = false;
        self.rearm();
    }

    /// Makes this port a link of an interface: [`Port::handle_packet`] tells its packets to be queued there.
    pub fn share(&mut self) {
        debug_assert!(!self.writes(), "the queue is the interface's");
        self.on_medium = true;
        self.simple = false;
    }

    /// Controllers and disciplines have a clock that ticks: their timers expire at its multiples. Zero is exact.
    pub fn set_clock_tick(&mut self, tick: Time) {
        self.tick_us = (tick.0 / 1000).min(u32::MAX as u64) as u32;
        self.rearm();
    }

    /// The packet that a medium takes from this interface: it stays the first until [`Port::pull_next`].
    pub fn head(&self) -> Option<u32> {
        self.lanes.as_ref()?.serving.map(|s| s.handle)
    }

    /// The medium is done with the first packet: the next one is written and comes first.
    pub fn pull_next(&mut self, now: Time, store: &mut impl Store) {
        self.settle(now, store);
        let Some(lanes) = &mut self.lanes else { return };
        let (packets, bytes) = lanes.waiting();
        lanes.serving = None;
        self.busy_until = now.0;
        if packets > 0 {
            self.stats.queue_changed(now, packets, bytes, -1);
            self.serve_puller(now, store);
        }
        self.rearm();
    }

    /// The next packet of the queue comes first, and leaves in the eyes of discipline and controller.
    pub(super) fn serve_puller(&mut self, now: Time, store: &mut impl Store) {
        let Some(lanes) = &mut self.lanes else { return };
        let Some((handle, bytes, lane)) = lanes.pick() else { return };
        lanes.serving = Some(Serving { handle, bytes, lane, departs: Time::NEVER });
        let view = lanes.view(lane, self.view.capacity);
        let Class { qdisc, router } = &mut lanes.lanes[lane].class;
        if let Some(router) = router {
            router.on_departure(now, store.packet(handle), &view);
        }
        if let Some(qdisc) = qdisc {
            qdisc.on_departure(now, &view);
        }
    }

    /// Handles of all packets in an interface.
    pub fn handles(&self) -> impl Iterator<Item = u32> {
        self.lanes.iter().flat_map(|l| l.handles())
    }

    /// A packet of the link with this number joins an interface. What became of it, if it did not simply wait.
    pub fn join_queue(&mut self, now: Time, number: u32, handle: u32, store: &mut impl Store) -> Causes {
        self.settle(now, store);
        self.number = number; // notes bear it
        let before = self.stats.total();
        self.enqueue_in_lane(now, handle, store);
        self.stats.total().since(&before)
    }

    // ------------------------------------------------------------------------------ links of an interface

    /// Whether this link's channels lose an attempt to send a packet of `wire_bytes` over the air.
    pub fn attempt_is_lost(&mut self, now: Time, packet: &Packet, wire_bytes: u32) -> bool {
        let stages = self.impaired.as_mut().map(|i| &mut i.on_air);
        stages.is_some_and(|stages| stages.iter_mut().any(|c| c.loses(now, packet, wire_bytes)))
    }

    /// A packet reached the other end of this link.
    pub fn carried(&mut self, now: Time, handle: u32, store: &mut impl Store) {
        let bytes = store.packet(handle).ip_len;
        self.stats.departed(now, bytes);
        store.note(now, self.number, handle, Note::Departed);
    }

    /// The medium gave a packet up.
    pub fn gave_up(&mut self, now: Time, handle: u32, store: &mut impl Store) {
        self.lose(now, handle, store);
    }

    /// What the interface refused or marked of this link's packets.
    pub fn charge(&mut self, causes: Causes) {
        self.stats.charge(causes);
    }
}

//! Ports on a wireless medium: a packet is sent when the medium is won, so no departure is computed ahead.
//!
//! A radio has one queue for all its neighbours. That queue is a port of its own, the *interface*, with disciplines
//! and controllers as any port: [`Port::make_interface`]. It has no line; the medium takes one packet after another.
//! The controller writes when the medium takes the packet, because the transmission may begin at once.
//!
//! The link to each neighbour also has a port ([`Port::make_interface_link`]), in which no packet waits. It counts the
//! packets of this link, and holds the channels before the queue and on this link.

use alloc::vec;

use super::{Mode, Note, Port, Store};
use crate::qdisc::DropCause;
use crate::units::Time;
use crate::wire::Packet;

impl Port {
    /// Makes this port an interface: a medium takes its packets.
    pub fn make_interface(&mut self) {
        if self.scheduler.as_deref().is_none() {
            let class = core::mem::take(&mut self.control).into_class();
            self.schedule(vec![(class, 1.0)], |_| 0);
        }
        if let Some(scheduler) = self.scheduler.as_deref_mut() {
            scheduler.feeds_medium = true;
        }
    }

    /// Makes this port a link of an interface: [`Port::handle_packet`] returns [`super::Arrival::Queued`] for packets
    /// that the interface queues.
    pub fn make_interface_link(&mut self) {
        debug_assert!(!self.writes(), "the queue is the interface's");
        self.mode = Mode::OnMedium;
    }

    /// Gives controllers and disciplines a clock that ticks: their timers expire at multiples of `tick`. Zero is
    /// exact.
    pub fn set_clock_tick(&mut self, tick: Time) {
        self.tick_us = (tick.0 / 1000).min(u32::MAX as u64) as u32;
        self.rearm();
    }

    /// The packet that a medium takes from this interface: it stays first until [`Port::advance_head`].
    pub fn head(&self) -> Option<u32> {
        self.scheduler.as_deref()?.serving.map(|s| s.handle)
    }

    /// The medium has finished with the first packet: the next one is written into and becomes the first.
    pub fn advance_head(&mut self, now: Time, store: &mut impl Store) {
        self.catch_up(now, store);
        if let Some(scheduler) = self.scheduler.as_deref_mut() {
            scheduler.finish(now);
        }
        self.busy_until = now.0;
        self.serve_next(now, false, store);
        self.count_waiting(now);
    }

    // ------------------------------------------------------------------------------ links of an interface

    /// Length of a packet of this link with the bytes that its channels add.
    pub fn coded_bytes(&mut self, handle: u32, store: &mut impl Store) -> u32 {
        let bytes = store.packet(handle).ip_len;
        self.wire_bytes(handle, bytes, store)
    }

    /// Whether this link's channels lose an attempt to transmit a packet of `wire_bytes`.
    pub fn attempt_is_lost(&mut self, now: Time, packet: &Packet, wire_bytes: u32) -> bool {
        let stages = self.impairments.as_mut().map(|s| &mut s.on_air);
        stages.is_some_and(|stages| stages.iter_mut().any(|c| c.loses(now, packet, wire_bytes)))
    }

    /// A packet reached the other end of this link at `now`. If the channels disturb packets, it and its copies are
    /// returned by [`Port::poll_transmit`], and the result is false; otherwise the result is true.
    pub fn carried(&mut self, now: Time, handle: u32, store: &mut impl Store) -> bool {
        let bytes = store.packet(handle).ip_len;
        self.stats.departed(now, bytes);
        store.note(now, self.number, handle, Note::Departed);
        self.send(now, handle, store);
        self.scheduler.as_deref().is_none()
    }

    /// The medium gave up on a packet.
    pub fn gave_up(&mut self, now: Time, handle: u32, store: &mut impl Store) {
        self.lose(now, handle, store);
    }

    /// The interface dropped a packet of this link, of data or not.
    pub fn refused(&mut self, cause: DropCause, data: bool) {
        self.stats.dropped(cause, data);
    }

    /// The interface marked a packet of this link.
    pub fn marked(&mut self) {
        self.stats.marked();
    }
}

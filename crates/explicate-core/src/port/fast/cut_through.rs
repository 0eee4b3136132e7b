//! Cut-through: a controller is called for a packet's departure together with its arrival. This needs a controller to
//! which the order does not matter ([`crate::api::Router::ORDER_INDEPENDENT`]), and no timer or observation of the
//! port before the packet departs. A packet that has to wait is still kept in the ring, so the queue is counted at
//! the right times.

use crate::port::{Arrival, Arriving, Mode, Moment, Note, Port, PortStats, Store, Waiting};
use crate::qdisc::DropCause;
use crate::units::Time;
use crate::wire::Packet;

/// In place of a handle: the controller has already been called for the packet.
pub(in crate::port) const PASSED: u32 = u32::MAX;

impl Port {
    /// When a packet leaves that arrives at `at` at an idle port and is cut through, which is done here; otherwise
    /// nothing.
    #[inline(always)]
    pub(in crate::port) fn cut_through(
        &mut self,
        at: Time,
        packet: &mut Packet,
        bytes: u32,
        unobserved_until: Time,
    ) -> Option<Time> {
        if !self.ring.is_empty() || self.busy_until > at.0 {
            return None;
        }
        let (timer, stats) = (self.timer, &self.stats);
        let quiet = |departs| is_quiet(Time(departs), timer, unobserved_until, stats);
        let departs = self.line.finish_if(at.0, bytes, quiet)?;
        self.busy_until = departs;
        self.stats.arrived += 1;
        self.stats.bytes += bytes as u64;
        if self.hops > 0 {
            packet.ttl = packet.ttl.saturating_sub(self.hops);
        }
        if let Some(router) = &mut self.control.router {
            router.on_transit_ahead(at, Time(departs), packet, &self.view);
        }
        Some(Time(departs))
    }

    /// [`Port::predict`] or [`Port::pass`] of a packet whose headers are final, if nothing prevents cut-through:
    /// completes all work for it at this port. Otherwise changes nothing.
    #[inline(always)]
    pub fn leave(&mut self, at: Time, packet: &mut Packet, bytes: u32, unobserved_until: Time) -> Option<Time> {
        if self.mode == Mode::CutThrough {
            self.cut_through(at, packet, bytes, unobserved_until)
        } else {
            self.pass_by(at, bytes, unobserved_until)
        }
    }

    /// The next packet arrives at `at`, before a packet has left that was cut through at an idle port: that packet is
    /// in service again.
    #[inline(always)]
    pub(in crate::port) fn recall_passed(&mut self, at: Time) {
        if self.ring.is_empty() && self.busy_until > at.0 {
            self.recall(Time(self.busy_until));
        }
    }

    /// [`Port::handle_unobserved`] where packets may be cut through.
    #[inline(always)]
    pub(in crate::port) fn handle_cut_through(
        &mut self,
        Moment { now, unobserved_until }: Moment,
        packet: Arriving,
        store: &mut impl Store,
    ) -> Arrival {
        let Arriving { handle, bytes } = packet;
        self.catch_up_due(now, store);
        if self.ring.is_empty() {
            if self.busy_until <= now.0 {
                let passes = self.cut_through(now, store.packet(handle), bytes, unobserved_until);
                let departs = passes.unwrap_or_else(|| self.begin_service(now, packet, store));
                return Arrival::Departs(departs);
            }
            self.recall(Time(self.busy_until));
        }
        self.stats.arrived += 1;
        if !self.has_room(bytes) {
            self.arrive_in_time(now, handle, store);
            self.drop_packet(now, handle, DropCause::Overflow, store);
            return Arrival::Dropped;
        }
        if self.unpassed != Time::NEVER && is_quiet(self.unpassed, self.timer, unobserved_until, &self.stats) {
            self.pass_late(unobserved_until, store);
        }
        let departs = Time(self.line.finish(self.busy_until, bytes, false));
        self.busy_until = departs.0;
        let mut waiting = Waiting { arrives: now, departs, handle: PASSED, bytes: bytes as u16, lost: false };
        if self.unpassed == Time::NEVER && is_quiet(departs, self.timer, unobserved_until, &self.stats) {
            if let Some(router) = &mut self.control.router {
                router.on_transit_ahead(now, departs, store.packet(handle), &self.view);
            }
        } else {
            waiting.handle = handle;
            self.unpassed = self.unpassed.min(departs);
            self.arrive_in_time(now, handle, store);
        }
        self.ring.push(waiting);
        self.ring.advance();
        self.wait(now, bytes);
        Arrival::Departs(departs)
    }

    /// A packet arrives at an idle port and cannot be cut through.
    #[inline(never)]
    fn begin_service(&mut self, now: Time, Arriving { handle, bytes }: Arriving, store: &mut impl Store) -> Time {
        self.stats.arrived += 1;
        self.arrive_in_time(now, handle, store);
        let departs = self.departure(now, bytes);
        self.unpassed = departs;
        self.ring.push(Waiting { arrives: now, departs, handle, bytes: bytes as u16, lost: false });
        self.join(now, departs, bytes);
        departs
    }

    /// Packets wait that could not be cut through because of a timer or an observation before they leave. It is past,
    /// so they are now.
    #[inline(never)]
    fn pass_late(&mut self, unobserved_until: Time, store: &mut impl Store) {
        let (timer, stats, view) = (self.timer, &self.stats, &self.view);
        let mut next = Time::NEVER;
        self.ring.show(|packet| {
            let goes_on = packet.handle == PASSED || is_quiet(packet.departs, timer, unobserved_until, stats);
            if !goes_on {
                next = packet.departs;
            } else if packet.handle != PASSED
                && let Some(router) = &mut self.control.router
            {
                router.on_departure_ahead(packet.departs, store.packet(packet.handle), view);
                packet.handle = PASSED;
            }
            goes_on
        });
        self.unpassed = next;
    }

    /// Calls the controller for the arrival of a packet that cannot be cut through.
    #[inline(never)]
    fn arrive_in_time(&mut self, now: Time, handle: u32, store: &mut impl Store) {
        store.note(now, self.number, handle, Note::Arrived);
        if let Some(router) = &mut self.control.router {
            router.on_arrival(now, store.packet(handle), &self.view);
        }
    }
}

/// Whether there is no timer, no observation and no end of a bin before a packet departs; other packets may arrive
/// and leave.
#[inline(always)]
fn is_quiet(departs: Time, timer: Time, unobserved_until: Time, stats: &PortStats) -> bool {
    departs < timer && stats.is_unwatched(departs, unobserved_until)
}

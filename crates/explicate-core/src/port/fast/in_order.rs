//! A port whose controller is called for arrivals and departures in order of time. Most packets find the line idle
//! and depart before the next one arrives. Such a packet is kept beside the ring, and one call processes its arrival
//! and departure when the next one arrives. A packet that is still in the port then goes into the ring, and so do
//! packets of a port with several packets ahead whose headers are not final.

use crate::port::{Arriving, Horizon, Mode, Port, Store};
use crate::transit::Waiting;
use crate::units::Time;

/// A packet, without its arrival.
#[derive(Clone, Copy)]
pub(in crate::port) struct SinglePacket {
    /// Never if there is no packet.
    pub(in crate::port) departs: Time,
    pub(in crate::port) handle: u32,
    pub(in crate::port) bytes: u16,
}

impl SinglePacket {
    pub(in crate::port) const NONE: SinglePacket = SinglePacket { departs: Time::NEVER, handle: 0, bytes: 0 };

    #[inline(always)]
    pub(in crate::port) fn is_there(&self) -> bool {
        self.departs < Time::NEVER
    }
}

impl Port {
    /// A packet will arrive at `at` from the only link that feeds this port, or arrives now: computes its departure.
    /// Arrival and departure are processed later, in order of time: when the next packet is reported, as far as the
    /// horizon allows, or when the port catches up. Only for ports that admit everything and lose nothing.
    #[inline(always)]
    pub fn predict(&mut self, at: Time, packet: Arriving, horizon: Horizon, store: &mut impl Store) -> Time {
        let Arriving { handle, bytes } = packet;
        let Horizon { unobserved_until, headers_final_before } = horizon;
        if self.mode == Mode::CutThrough && at < headers_final_before {
            let passes = self.cut_through(at, store.packet(handle), bytes, unobserved_until);
            return passes.unwrap_or_else(|| self.predict_on_slow_path(at, packet, horizon, store));
        }
        if self.keeps() {
            return self.predict_into_ring(at, packet);
        }
        if self.mode == Mode::CutThrough {
            return self.predict_on_slow_path(at, packet, horizon, store);
        }
        let until = at.min(self.stats.unwatched(unobserved_until));
        let departs = if self.arrives < headers_final_before && self.single_transits(until, store) {
            self.busy_until = self.line.finish(at.0, bytes, true);
            Time(self.busy_until)
        } else if self.make_way(until, headers_final_before, store) {
            self.departure(at, bytes)
        } else {
            return self.predict_into_ring(at, packet);
        };
        self.expect(at, SinglePacket { departs, handle, bytes: bytes as u16 });
        departs
    }

    /// If no other packet is in the port or predicted.
    #[inline(always)]
    pub(in crate::port) fn expect(&mut self, at: Time, packet: SinglePacket) {
        self.single = packet;
        self.arrives = at;
        self.due = at.min(self.timer);
    }

    /// Processes the packet beside the ring if it arrives and leaves by `until`, before anything else happens here.
    /// Returns whether it did; the caller then calls [`Port::clear_single`].
    #[inline(always)]
    pub(in crate::port) fn single_transits(&mut self, until: Time, store: &mut impl Store) -> bool {
        let SinglePacket { departs, handle, bytes } = self.single;
        if departs > until || departs >= self.timer {
            return false;
        }
        self.stats.arrived += 1;
        self.stats.bytes += bytes as u64;
        let packet = store.packet(handle);
        if self.hops > 0 {
            packet.ttl = packet.ttl.saturating_sub(self.hops);
        }
        if let Some(router) = &mut self.control.router {
            router.on_transit(self.arrives, departs, packet, &self.view);
        }
        true
    }
    /// Clears the place beside the ring.
    #[inline(always)]
    pub(in crate::port) fn clear_single(&mut self) {
        self.single = SinglePacket::NONE;
        self.arrives = Time::NEVER;
        self.due = self.timer;
    }

    /// Moves the packet beside the ring into the ring.
    #[inline]
    pub(in crate::port) fn move_single_to_ring(&mut self) {
        if self.single.is_there() {
            let SinglePacket { departs, handle, bytes } = core::mem::replace(&mut self.single, SinglePacket::NONE);
            self.ring.push(Waiting { arrives: self.arrives, departs, handle, bytes, lost: false });
        }
    }

    /// [`Port::predict`] where packets are cut through, for a packet that may not be.
    #[inline(never)]
    fn predict_on_slow_path(
        &mut self,
        at: Time,
        packet: Arriving,
        Horizon { unobserved_until, headers_final_before }: Horizon,
        store: &mut impl Store,
    ) -> Time {
        let until = at.min(self.stats.unwatched(unobserved_until)).min(Time(headers_final_before.0.saturating_sub(1)));
        self.catch_up_due(until, store);
        let passes = if at < headers_final_before {
            self.cut_through(at, store.packet(packet.handle), packet.bytes, unobserved_until)
        } else {
            None
        };
        passes.unwrap_or_else(|| {
            self.recall_passed(at);
            self.predict_into_ring(at, packet)
        })
    }

    /// Catches up as far as possible until `until`; returns whether the port is empty and no packet is predicted.
    #[inline(never)]
    fn make_way(&mut self, until: Time, headers_final_before: Time, store: &mut impl Store) -> bool {
        self.move_single_to_ring();
        let until = until.min(Time(headers_final_before.0.saturating_sub(1)));
        if self.due <= until {
            self.catch_up_all(until, store);
        }
        self.ring.is_empty()
    }

    /// Whether unprocessed packets are kept in the ring; at intervals checks whether this has ended.
    #[inline(always)]
    fn keeps(&self) -> bool {
        !self.ring.is_empty() && !self.ring.is_at_turn()
    }

    /// [`Port::predict`] at a port that keeps unprocessed packets in the ring.
    #[inline(always)]
    fn predict_into_ring(&mut self, at: Time, Arriving { handle, bytes }: Arriving) -> Time {
        let departs = self.departure(at, bytes);
        self.unpassed = self.unpassed.min(departs);
        self.ring.push(Waiting { arrives: at, departs, handle, bytes: bytes as u16, lost: false });
        if self.arrives == Time::NEVER {
            self.arrives = at;
            self.due = self.due.min(at);
        }
        departs
    }
}

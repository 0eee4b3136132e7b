//! The packet of which nothing was done yet: most find the line idle and have left before anything else happens at the port, so
//! that all is done about them in one go when the next one is told of. One that the next one meets goes into the ring, as do
//! those of a port at which several are under way whose headers are not final.

use super::{Port, Store};
use crate::passage::Waiting;
use crate::units::Time;

/// A packet, besides when it arrives.
#[derive(Clone, Copy)]
pub(super) struct Lone {
    /// Never if there is none.
    pub(super) departs: Time,
    pub(super) handle: u32,
    pub(super) bytes: u16,
}

impl Lone {
    pub(super) const NONE: Lone = Lone { departs: Time::NEVER, handle: 0, bytes: 0 };

    #[inline(always)]
    pub(super) fn is_there(&self) -> bool {
        self.departs < Time::NEVER
    }
}

impl Port {
    /// A packet will arrive at `at` from the only link that feeds this port, or arrives now: computes at once when it leaves
    /// again. What the port does to it happens later, in order of time, as if it had been told then: when the next one is
    /// told of, but nothing after `unseen`, before which nobody looks, and to none that arrives at `unsure` or after, for what is
    /// written into those before is not known yet; or else when the port is settled. Only for ports that admit everything and
    /// lose nothing.
    #[inline(always)]
    pub fn foresee(
        &mut self,
        at: Time,
        (handle, bytes): (u32, u32),
        (unseen, unsure): (Time, Time),
        store: &mut impl Store,
    ) -> Time {
        if self.at_once && at < unsure {
            let passes = self.pass_at_once(at, store.packet(handle), bytes, unseen);
            return passes.unwrap_or_else(|| self.foresee_slowly(at, (handle, bytes), (unseen, unsure), store));
        }
        if self.keeps() {
            return self.foresee_another(at, (handle, bytes));
        }
        if self.at_once {
            return self.foresee_slowly(at, (handle, bytes), (unseen, unsure), store);
        }
        let until = at.min(self.stats.unwatched(unseen));
        let departs = if self.arrives < unsure && self.lone_passes(until, store) {
            self.busy_until = self.line.finish(at.0, bytes, true);
            Time(self.busy_until)
        } else if self.make_way(until, unsure, store) {
            self.departure(at, bytes)
        } else {
            return self.foresee_another(at, (handle, bytes));
        };
        self.expect(at, Lone { departs, handle, bytes: bytes as u16 });
        departs
    }

    /// With nothing else in the port or ahead.
    #[inline(always)]
    pub(super) fn expect(&mut self, at: Time, packet: Lone) {
        self.lone = packet;
        self.arrives = at;
        self.due = at.min(self.timer);
    }

    /// The packet of which nothing was done yet has come and gone by `until` before anything else happens here, and is to be
    /// forgotten: whether that is so.
    #[inline(always)]
    pub(super) fn lone_passes(&mut self, until: Time, store: &mut impl Store) -> bool {
        let Lone { departs, handle, bytes } = self.lone;
        if departs > until || departs >= self.timer {
            return false;
        }
        self.stats.arrived += 1;
        self.stats.bytes += bytes as u64;
        let packet = store.packet(handle);
        if self.hops > 0 {
            packet.ttl = packet.ttl.saturating_sub(self.hops);
        }
        if let Some(router) = &mut self.gate.router {
            router.on_passage(self.arrives, departs, packet, &self.view);
        }
        true
    }
    /// After that.
    #[inline(always)]
    pub(super) fn forget_lone(&mut self) {
        self.lone = Lone::NONE;
        self.arrives = Time::NEVER;
        self.due = self.timer;
    }

    /// It does not: it is remembered in the ring.
    #[inline]
    pub(super) fn remember_lone(&mut self) {
        if self.lone.is_there() {
            let Lone { departs, handle, bytes } = core::mem::replace(&mut self.lone, Lone::NONE);
            self.ring.push(Waiting { arrives: self.arrives, departs, handle, bytes, lost: false });
        }
    }

    /// [`Port::foresee`] where packets pass at once, for one that perhaps cannot.
    #[inline(never)]
    fn foresee_slowly(
        &mut self,
        at: Time,
        packet: (u32, u32),
        (unseen, unsure): (Time, Time),
        store: &mut impl Store,
    ) -> Time {
        let until = at.min(self.stats.unwatched(unseen)).min(Time(unsure.0.saturating_sub(1)));
        self.settle_due(until, store);
        let passes = if at < unsure { self.pass_at_once(at, store.packet(packet.0), packet.1, unseen) } else { None };
        passes.unwrap_or_else(|| {
            self.recall_passed(at);
            self.foresee_another(at, packet)
        })
    }

    /// Settles what can be up to `until`; whether nothing is left in the port nor ahead.
    #[inline(never)]
    fn make_way(&mut self, until: Time, unsure: Time, store: &mut impl Store) -> bool {
        self.remember_lone();
        let until = until.min(Time(unsure.0.saturating_sub(1)));
        if self.due <= until {
            self.settle_all(until, store);
        }
        self.ring.is_empty()
    }

    /// Whether packets of which nothing was done yet are kept in the ring; now and then it is tried whether that is over.
    #[inline(always)]
    fn keeps(&self) -> bool {
        !self.ring.is_empty() && !self.ring.is_at_turn()
    }

    /// [`Port::foresee`] at a port that keeps packets.
    #[inline(always)]
    fn foresee_another(&mut self, at: Time, (handle, bytes): (u32, u32)) -> Time {
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

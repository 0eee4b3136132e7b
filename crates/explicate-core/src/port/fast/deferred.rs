//! Plain ports defer their counting until they are observed. Most packets then cost little more than the computation
//! of their departure.

use super::cut_through::PASSED;
use crate::port::{Mode, Moment, Port};
use crate::transit::Waiting;
use crate::units::Time;

/// When the line becomes free of earlier packets, and when this packet departs.
#[derive(Clone, Copy)]
struct Service {
    free: Time,
    departs: Time,
}

impl Port {
    /// Whether this port decides nothing and writes nothing: it only counts.
    pub fn is_plain(&self) -> bool {
        matches!(self.mode, Mode::Counting | Mode::Deferred) && self.control.qdisc.is_none()
    }
    /// Whether this port writes into no packet, and only decides whether there is room.
    pub fn only_counts(&self) -> bool {
        matches!(self.mode, Mode::Counting | Mode::Deferred)
    }
    /// Makes a plain port defer its counting until it is observed or its ring is full. The driver must then report
    /// all of its packets by [`Port::pass`], and decrement their TTL itself: the port does not access them, as they
    /// may no longer exist.
    pub fn defer(&mut self, yes: bool) {
        if self.is_plain() {
            self.mode = if yes { Mode::Deferred } else { Mode::Counting };
        }
    }
    /// Whether it defers its counting.
    #[inline]
    pub fn defers(&self) -> bool {
        self.mode == Mode::Deferred
    }

    /// [`Port::predict`] where counting is deferred; the packet may also arrive now. `moment` is as in
    /// [`Port::handle_unobserved`].
    #[inline(always)]
    pub fn pass(&mut self, moment: Moment, at: Time, bytes: u32) -> Time {
        let free = Time(self.busy_until);
        if free > at {
            let departs = self.departure(at, bytes);
            self.pass_slowly(moment, at, bytes, Service { free, departs });
            return departs;
        }
        let departs = Time(self.line.finish(at.0, bytes, true));
        self.busy_until = departs.0;
        if self.stats.is_unwatched(departs, moment.unobserved_until) && self.ring.is_empty() {
            self.stats.arrived += 1;
            self.stats.bytes += bytes as u64;
        } else {
            self.pass_slowly(moment, at, bytes, Service { free, departs });
        }
        departs
    }

    /// [`Port::pass`] if the packet finds an idle line and leaves it before `unobserved_until`; otherwise nothing.
    #[inline(always)]
    pub fn pass_by(&mut self, at: Time, bytes: u32, unobserved_until: Time) -> Option<Time> {
        if self.mode != Mode::Deferred || self.busy_until > at.0 || !self.ring.is_empty() {
            return None;
        }
        let stats = &self.stats;
        self.busy_until =
            self.line.finish_if(at.0, bytes, |departs| stats.is_unwatched(Time(departs), unobserved_until))?;
        self.stats.arrived += 1;
        self.stats.bytes += bytes as u64;
        Some(Time(self.busy_until))
    }

    /// Whether [`Port::pass_by`] will take packets of up to `bytes`.
    pub fn passes_by(&self, at: Time, bytes: u32, unobserved_until: Time) -> bool {
        let free = self.mode == Mode::Deferred && self.busy_until <= at.0 && self.ring.is_empty();
        free && self.line.idle_finish(at.0, bytes).is_some_and(|at| at <= self.stats.unwatched(unobserved_until).0)
    }

    /// A packet waits, the port is observed before it departs, or earlier packets are stored for such reasons.
    #[inline(never)]
    fn pass_slowly(&mut self, moment: Moment, at: Time, bytes: u32, Service { free, departs }: Service) {
        if free <= at && self.stats.is_unwatched(departs, moment.unobserved_until) {
            self.apply_deferred(at); // all stored packets have left by then
            self.stats.arrived += 1;
            self.stats.bytes += bytes as u64;
            return;
        }
        if self.ring.is_full() {
            self.make_room(moment.now);
        }
        if free > at && self.ring.is_empty() {
            self.recall(free);
        }
        self.ring.push(Waiting { arrives: at, departs, handle: 0, bytes: bytes as u16, lost: false });
    }

    /// The packet in service was counted when it arrived, and departs at `departs`: other packets arrive before that.
    #[inline(never)]
    pub(in crate::port) fn recall(&mut self, departs: Time) {
        self.ring.push(Waiting { arrives: departs, departs, handle: PASSED, bytes: 0, lost: false });
        self.ring.advance();
        self.view.busy = true;
        self.leaves = departs;
        self.due = self.due.min(departs);
    }

    #[cold]
    fn make_room(&mut self, now: Time) {
        self.apply_deferred(now);
        if !self.ring.is_roomy() {
            self.ring.grow();
        }
    }

    /// Catches up at a port that deferred its counting: departures before arrivals, and nothing else.
    pub(in crate::port) fn apply_deferred(&mut self, now: Time) {
        loop {
            // Most packets find the line idle and leave before the next one arrives.
            if !self.view.busy {
                let passed = self.ring.pop_transits(self.stats.unwatched(now), |_| ());
                self.stats.arrived += passed.packets;
                self.stats.bytes += passed.bytes;
            }
            let arrives = self.ring.next_arrival();
            if self.leaves.min(arrives) > now {
                return;
            }
            if self.leaves <= arrives {
                let at = self.leaves;
                self.stats.departed(at, self.ring.pop().bytes);
                self.serve(at);
            } else {
                self.stats.arrived += 1;
                let Waiting { arrives, departs, bytes, .. } = *self.ring.first_ahead();
                self.join(arrives, departs, bytes as u32);
            }
        }
    }
}

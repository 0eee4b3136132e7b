//! Plain ports put off their counting: nobody sees the difference, and most packets cost little more than their departure.

use super::Port;
use super::at_once::PASSED;
use crate::passage::Waiting;
use crate::units::Time;

impl Port {
    /// Whether nothing is decided at this port and nothing written: it only counts.
    pub fn is_plain(&self) -> bool {
        self.is_foreseeable() && self.gate.router.is_none()
    }
    /// Whether nothing is written at this port, and all that is decided is whether there is room.
    pub fn only_counts(&self) -> bool {
        self.counts
    }
    /// Lets a plain port put off its counting until somebody looks or its ring is full. All of its packets must be told
    /// by [`Port::pass`] then. It touches none of them, for they may be gone: the driver counts their TTL down.
    pub fn put_off(&mut self, yes: bool) {
        self.put_off = yes && self.is_plain();
    }
    /// Whether it puts off its counting.
    #[inline]
    pub fn puts_off(&self) -> bool {
        self.put_off
    }

    /// [`Port::foresee`] where counting is put off; it may be `now` that the packet arrives. Nobody looks before `unseen`, as
    /// with [`Port::handle_unseen`].
    #[inline(always)]
    pub fn pass(&mut self, now: Time, at: Time, bytes: u32, unseen: Time) -> Time {
        let free = Time(self.busy_until);
        if free > at {
            let departs = self.departure(at, bytes);
            self.pass_slowly((now, unseen), at, bytes, (free, departs));
            return departs;
        }
        let departs = Time(self.line.finish(at.0, bytes, true));
        self.busy_until = departs.0;
        if self.stats.is_unwatched(departs, unseen) && self.ring.is_empty() {
            self.stats.arrived += 1;
            self.stats.bytes += bytes as u64;
        } else {
            self.pass_slowly((now, unseen), at, bytes, (free, departs));
        }
        departs
    }

    /// [`Port::pass`] if the packet finds an idle line and has left it before `unseen`; else nothing.
    #[inline(always)]
    pub fn pass_by(&mut self, at: Time, bytes: u32, unseen: Time) -> Option<Time> {
        if !self.put_off || self.busy_until > at.0 || !self.ring.is_empty() {
            return None;
        }
        let stats = &self.stats;
        self.busy_until = self.line.finish_if(at.0, bytes, |departs| stats.is_unwatched(Time(departs), unseen))?;
        self.stats.arrived += 1;
        self.stats.bytes += bytes as u64;
        Some(Time(self.busy_until))
    }

    /// Whether [`Port::pass_by`] will take packets of up to `bytes`.
    pub fn passes_by(&self, at: Time, bytes: u32, unseen: Time) -> bool {
        let free = self.put_off && self.busy_until <= at.0 && self.ring.is_empty();
        free && self.line.idle_finish(at.0, bytes).is_some_and(|at| at <= self.stats.unwatched(unseen).0)
    }

    /// A packet waits, somebody looks before it has left, or packets are remembered for such reasons.
    #[inline(never)]
    fn pass_slowly(&mut self, (now, unseen): (Time, Time), at: Time, bytes: u32, (free, departs): (Time, Time)) {
        if free <= at && self.stats.is_unwatched(departs, unseen) {
            self.catch_up(at); // all that is remembered has left by then
            self.stats.arrived += 1;
            self.stats.bytes += bytes as u64;
            return;
        }
        if self.ring.is_full() {
            self.make_room(now);
        }
        if free > at && self.ring.is_empty() {
            self.recall(free);
        }
        self.ring.push(Waiting { arrives: at, departs, handle: 0, bytes: bytes as u16, lost: false });
    }

    /// The packet in service was counted when it came, and departs at `departs`: others come before that.
    #[inline(never)]
    pub(super) fn recall(&mut self, departs: Time) {
        self.ring.push(Waiting { arrives: departs, departs, handle: PASSED, bytes: 0, lost: false });
        self.ring.advance();
        self.view.busy = true;
        self.leaves = departs;
        self.due = self.due.min(departs);
    }

    #[cold]
    fn make_room(&mut self, now: Time) {
        self.catch_up(now);
        if !self.ring.is_roomy() {
            self.ring.grow();
        }
    }

    /// Settles a port that put off its counting: departures before arrivals, and nothing else.
    pub(super) fn catch_up(&mut self, now: Time) {
        loop {
            // Most find the line idle and leave before the next one comes.
            if !self.view.busy {
                let (packets, bytes) = self.ring.pop_lonely(self.stats.unwatched(now), |_| ());
                self.stats.arrived += packets as u64;
                self.stats.bytes += bytes;
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

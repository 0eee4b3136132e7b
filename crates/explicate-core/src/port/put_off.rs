//! Plain ports put off their counting: nobody sees the difference, and most packets cost little more than their departure.

use super::Port;
use super::ring::Waiting;
use crate::units::Time;

impl Port {
    /// Whether nothing is decided at this port and nothing written: it only counts.
    pub fn is_plain(&self) -> bool {
        self.is_foreseeable() && self.gate.router.is_none()
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

    /// [`Port::foresee`] where counting is put off; it may be `now` that the packet arrives.
    #[inline(always)]
    pub fn pass(&mut self, now: Time, at: Time, bytes: u16) -> Time {
        if self.ring.is_full() {
            self.make_room(now);
        }
        let departs = self.departure(at, bytes as u32);
        self.ring.push(Waiting { arrives: at, departs, handle: 0, bytes, lost: false });
        departs
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
                let (packets, bytes) = self.ring.pop_lonely(self.stats.unwatched(now));
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
                self.join(arrives, departs, bytes);
            }
        }
    }
}

//! Catching up: computes what happened in a port before anything observes it: departures, predicted arrivals, timers.

use super::cut_through::PASSED;
use crate::port::{Mode, Note, Port, Store, Waiting};
use crate::transit::Transits;
use crate::units::Time;

impl Port {
    /// A predicted packet arrives. Most find the line idle and leave by `now`, before anything else happens here:
    /// they pass one after the other. Only their own processing is needed then, and none of the queue's.
    #[inline(always)]
    fn arrive(&mut self, now: Time, store: &mut impl Store) {
        if !self.view.busy && self.transit_in_order(now, store) {
            return;
        }
        let Waiting { arrives: at, departs, handle, bytes, .. } = *self.ring.first_ahead();
        self.stats.arrived += 1;
        store.note(at, self.number, handle, Note::Arrived);
        let packet = store.packet(handle);
        packet.ttl = packet.ttl.saturating_sub(self.hops);
        if let Some(router) = self.control.router.as_mut() {
            router.on_arrival(at, packet, &self.view);
        }
        self.join(at, departs, bytes as u32);
        self.arrives = self.ring.next_arrival();
        self.due = self.timer.min(self.leaves).min(self.arrives);
    }

    /// Processes consecutive packets that arrive and leave up to `now`, before the next arrival or timer; returns
    /// whether there were any.
    #[inline(always)]
    fn transit_in_order(&mut self, now: Time, store: &mut impl Store) -> bool {
        let until = self.stats.unwatched(now).min(Time(self.timer.0 - 1));
        let passed = match (&mut self.control.router, store.slots()) {
            (Some(router), Some(slots)) => {
                let (queue, after) = self.ring.side_by_side();
                let transits = Transits { queue, after, until, hops: self.hops, slots };
                let passed = router.on_transits(transits, &self.view);
                self.ring.skip(passed.packets);
                passed
            }
            (router, _) => self.ring.pop_transits(until, |&Waiting { arrives, departs, handle, .. }| {
                store.note(arrives, self.number, handle, Note::Arrived);
                let packet = store.packet(handle);
                packet.ttl = packet.ttl.saturating_sub(self.hops);
                if let Some(router) = router {
                    router.on_transit(arrives, departs, packet, &self.view);
                }
                store.note(departs, self.number, handle, Note::Departed);
            }),
        };
        self.stats.arrived += passed.packets;
        self.stats.bytes += passed.bytes;
        self.unpassed = self.ring.next_departure();
        self.arrives = self.ring.next_arrival();
        self.due = self.timer.min(self.arrives);
        passed.packets > 0
    }

    /// Catches up with everything that happened in the port up to `now`.
    pub fn catch_up(&mut self, now: Time, store: &mut impl Store) {
        if self.mode == Mode::Deferred {
            self.apply_deferred(now);
        } else {
            self.catch_up_due(now, store);
        }
    }

    /// [`Port::catch_up`] where nothing was deferred.
    #[inline(always)]
    pub fn catch_up_due(&mut self, now: Time, store: &mut impl Store) {
        if self.due <= now {
            self.catch_up_all(now, store);
        }
    }

    /// Whether an event up to `at` has not been processed.
    #[inline(always)]
    pub fn is_due(&self, at: Time) -> bool {
        self.due <= at
    }
    /// Packets that leave before this time are not written into any more.
    #[inline(always)]
    pub fn final_before(&self) -> Time {
        if self.mode == Mode::CutThrough { self.timer.min(self.unpassed) } else { self.due }
    }

    /// A separate function: inlined into the driver's loop it would displace values that the loop keeps in registers.
    #[inline(never)]
    pub(in crate::port) fn catch_up_all(&mut self, now: Time, store: &mut impl Store) {
        loop {
            if self.leaves == self.due {
                self.depart(store);
            } else if self.arrives < self.timer {
                self.arrive(now, store);
            } else if self.mode == Mode::CutThrough {
                self.run_controller();
            } else {
                self.catch_up_on_slow_path(store);
            }
            if self.due > now {
                return;
            }
        }
    }

    /// The due event is a timer, the departure of a class, or the use of a shared line.
    #[cold]
    fn catch_up_on_slow_path(&mut self, store: &mut impl Store) {
        let departs = self.scheduler.as_deref().and_then(|l| l.serving).map_or(Time::NEVER, |s| s.departs);
        let line = self.impairments.as_ref().map_or(Time::NEVER, |s| s.line_timer());
        let at = departs.min(self.timer).min(line);
        if at > self.due {
            self.rearm(); // the due time has moved, because the other end of the line was faster
        } else if departs == at {
            self.depart_from_class(store);
        } else if self.timer == at {
            self.run_timers(at);
        } else {
            self.ask_for_line(at, store);
        }
    }

    #[inline(always)]
    fn depart(&mut self, store: &mut impl Store) {
        let at = self.leaves;
        let done = self.ring.pop();
        self.stats.departed(at, done.bytes);
        if done.handle == PASSED {
            self.least = self.least.min(self.view.backlog_bytes);
        } else {
            self.show_departure(at, &done, store);
        }
        self.serve(at);
        self.due = self.timer.min(self.leaves).min(self.arrives);
    }

    /// The last bit of a packet leaves that was not cut through.
    #[inline(never)]
    fn show_departure(&mut self, at: Time, done: &Waiting, store: &mut impl Store) {
        self.unpassed = self.ring.next_departure();
        // The view contains all packets that wait when the last bit leaves, including the packet about to enter
        // service.
        if let Some(router) = &mut self.control.router {
            router.on_departure(at, store.packet(done.handle), &self.view);
        }
        if let Some(qdisc) = &mut self.control.qdisc
            && qdisc.wants_departures
        {
            qdisc.discipline.on_departure(at, &self.view);
        }
        store.note(at, self.number, done.handle, Note::Departed);
        if done.lost {
            self.lose(at, done.handle, store);
        }
    }

    fn run_timers(&mut self, at: Time) {
        if let Some(capacity) = self.impairments.as_mut().and_then(|s| s.capacity_from(at)) {
            self.view.capacity = capacity;
        }
        match self.scheduler.as_deref_mut() {
            Some(scheduler) => {
                scheduler.rebalance(at, self.view.capacity);
                for i in 0..scheduler.classes.len() {
                    let view = scheduler.view(i, self.view.capacity);
                    scheduler.classes[i].control.run_timers(at, &view);
                }
            }
            None => self.control.run_timers(at, &self.view),
        }
        self.rearm();
    }

    /// The timer of a port with cut-through: it is the controller's.
    #[inline(never)]
    fn run_controller(&mut self) {
        debug_assert_eq!(self.timer, self.due);
        let Some(router) = &mut self.control.router else { return };
        router.on_least_backlog(core::mem::replace(&mut self.least, u64::MAX));
        router.on_timer(self.timer, &self.view);
        let next = router.next_timer();
        self.timer = self.at_tick(next);
        self.due = self.timer.min(self.leaves).min(self.arrives);
    }

    /// The first predicted packet in the ring enters service or waits.
    #[inline]
    pub(in crate::port) fn join(&mut self, now: Time, departs: Time, bytes: u32) {
        self.ring.advance();
        if self.view.busy {
            self.wait(now, bytes);
        } else {
            self.view.busy = true;
            self.leaves = departs;
            self.due = self.due.min(departs);
        }
    }
    /// One more packet waits.
    #[inline(always)]
    pub(in crate::port) fn wait(&mut self, now: Time, bytes: u32) {
        self.stats.queue_changed(now, self.view.backlog_packets, self.view.backlog_bytes, 1);
        self.view.backlog_packets += 1;
        self.view.backlog_bytes += bytes as u64;
    }

    /// The next waiting packet enters service.
    #[inline]
    pub(in crate::port) fn serve(&mut self, at: Time) {
        if self.view.backlog_packets == 0 {
            self.view.busy = false;
            self.leaves = Time::NEVER;
        } else {
            self.serve_waiting(at);
        }
    }
    /// One packet fewer waits.
    #[inline(always)]
    pub(in crate::port) fn serve_waiting(&mut self, at: Time) {
        self.stats.queue_changed(at, self.view.backlog_packets, self.view.backlog_bytes, -1);
        let next = self.ring.first();
        self.leaves = next.departs;
        self.view.backlog_bytes -= next.bytes as u64;
        self.view.backlog_packets -= 1;
    }
}

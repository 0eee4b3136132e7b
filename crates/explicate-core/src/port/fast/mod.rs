//! The fast forms of a port: departures are computed when packets arrive, and the events in between are computed
//! before anything observes the port. The results are those of `reference.rs`, at a fraction of the cost.
//!
//! Each file is one shortcut: packets that are only counted (`counting.rs`), deferred counting (`deferred.rs`),
//! controllers that are called for a departure together with the arrival (`cut_through.rs`), packets whose arrival is
//! known in advance (`predict.rs`); and catching up (`catch_up.rs`) with the ring of waiting packets (`ring.rs`).

use alloc::boxed::Box;

use super::class::Admission;
use super::{Arrival, Arriving, At, Mode, Moment, Note, Port, Store, Waiting, mark_or_drop};
use crate::qdisc::{DropCause, Verdict};
use crate::units::Time;

mod catch_up;
mod counting;
mod cut_through;
mod deferred;
mod predict;
pub(super) mod ring;

impl Port {
    /// [`Port::handle_packet`], given the packet's length, by a driver that knows how long nothing observes the port.
    /// A port that only counts stores nothing about a packet that finds the line idle and departs by then.
    #[inline(always)]
    pub fn handle_unobserved(&mut self, moment: Moment, packet: Arriving, store: &mut impl Store) -> Arrival {
        if self.mode <= Mode::Deferred {
            return self.handle_counting(moment, packet, store);
        }
        if self.mode == Mode::CutThrough {
            return self.handle_cut_through(moment, packet, store);
        }
        let (now, Arriving { handle, bytes }) = (moment.now, packet);
        self.catch_up_due(now, store);
        self.stats.arrived += 1;
        store.note(now, self.number, handle, Note::Arrived);
        if self.mode >= Mode::Impaired {
            return self.handle_on_slow_path(now, handle, store);
        }
        if !self.admit(now, packet, store) {
            return Arrival::Dropped;
        }
        let departs = self.departure(now, bytes);
        self.ring.push(Waiting { arrives: now, departs, handle, bytes: bytes as u16, lost: false });
        self.join(now, departs, bytes);
        Arrival::Departs(departs)
    }

    /// Whether there is room for a packet, if the discipline is only a limit.
    #[inline(always)]
    pub(in crate::port) fn has_room(&self, bytes: u32) -> bool {
        let waiting = (self.view.backlog_bytes, self.view.backlog_packets);
        let queue_limit = self.control.qdisc.as_ref().and_then(|qdisc| qdisc.queue_limit.as_ref());
        queue_limit.is_none_or(|queue_limit| queue_limit.fits(waiting, bytes as u16))
    }

    #[cold]
    pub(in crate::port) fn drop_packet(&mut self, now: Time, handle: u32, cause: DropCause, store: &mut impl Store) {
        let (router, stats) = (&mut self.control.router, &mut self.stats);
        mark_or_drop(router, stats, now, At { port: self.number, handle }, Verdict::Drop(cause), &self.view, store);
    }

    /// Calls controller and discipline for an arriving packet; returns whether it joins the queue.
    #[inline]
    pub(in crate::port) fn admit(
        &mut self,
        now: Time,
        Arriving { handle, bytes }: Arriving,
        store: &mut impl Store,
    ) -> bool {
        let packet = store.packet(handle);
        if let Some(router) = &mut self.control.router {
            router.on_arrival(now, packet, &self.view);
        }
        let mut verdict = Verdict::Accept;
        if self.control.decides() {
            let idle_since = (!self.view.busy).then_some(Time(self.busy_until));
            let decide = |q: &mut Box<Admission>| q.discipline.on_arrival(now, packet, &self.view, idle_since);
            verdict = self.control.qdisc.as_mut().map_or(Verdict::Accept, decide);
        } else if self.view.busy && !self.has_room(bytes) {
            verdict = Verdict::Drop(DropCause::Overflow);
        }
        if verdict != Verdict::Accept {
            let (router, stats) = (&mut self.control.router, &mut self.stats);
            return mark_or_drop(router, stats, now, At { port: self.number, handle }, verdict, &self.view, store);
        }
        true
    }

    /// When a packet leaves that arrives at `at`, after earlier packets.
    #[inline]
    pub(in crate::port) fn departure(&mut self, at: Time, bytes: u32) -> Time {
        let idle = self.busy_until <= at.0;
        self.busy_until = self.line.finish(if idle { at.0 } else { self.busy_until }, bytes, idle);
        Time(self.busy_until)
    }

    /// Whether [`Port::predict`] is exact: the port decides nothing at arrivals and loses nothing.
    pub fn is_predictable(&self) -> bool {
        self.mode <= Mode::InOrder && self.control.qdisc.is_none()
    }
    /// Predicted packets that have not arrived.
    pub fn predicted(&self) -> usize {
        self.ring.len_ahead() as usize
    }

    /// A predicted packet passes `hops` routers since its TTL was last decremented, this one included; one by
    /// default.
    pub fn set_hops(&mut self, hops: u8) {
        self.hops = hops;
    }
}

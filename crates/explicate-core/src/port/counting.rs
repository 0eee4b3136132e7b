//! Ports at which nothing is written, and all that is decided is whether there is room: a packet that finds the line idle and has
//! left before anybody looks is counted, and forgotten.

use super::at_once::PASSED;
use super::{Arrival, DropCause, Note, Port, Store, Waiting};
use crate::units::Time;

impl Port {
    /// [`Port::handle_unseen`] at a port that only counts.
    #[inline(always)]
    pub(super) fn handle_counting(
        &mut self,
        (now, unseen): (Time, Time),
        (handle, bytes): (u32, u32),
        store: &mut impl Store,
    ) -> Arrival {
        self.settle_before_arrival(now, store);
        self.stats.arrived += 1;
        if !self.view.busy && self.busy_until <= now.0 {
            let departs = Time(self.line.finish(now.0, bytes, true));
            self.busy_until = departs.0;
            if self.stats.is_unwatched(departs, unseen) {
                self.stats.bytes += bytes as u64;
                return Arrival::Departs(departs);
            }
            store.note(now, self.number, handle, Note::Arrived);
            return self.keep(now, (handle, bytes), departs, unseen);
        }
        store.note(now, self.number, handle, Note::Arrived);
        self.recall_passed(now);
        if !self.has_room(bytes) {
            self.drop_packet(now, handle, DropCause::Overflow, store);
            return Arrival::Dropped;
        }
        let departs = self.departure(now, bytes);
        self.keep(now, (handle, bytes), departs, unseen)
    }

    /// Keeps in mind a packet of which only the counting is to be done; its handle is for notes, which are taken if somebody looks.
    #[inline(always)]
    fn keep(&mut self, now: Time, (handle, bytes): (u32, u32), departs: Time, unseen: Time) -> Arrival {
        let handle = if unseen > Time::ZERO { PASSED } else { handle };
        self.ring.push(Waiting { arrives: now, departs, handle, bytes: bytes as u16, lost: false });
        self.join(now, departs, bytes);
        Arrival::Departs(departs)
    }
}

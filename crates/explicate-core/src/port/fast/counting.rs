//! Ports that write into no packet and only decide whether there is room. A packet that finds the line idle and
//! departs before the port is observed is counted, and nothing is stored about it.

use super::cut_through::PASSED;
use crate::port::{Arrival, Arriving, Moment, Note, Port, Store, Waiting};
use crate::qdisc::DropCause;
use crate::units::Time;

impl Port {
    /// [`Port::handle_unobserved`] at a port that only counts.
    #[inline(always)]
    pub(in crate::port) fn handle_counting(
        &mut self,
        Moment { now, unobserved_until }: Moment,
        packet: Arriving,
        store: &mut impl Store,
    ) -> Arrival {
        let Arriving { handle, bytes } = packet;
        self.catch_up_due(now, store);
        self.stats.arrived += 1;
        if !self.view.busy && self.busy_until <= now.0 {
            let departs = Time(self.line.finish(now.0, bytes, true));
            self.busy_until = departs.0;
            if self.stats.is_unwatched(departs, unobserved_until) {
                self.stats.bytes += bytes as u64;
                return Arrival::Departs(departs);
            }
            store.note(now, self.number, handle, Note::Arrived);
            return self.keep(now, packet, departs, unobserved_until);
        }
        store.note(now, self.number, handle, Note::Arrived);
        self.recall_passed(now);
        if !self.has_room(bytes) {
            self.drop_packet(now, handle, DropCause::Overflow, store);
            return Arrival::Dropped;
        }
        let departs = self.departure(now, bytes);
        self.keep(now, packet, departs, unobserved_until)
    }

    /// Stores a packet that only has to be counted. Its handle is needed for notes, which are taken if the port may
    /// be observed.
    #[inline(always)]
    fn keep(&mut self, now: Time, packet: Arriving, departs: Time, unobserved_until: Time) -> Arrival {
        let Arriving { handle, bytes } = packet;
        let handle = if unobserved_until > Time::ZERO { PASSED } else { handle };
        self.ring.push(Waiting { arrives: now, departs, handle, bytes: bytes as u16, lost: false });
        self.join(now, departs, bytes);
        Arrival::Departs(departs)
    }
}

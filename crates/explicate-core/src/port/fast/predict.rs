//! Packets whose arrival is known in advance, at a port that is fed by one link only: they are kept in the ring, and
//! their arrivals and departures are processed together, a number of packets at a time.

use crate::port::{Arriving, Horizon, Mode, Port, Store};
use crate::transit::Waiting;
use crate::units::Time;

impl Port {
    /// A packet will arrive at `at` from the only link that feeds this port, or arrives now: computes its departure.
    /// Arrival and departure are processed later, in order of time: when later packets are reported, as far as the
    /// horizon allows, or when the port catches up. Only for ports that admit everything and lose nothing.
    #[inline(always)]
    pub fn predict(&mut self, at: Time, packet: Arriving, horizon: Horizon, store: &mut impl Store) -> Time {
        if self.mode == Mode::CutThrough && at < horizon.headers_final_before {
            let passes = self.cut_through(at, store.packet(packet.handle), packet.bytes, horizon.unobserved_until);
            return passes.unwrap_or_else(|| self.predict_on_slow_path(at, packet, horizon, store));
        }
        // At intervals the port catches up, which may empty the ring.
        if self.ring.is_empty() || self.ring.is_at_turn() {
            return self.predict_on_slow_path(at, packet, horizon, store);
        }
        self.predict_into_ring(at, packet)
    }

    /// [`Port::predict`], after catching up as far as the horizon allows.
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
        let passes = if self.mode == Mode::CutThrough && at < headers_final_before {
            self.cut_through(at, store.packet(packet.handle), packet.bytes, unobserved_until)
        } else {
            None
        };
        passes.unwrap_or_else(|| {
            if self.mode == Mode::CutThrough {
                self.recall_passed(at);
            }
            self.predict_into_ring(at, packet)
        })
    }

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

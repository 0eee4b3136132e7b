//! Packets from link to link: arrival at the end of one, and the port of the next.

use explicate_core::port::{Arrival, Arriving, Moment};
use explicate_core::units::Time;

use super::ack_fusion::Turn;
use super::link::Predicted;
use super::{Engine, Forwarded, Mark, NIL, Onward};
use crate::event::Event;

impl Engine {
    /// A packet reaches the end of a link.
    #[inline(always)]
    pub(super) fn arrive(&mut self, slot: u32, place: u32) -> Onward {
        let hop = self.routes[place as usize];
        let mut link = &mut self.links[hop.index()];
        let departed = Time(self.now.0.wrapping_sub(link.delay.0 & self.lag));
        if link.catch_up_own(departed, self.now, &mut self.arena) {
            self.catch_up_before_reading(hop.link(), departed);
            link = &mut self.links[hop.index()];
        }
        link.port.stats.delivered += 1;
        let hops = link.hops;
        link.in_transit -= (hop.has(Mark::TURN | Mark::REPLY)) as u32;
        let packet = self.arena.get_mut(slot);
        let onward = Onward::Forward { slot, place: place + 1, bytes: packet.ip_len as u32 };
        if hop.has(Mark::LAST | Mark::SEEN) {
            packet.ttl = packet.ttl.saturating_sub(hops - 1);
            if !hop.has(Mark::SEEN) || self.show(slot, place) {
                return self.deliver(slot);
            }
            return onward;
        }
        packet.ttl = packet.ttl.saturating_sub(hops);
        onward
    }

    /// Finalises the headers of a packet that departed over this link at `departed`: the port, and the ports to which
    /// it is fused, have to catch up to that time. They catch up to the present, so most later packets need no work.
    #[inline(always)]
    pub(super) fn catch_up_before_reading(&mut self, link: u32, departed: Time) {
        let l = &self.links[link as usize];
        let feeder = l.fused_to;
        if l.catches_up {
            if l.port.is_due(departed) {
                self.catch_up_chain(link);
            }
        } else if feeder != NIL {
            let f = &mut self.links[feeder as usize];
            if f.fused_to != NIL {
                self.catch_up_chain(feeder);
            } else if f.catches_up && f.port.is_due(departed) {
                f.port.catch_up_due(self.now, &mut self.arena);
            }
        }
    }

    /// Lets a port catch up to the present, after the ports to which it is fused.
    #[inline(never)]
    fn catch_up_chain(&mut self, link: u32) {
        let feeder = self.links[link as usize].fused_to;
        if feeder != NIL {
            self.catch_up_chain(feeder);
        }
        let l = &mut self.links[link as usize];
        if l.catches_up {
            l.port.catch_up_due(self.now, &mut self.arena);
        }
    }

    /// A packet joins the port at its place and the ports of the links fused to it. Returns the outcome.
    #[inline(always)]
    pub(super) fn forward(&mut self, now: Time, packet: Arriving, mut place: u32) -> Forwarded {
        let slot = packet.handle;
        let mut hop = self.routes[place as usize];
        let mut link = &mut self.links[hop.index()];
        let mut at = if link.predicts {
            let present = Moment { now: self.now, unobserved_until: self.unobserved_until };
            link.predict(present, Predicted { at: now, headers_final_before: Time::NEVER }, packet, &mut self.arena)
        } else {
            let moment = Moment { now, unobserved_until: self.unobserved_until };
            match link.port.handle_unobserved(moment, packet, &mut self.arena) {
                Arrival::Departs(departs) => link.end_of(departs),
                Arrival::Queued => {
                    Event::arrival(place).put(self.arena.slot_mut(slot));
                    self.queued(hop.link(), slot);
                    return Forwarded { flow: NIL, at: now };
                }
                Arrival::DepartsLost(_) => return Forwarded { flow: NIL, at: now },
                Arrival::Dropped => return Forwarded { flow: NIL, at: Time::NEVER },
            }
        };
        while hop.has(Mark::FUSED) {
            let headers_final_before = link.headers_final_before();
            place += 1;
            hop = self.routes[place as usize];
            link = &mut self.links[hop.index()];
            let present = Moment { now: self.now, unobserved_until: self.unobserved_until };
            at = link.predict(present, Predicted { at, headers_final_before }, packet, &mut self.arena);
        }
        if hop.has(Mark::REPLY) {
            if let Some(flow) = link.reply_ahead(at, self.unobserved_until, &self.ends, self.arena.get(slot)) {
                return Forwarded { flow, at };
            }
        } else if hop.has(Mark::TURN) {
            let turn = Turn { down: hop.link(), in_transit: link.in_transit, up: link.turn };
            self.turn_ahead(slot, at, place, turn);
            return Forwarded { flow: NIL, at: now };
        }
        self.wheel.insert(&mut self.arena, slot, at.0, Event::arrival(place));
        Forwarded { flow: NIL, at: now }
    }

    /// As `forward`, for rare calls. Returns whether the port accepted the packet.
    #[inline(never)]
    pub(super) fn forward_slowly(&mut self, now: Time, packet: Arriving, place: u32) -> bool {
        self.forward(now, packet, place).at != Time::NEVER
    }
}

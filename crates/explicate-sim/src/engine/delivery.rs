//! Packets at the ends of flows: delivery, and the packets sent in response.

use explicate_core::port::Arriving;
use explicate_core::units::Time;
use explicate_core::wire::flag;

use super::{Engine, Mark, NIL, Onward, host_queue};
use crate::event::{Due, Event};

impl Engine {
    /// A packet has reached its destination node.
    #[inline(always)]
    pub(super) fn deliver(&mut self, slot: u32) -> Onward {
        let header = &self.arena.get(slot).transport;
        let flow = header.flow();
        let is_ack = header.flags() & (flag::ACK | flag::CONTROL) == flag::ACK;
        if is_ack && (flow as usize) < self.ends.len() && self.arena.log.is_none() {
            return Onward::Send { flow, slot };
        }
        let due = self.deliver_any(slot);
        self.onward(due)
    }

    /// The same for any packet. The ACK reuses its slot.
    #[inline(never)]
    fn deliver_any(&mut self, slot: u32) -> Due {
        if self.arena.log.is_some() {
            self.arena.log_delivery(self.now, slot);
        }
        let packet = self.arena.get(slot);
        let header = &packet.transport;
        let flow = header.flow();
        let ends = self.ends.get_mut(flow as usize);
        let Some(ends) = ends.filter(|_| !header.has(flag::CONTROL)) else {
            self.deliver_rarely(slot);
            return Due::NOTHING;
        };
        if packet.is_ack() {
            return Due::answer(slot, flow);
        }
        let packet = self.arena.get_mut(slot);
        if !ends.receiver.turn(self.now, packet, &mut self.sack) {
            if ends.flow.is_one_way() {
                if ends.source.finite() && ends.receiver.has_last() {
                    ends.completed = ends.completed.min(self.now);
                }
                self.arena.give(slot);
            } else {
                self.arena.give(slot);
                self.arm_receiver(flow);
            }
            return Due::NOTHING;
        }
        let (place, bytes) = (ends.back, packet.ip_len as u32);
        if !self.host_queues.is_empty() {
            self.answer_from_host(self.now, place, bytes);
        }
        if self.arena.get(slot).transport.sack_count() > 0 {
            self.arena.set_sack(slot, &self.sack);
        }
        Due::forward(slot, place)
    }

    /// A message between agents, or a packet without a receiver.
    #[cold]
    fn deliver_rarely(&mut self, slot: u32) {
        let packet = *self.arena.get(slot);
        self.arena.give(slot);
        if packet.is_damaged() {
            // Not acknowledged: its checksum is wrong.
            if let Some(ends) = self.ends.get_mut(packet.transport.flow() as usize) {
                if packet.is_ack() {
                    ends.flow.count_damaged();
                } else {
                    ends.receiver.count_damaged();
                }
            }
        } else if packet.transport.has(flag::CONTROL) {
            self.deliver_control(&packet);
        }
    }

    /// Sends the packets that a flow may still send.
    #[inline(never)]
    pub(super) fn send_more(&mut self, now: Time, id: u32) {
        while !self.waits(now, id) && self.send_next(now, id, NIL) {}
    }

    /// Whether pacing lets a flow send nothing now. Its timer is then armed.
    #[inline]
    fn waits(&mut self, now: Time, id: u32) -> bool {
        let waits = self.ends[id as usize].flow.must_wait(now);
        if waits {
            self.rest(now, id);
        }
        waits
    }

    /// A flow takes the acknowledgement in `slot`, if any, and sends the next packet, if allowed, in that slot or a new one.
    /// Returns whether it may send more; otherwise its timer is armed.
    #[inline(always)]
    pub(super) fn send_next(&mut self, now: Time, id: u32, slot: u32) -> bool {
        let ends = &mut self.ends[id as usize];
        let acknowledged = slot != NIL;
        let slot = if acknowledged { slot } else { self.arena.take() };
        let mut pending = self.arena.slot_mut(slot);
        if acknowledged {
            if pending.packet.transport.sack_count() != 0 {
                self.sack = self.arena.take_sack(slot);
                pending = self.arena.slot_mut(slot);
            }
            ends.flow.handle_packet(now, &pending.packet, &self.sack);
        }
        let packet = &mut pending.packet;
        let next = match ends.host.is_some() {
            false => ends.flow.poll_next(now),
            true => host_queue::poll_next(&mut self.host_queues, ends, now),
        };
        if !next.is_some_and(|next| ends.flow.transmit(now, next, packet)) {
            self.nothing_of(now, id, slot);
            return false;
        }
        // A flow that paces has mostly to wait after each packet. In a host's queue this packet may decide how long.
        let stops = ends.flow.is_full() || (!ends.host.is_some() && ends.flow.must_wait(now));
        let timer = if stops { ends.rest(now) } else { Time::NEVER };
        let (place, bytes) = (ends.forward, packet.ip_len as u32);
        let hop = self.routes[place as usize];
        let link = &mut self.links[hop.index()];
        if ends.host.is_some() {
            host_queue::joins(&mut self.host_queues, ends, now, bytes);
        }
        let leaves = ends.processing.leaves(now, &packet.transport);
        // Most packets leave by a private link, on which nothing can delay them.
        if !hop.has(Mark::OWN) && leaves > now {
            self.hold(id, slot, leaves);
        } else if !hop.has(Mark::FUSED | Mark::REPLY | Mark::TURN)
            && link.predicts
            && let Some(departs) = link.port.leave(leaves, packet, bytes, self.unobserved_until)
        {
            let at = link.end_of(departs);
            Event::arrival(place).schedule(pending, at.0);
            self.wheel.put_in(&mut self.arena, slot, at.0);
        } else if !self.forward_slowly(leaves, Arriving { handle: slot, bytes }, place) {
            let flow = &mut self.ends[id as usize].flow;
            flow.refused(flow.sends_again());
        }
        if timer < Time::NEVER {
            self.arm_flow(now, id, timer);
        }
        !stops
    }

    /// A flow has nothing to send now: frees the slot.
    #[inline(always)]
    fn nothing_of(&mut self, now: Time, id: u32, slot: u32) {
        self.arena.give(slot);
        self.rest(now, id);
    }

    /// A flow sends nothing more now: arms its timer.
    #[inline(always)]
    fn rest(&mut self, now: Time, id: u32) {
        let timer = self.ends[id as usize].rest(now);
        if timer < Time::NEVER {
            self.arm_flow(now, id, timer);
        }
    }
}

//! Timers: of flows, their applications and receiving ends, of ports whose departures are polled, of media and
//! agents, and changes of routes; and packets that their hosts hold. Each is a slot in the event queue.

use explicate_build::source::Source;
use explicate_core::units::Time;

use super::{Engine, NIL};
use crate::event::{Due, Event, Timer};

impl Engine {
    #[inline(always)]
    pub(super) fn arm(&mut self, timer: Timer, due: Time) -> u32 {
        if due > self.end {
            return NIL;
        }
        let slot = self.arena.take();
        self.wheel.insert(&mut self.arena, slot, due.max(self.now).0, Event::timer(timer));
        slot
    }

    pub(super) fn arm_flow(&mut self, now: Time, id: u32, due: Time) {
        let timer = self.arm(Timer::Flow(id), self.ends[id as usize].flow.expires(due).max(now));
        let ends = &mut self.ends[id as usize];
        (ends.timer, ends.timer_due) = (timer, if timer == NIL { Time::NEVER } else { due });
    }

    /// A timer expires. Returns the remaining work: a flow that may send, or an acknowledgement to forward.
    #[inline(always)]
    pub(super) fn timer(&mut self, slot: u32, event: Event) -> Due {
        self.waited = self.now;
        // That of a flow first: a flow that paces has one for each packet.
        match event.flow() {
            Some(flow) => self.flow_timer(flow, slot),
            None => self.other_timer(slot, event),
        }
    }

    #[cold]
    fn other_timer(&mut self, slot: u32, event: Event) -> Due {
        let Some(timer) = event.expires() else { return Due::NOTHING };
        if let Timer::Held { flow, again } = timer {
            self.let_go(slot, flow, again);
            return Due::NOTHING;
        }
        self.arena.give(slot);
        match timer {
            Timer::Waiting => return self.reply_waiting(),
            Timer::Source(flow) => return self.source_timer(flow),
            Timer::Receiver(flow) => return self.receiver_timer(flow),
            Timer::Port(link) => self.port_timer(link),
            Timer::Medium(medium) => self.medium_timer(medium),
            Timer::Reroute(change) => self.change_routes(change),
            Timer::Agent(node) => self.agent_timer(node),
            Timer::Flow(_) | Timer::Held { .. } => {}
        }
        Due::NOTHING
    }

    #[cold]
    #[inline(never)]
    fn flow_timer(&mut self, id: u32, slot: u32) -> Due {
        self.arena.give(slot);
        let ends = &mut self.ends[id as usize];
        if ends.timer != slot {
            return Due::NOTHING;
        }
        (ends.timer, ends.timer_due) = (NIL, Time::NEVER);
        let due = ends.flow.poll_timeout();
        if due > self.now {
            // Timers move to later times without a new event; this one is rescheduled.
            self.arm_flow(self.now, id, due);
            return Due::NOTHING;
        }
        ends.flow.handle_timeout(self.now);
        if let Source::Sessions(sessions) = &mut ends.source
            && let Some(at) = sessions.check(self.now, &mut ends.flow, &mut ends.receiver)
        {
            self.arm(Timer::Source(id), at);
        }
        Due::send(id)
    }

    fn source_timer(&mut self, id: u32) -> Due {
        let ends = &mut self.ends[id as usize];
        let before = ends.sessions().0;
        let again = ends.source.act(self.now, &mut ends.flow, &mut ends.receiver);
        self.renew_processing(id, before);
        if let Some(at) = again {
            self.arm(Timer::Source(id), at);
        }
        Due::send(id)
    }

    /// A receiving end that sent no acknowledgement may be delaying one.
    #[cold]
    pub(super) fn arm_receiver(&mut self, id: u32) {
        let due = self.ends[id as usize].receiver.poll_timeout();
        let armed = self.held_back.entry(id).or_insert(Time::NEVER);
        // A pending timer that expires too early detects this then.
        if due < *armed {
            *armed = due;
            self.arm(Timer::Receiver(id), due);
        }
    }

    fn receiver_timer(&mut self, id: u32) -> Due {
        if self.held_back.get(&id) != Some(&self.now) {
            return Due::NOTHING;
        }
        self.held_back.remove(&id);
        let ends = &mut self.ends[id as usize];
        ends.receiver.handle_timeout(self.now);
        let slot = self.arena.take();
        if !ends.receiver.poll_transmit(self.now, self.arena.get_mut(slot), &mut self.sack) {
            self.arena.give(slot);
            self.arm_receiver(id);
            return Due::NOTHING;
        }
        let place = ends.back;
        self.arena.set_sack(slot, &self.sack);
        if !self.host_queues.is_empty() {
            self.answer_from_host(self.now, place, self.arena.get(slot).ip_len as u32);
        }
        Due::forward(slot, place)
    }

    /// A scheduled port is polled: its departures are not known in advance.
    pub(super) fn arm_port(&mut self, index: u32) {
        self.arm_port_alone(index);
        if let Some(&twin) = self.twins.get(&index) {
            self.arm_port_alone(twin);
        }
    }

    fn arm_port_alone(&mut self, index: u32) {
        if let Some(due) = self.links[index as usize].port.next_event(self.now) {
            self.arm(Timer::Port(index), due);
        }
    }

    fn port_timer(&mut self, index: u32) {
        let link = &mut self.links[index as usize];
        if !link.port.take_event(self.now) {
            return;
        }
        link.port.handle_timeout(self.now, &mut self.arena);
        while let Some((slot, departed)) = link.port.poll_transmit() {
            let at = departed + link.delay;
            let event = Event::of(self.arena.slot(slot));
            self.wheel.insert(&mut self.arena, slot, at.max(self.now).0, event);
        }
        self.arm_port(index);
    }
}

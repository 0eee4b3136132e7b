//! Timers: of flows, their applications and receiving ends, of ports whose departures are not known in advance, of media and
//! agents, and changes of routes; and packets that their hosts hold. Each is a slot in the queue of events whose place says what it is of.

use explicate_build::source::Source;
use explicate_core::units::Time;

use super::{DONE, Due, Engine, FLOW, HELD, KIND, MEDIUM, NIL, PORT, REROUTE, SINK, SOURCE, WAITING};

impl Engine {
    pub(super) fn arm(&mut self, place: u32, due: Time) -> u32 {
        if due > self.end {
            return NIL;
        }
        let slot = self.arena.take();
        self.wheel.insert(&mut self.arena, slot, due.max(self.now).0, place);
        slot
    }

    pub(super) fn arm_flow(&mut self, now: Time, id: u32, due: Time) {
        let timer = self.arm(FLOW | id, self.ends[id as usize].flow.expires(due).max(now));
        let ends = &mut self.ends[id as usize];
        (ends.timer, ends.timer_due) = (timer, if timer == NIL { Time::NEVER } else { due });
    }

    /// A timer's time has come. What is to be sent then: by the flow that may send, or an acknowledgement.
    #[cold]
    pub(super) fn timer(&mut self, slot: u32, place: u32) -> Due {
        let id = place & !KIND;
        self.waited = self.now;
        if place & KIND == HELD {
            self.let_go(slot, place);
            return DONE;
        }
        self.arena.give(slot);
        match place & KIND {
            _ if place == WAITING => return self.reply_waiting(),
            FLOW => return self.flow_timer(id, slot),
            SOURCE => return self.source_timer(id),
            PORT => self.port_timer(id),
            SINK => return self.sink_timer(id),
            MEDIUM => self.medium_timer(id),
            REROUTE => self.change_routes(id),
            _ => self.agent_timer(id),
        }
        DONE
    }

    fn flow_timer(&mut self, id: u32, slot: u32) -> Due {
        let ends = &mut self.ends[id as usize];
        if ends.timer != slot {
            return DONE;
        }
        (ends.timer, ends.timer_due) = (NIL, Time::NEVER);
        let due = ends.flow.poll_timeout();
        if due > self.now {
            // Timers move ahead without being re-armed; this one has caught up.
            self.arm_flow(self.now, id, due);
            return DONE;
        }
        ends.flow.handle_timeout(self.now);
        if let Source::Sessions(sessions) = &mut ends.source
            && let Some(at) = sessions.check(self.now, &mut ends.flow, &mut ends.sink)
        {
            self.arm(SOURCE | id, at);
        }
        Due::of(id)
    }

    fn source_timer(&mut self, id: u32) -> Due {
        let ends = &mut self.ends[id as usize];
        let before = ends.sessions().0;
        let again = ends.source.act(self.now, &mut ends.flow, &mut ends.sink);
        self.renew_processing(id, before);
        if let Some(at) = again {
            self.arm(SOURCE | id, at);
        }
        Due::of(id)
    }

    /// A receiving end that acknowledged nothing may be waiting for more.
    #[cold]
    pub(super) fn arm_sink(&mut self, id: u32) {
        let due = self.ends[id as usize].sink.poll_timeout();
        let armed = self.held_back.entry(id).or_insert(Time::NEVER);
        // A pending timer that comes too early finds out then.
        if due < *armed {
            *armed = due;
            self.arm(SINK | id, due);
        }
    }

    fn sink_timer(&mut self, id: u32) -> Due {
        if self.held_back.get(&id) != Some(&self.now) {
            return DONE;
        }
        self.held_back.remove(&id);
        let ends = &mut self.ends[id as usize];
        ends.sink.handle_timeout(self.now);
        let slot = self.arena.take();
        if !ends.sink.poll_transmit(self.now, self.arena.get_mut(slot), &mut self.sack) {
            self.arena.give(slot);
            self.arm_sink(id);
            return DONE;
        }
        let place = ends.back;
        self.arena.set_sack(slot, &self.sack);
        Due { slot, what: place }
    }

    /// A scheduled port is driven from outside: its departures are not known in advance.
    pub(super) fn arm_port(&mut self, index: u32) {
        self.arm_port_alone(index);
        if let Some(&twin) = self.twins.get(&index) {
            self.arm_port_alone(twin);
        }
    }

    fn arm_port_alone(&mut self, index: u32) {
        if let Some(due) = self.links[index as usize].port.next_event(self.now) {
            self.arm(PORT | index, due);
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
            let place = self.arena.get(slot).place;
            self.wheel.insert(&mut self.arena, slot, at.max(self.now).0, place);
        }
        self.arm_port(index);
    }
}

//! The reference version of the engine: one event for each departure and one for each arrival, each at its own time.
//!
//! Departures and timers of ports precede all other events of the same time, as they do where ports compute them
//! later. So the order of all other events, in particular of ties, is that of the fast engine, and tables are
//! identical to the last bit.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use explicate_core::port::Arriving;
use explicate_core::units::Time;

use super::{Engine, Onward};
use crate::event::Event;
use crate::wheel::Taken;

/// When each port has something to do.
#[derive(Default)]
pub(super) struct Departures {
    /// The pending event of each link, or never.
    pending: Vec<Time>,
    /// Events; those that are not the pending one of their link are ignored.
    queue: BinaryHeap<Reverse<(Time, u32)>>,
}

impl Engine {
    /// Runs this network on reference ports. Call before the first event, on an engine that was made without fusing.
    ///
    /// # Panics
    /// If the engine fuses links, or has handled an event.
    pub fn use_reference(&mut self) {
        assert!(
            !self.fuse && self.events() == 0,
            "the reference engine begins with the first event, and fuses nothing"
        );
        let mut departures = Departures { pending: vec![Time::NEVER; self.links.len()], queue: BinaryHeap::new() };
        departures.queue.reserve(self.links.len());
        self.departures = Some(Box::new(departures));
        for index in 0..self.links.len() {
            if self.links[index].port.use_reference() {
                self.arm_departure(index as u32);
            }
        }
    }

    /// All events up to `until`, in order of time.
    pub(super) fn run_reference(&mut self, until: Time) {
        loop {
            let departure = self.departures.as_ref().and_then(|d| d.queue.peek()).map_or(Time::NEVER, |next| next.0.0);
            let before = until.min(Time(departure.0 - 1));
            let rank = |slot: &_| super::rank(&self.routes, slot);
            if let Some(taken) = self.wheel.pop(&mut self.arena, before.0, rank) {
                self.handle_event(taken);
            } else if departure <= until {
                self.handle_departure();
            } else {
                return;
            }
        }
    }

    /// A packet reaches the end of a link, or a timer of a flow, an application, an agent or a medium expires.
    fn handle_event(&mut self, Taken { slot, time, event }: Taken) {
        self.now = Time(time);
        let onward = if event.is_timer() {
            let due = self.timer(slot, event);
            self.onward(due)
        } else {
            self.arrive(slot, event.place())
        };
        match onward {
            Onward::Forward { slot, place, bytes } => {
                self.forward_slowly(self.now, Arriving { handle: slot, bytes }, place);
            }
            Onward::Send { flow, slot } => {
                if self.send_next(self.now, flow, slot) {
                    self.send_more(self.now, flow);
                }
            }
            Onward::Nothing => {}
        }
    }

    /// A packet departs from a port and will arrive after the link's delay, or a timer of the port expires.
    fn handle_departure(&mut self) {
        let Some(departures) = &mut self.departures else { return };
        let Some(Reverse((now, index))) = departures.queue.pop() else { return };
        if departures.pending[index as usize] != now {
            return;
        }
        departures.pending[index as usize] = Time::NEVER;
        self.now = now;
        let link = &mut self.links[index as usize];
        link.port.handle_timeout(now, &mut self.arena);
        while let Some((slot, departed)) = link.port.poll_transmit() {
            let event = Event::of(self.arena.slot(slot));
            self.wheel.insert(&mut self.arena, slot, link.end_of(departed).0, event);
        }
        self.arm_departure(index);
    }

    /// Schedules an event for when the port of a link has something to do.
    pub(super) fn arm_departure(&mut self, index: u32) {
        let due = self.links[index as usize].port.poll_timeout();
        let Some(departures) = &mut self.departures else { return };
        let pending = &mut departures.pending[index as usize];
        if due < *pending {
            *pending = due;
            departures.queue.push(Reverse((due, index)));
        }
    }
}

//! Wireless media: packets wait at the interfaces of their stations, and the medium determines when they arrive.

use explicate_core::medium::dcf::{Driver, Medium};
use explicate_core::port::{Note, Port, Store};
use explicate_core::units::Time;
use explicate_core::wire::Packet;

use super::{Armed, Engine, Hop, Link};
use crate::arena::{Arena, NIL};
use crate::error::{Counts, Imbalance};
use crate::event::{Event, Timer};

/// The medium of a link, and the link's number there.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Radio {
    medium: u32,
    number: u32,
}

impl Radio {
    /// The link does not use a medium.
    pub(super) const NONE: Radio = Radio { medium: NIL, number: NIL };
}

/// The part of the engine that a medium can access.
struct World<'a> {
    now: Time,
    arena: &'a mut Arena,
    links: &'a mut [Link],
    routes: &'a [Hop],
    radios: &'a [Radio],
}

impl World<'_> {
    /// The link of a packet.
    fn link_of(&self, slot: u32) -> u32 {
        self.routes[Event::of(self.arena.slot(slot)).place() as usize].link()
    }
}

impl Driver for World<'_> {
    fn now(&self) -> Time {
        self.now
    }
    fn frame(&mut self, slot: u32) -> (u32, u32) {
        let link = self.link_of(slot) as usize;
        (self.radios[link].number, self.links[link].port.coded_bytes(slot, self.arena))
    }
    fn attempt_is_lost(&mut self, link: u32, packet: &Packet, bytes: u32) -> bool {
        self.links[link as usize].port.attempt_is_lost(self.now, packet, bytes)
    }
    fn gave_up(&mut self, link: u32, slot: u32) {
        self.links[link as usize].port.gave_up(self.now, slot, self.arena);
    }
}

/// Reports what an interface does to a packet to the packet's link.
impl Store for World<'_> {
    fn packet(&mut self, handle: u32) -> &mut Packet {
        self.arena.get_mut(handle)
    }
    fn release(&mut self, handle: u32) {
        self.arena.give(handle);
    }
    fn note(&mut self, at: Time, _port: u32, handle: u32, what: Note) {
        let link = self.link_of(handle);
        let data = self.arena.get_mut(handle).is_data();
        let port = &mut self.links[link as usize].port;
        match what {
            Note::Arrived => return, // already at the link
            Note::Dropped(cause) => port.refused(cause, data),
            Note::Marked => port.marked(),
            Note::Departed | Note::Lost | Note::Damaged | Note::Copied => {}
        }
        self.arena.note(at, link, handle, what);
    }
}

impl Engine {
    /// Adds a medium with links that were added and shared before, in the order of their numbers there.
    pub fn add_medium(&mut self, medium: Medium, links: &[u32]) {
        self.radios.resize(self.links.len(), Radio::NONE);
        let index = self.media.len() as u32;
        for (number, &link) in links.iter().enumerate() {
            self.radios[link as usize] = Radio { medium: index, number: number as u32 };
        }
        self.media.push(Armed::new(medium));
        self.arm_medium(index);
    }

    /// A link's medium and number there, if it uses one.
    pub(super) fn radio(&self, link: u32) -> Option<Radio> {
        self.radios.get(link as usize).copied().filter(|radio| *radio != Radio::NONE)
    }

    /// A packet waits at a port whose departures are not known in advance.
    #[cold]
    pub(super) fn queued(&mut self, link: u32, slot: u32) {
        match self.radio(link) {
            Some(Radio { medium, number }) => self.with_medium(medium, |m, world| m.enqueue(world, number, slot)),
            None if self.links[link as usize].port.is_reference() => self.arm_departure(link),
            None => self.arm_port(link),
        }
    }

    fn with_medium(&mut self, index: u32, act: impl FnOnce(&mut Medium, &mut World<'_>)) {
        let Engine { arena, links, routes, radios, media, now, .. } = self;
        act(&mut media[index as usize].machine, &mut World { now: *now, arena, links, routes, radios });
        self.arm_medium(index);
    }

    fn arm_medium(&mut self, index: u32) {
        let medium = &mut self.media[index as usize];
        let due = medium.machine.poll_timeout();
        // An event that has become too early has no effect.
        if due < medium.due {
            medium.due = due;
            self.arm(Timer::Medium(index), due);
        }
    }

    pub(super) fn medium_timer(&mut self, index: u32) {
        if self.media[index as usize].due != self.now {
            return;
        }
        self.media[index as usize].due = Time::NEVER;
        self.with_medium(index, |medium, world| medium.handle_timeout(world));
        while let Some(slot) = self.media[index as usize].machine.poll_delivered() {
            let link = self.routes[Event::of(self.arena.slot(slot)).place() as usize].link();
            let Link { port, delay, .. } = &mut self.links[link as usize];
            let delay = *delay;
            if port.carried(self.now, slot, &mut self.arena) {
                self.propagate(slot, self.now + delay);
                continue;
            }
            while let Some((slot, departed)) = self.links[link as usize].port.poll_transmit() {
                self.propagate(slot, departed + delay);
            }
        }
    }

    /// A packet will reach the end of its link.
    fn propagate(&mut self, slot: u32, at: Time) {
        let event = Event::of(self.arena.slot(slot));
        self.wheel.insert(&mut self.arena, slot, at.0, event);
    }

    /// Starts the measured span, after the warm-up. Call `catch_up` first.
    pub fn start_measuring(&mut self) {
        self.links.iter_mut().for_each(|l| l.port.start_measuring(self.now));
        self.media.iter_mut().for_each(|m| m.machine.start_measuring(self.now));
    }
    /// Media, in the order in which they were added.
    pub fn medium(&self, index: usize) -> Option<&Medium> {
        self.media.get(index).map(|medium| &medium.machine)
    }
    /// The medium that a link uses, and its number there.
    pub fn over(&self, link: usize) -> Option<(&Medium, u32)> {
        self.radio(link as u32).map(|radio| (&self.media[radio.medium as usize].machine, radio.number))
    }
    /// The port at which a link's packets wait: its own, or its radio's interface.
    pub fn queue_of(&self, link: usize) -> &Port {
        self.over(link).map_or(&self.links[link].port, |(medium, number)| medium.interface(number))
    }
    /// As above, mutably, for values that have to be computed.
    pub fn queue_of_mut(&mut self, link: usize) -> &mut Port {
        match self.radio(link as u32) {
            Some(Radio { medium, number }) => self.media[medium as usize].machine.interface_mut(number),
            None => &mut self.links[link].port,
        }
    }

    /// Lets the interfaces of all media catch up, or that of one link.
    pub(super) fn catch_up_media(&mut self, link: Option<usize>) {
        let only = link.and_then(|l| self.radio(l as u32));
        if link.is_some() && only.is_none() {
            return;
        }
        for (i, medium) in self.media.iter_mut().enumerate() {
            if only.is_none_or(|radio| radio.medium as usize == i) {
                let (links, routes, radios) = (&mut self.links, &self.routes, &self.radios);
                let world = &mut World { now: self.now, arena: &mut self.arena, links, routes, radios };
                medium.machine.catch_up(world, only.map(|radio| radio.number));
            }
        }
    }

    /// Checks that the packets of every interface are conserved, over all its links, given those that propagate and
    /// those that arrived. Returns the number of packets there.
    pub(super) fn audit_media(&self, on_link: &[u64], delivered: &[u64]) -> Result<u64, Imbalance> {
        let mut slots = 0;
        for (links, waiting) in self.media.iter().flat_map(|medium| medium.machine.inside()) {
            let sum = |of: &dyn Fn(usize) -> u64| links.iter().map(|&l| of(l as usize)).sum::<u64>();
            let came = sum(&|l| self.links[l].port.stats.arrived);
            let counts = Counts {
                came: came + sum(&|l| self.links[l].port.stats.total().copies),
                delivered: sum(&|l| delivered[l]),
                dropped: sum(&|l| self.links[l].port.stats.total().lost_or_dropped()),
                inside: sum(&|l| on_link[l]) + waiting,
            };
            if !counts.balance() {
                return Err(Imbalance::Interface { links: links.to_vec(), counts });
            }
            slots += counts.inside;
        }
        Ok(slots)
    }
}

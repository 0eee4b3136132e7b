//! What a router that speaks with others does with frames: hears those that are for it, makes those that it has to say.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use explicate_core::port::Store;
use explicate_core::units::Time;
use explicate_core::wire::{SackRanges, UDP_PORT, XcpI, flag};

use super::frame::{self, Kind, Lifted};
use super::made;
use super::output::Output;
use super::pool::Pool;
use super::stations::{self, hardware_address};
use crate::agent::Speaker;

/// What speaks for a router, and how it gets through.
pub(super) struct Voice {
    /// The agent.
    pub(super) speaker: Speaker,
    /// Its hardware address.
    station: [u8; 6],
    /// At which outputs it looks at packets.
    watched: Vec<bool>,
    /// How those that it may have to speak to are reached.
    neighbours: BTreeMap<Ipv4Addr, ([u8; 6], usize)>,
}

/// What becomes of a frame that it heard.
pub(super) enum Heard {
    /// It was for the router.
    Taken,
    /// It asks for an answer, which goes back where it came from.
    Answer(Vec<u8>),
    /// It goes on.
    Other,
}

impl Voice {
    /// `speaker` is at `station`, and looks at the packets of flows before they join the outputs that are `watched`.
    pub(super) fn new(speaker: Speaker, station: [u8; 6], watched: Vec<bool>) -> Voice {
        Voice { speaker, station, watched, neighbours: BTreeMap::new() }
    }

    /// A frame came by an interface.
    pub(super) fn hear(&mut self, now: Time, from: usize, bytes: &[u8], lifted: &Lifted) -> Heard {
        let own = self.speaker.own;
        if lifted.is_tagged() {
            return Heard::Other; // what it says has no tag, and would not get back
        }
        match lifted.kind {
            Kind::Alien => return made::answer_arp(bytes, own, self.station).map_or(Heard::Other, Heard::Answer),
            Kind::Other => return Heard::Other,
            Kind::Explicit { .. } => {}
        }
        let (source, destination) = frame::addresses(bytes, lifted.ip);
        // Whoever wants an answer is reached the way his packets came.
        let back = (hardware_address(bytes, 6), from);
        let named = XcpI::of(&lifted.packet).map(|fields| fields.last_router.into());
        let message = lifted.packet.transport.has(flag::CONTROL);
        for node in named.into_iter().chain(message.then_some(source)) {
            if self.neighbours.len() < stations::MOST || self.neighbours.contains_key(&node) {
                self.neighbours.insert(node, back);
            }
        }
        if message && destination == own {
            self.speaker.handle_control(now, source, &lifted.packet);
            return Heard::Taken;
        }
        Heard::Other
    }

    /// A frame is about to join an output, the one of this number.
    pub(super) fn look(&mut self, now: Time, to: usize, output: &mut Output, handle: u32, pool: &mut Pool) {
        let (bytes, lifted) = pool.frame(handle);
        let data = matches!(lifted.kind, Kind::Explicit { writable: true, .. }) && !lifted.packet.is_ack();
        if !self.watched[to] || !data || lifted.is_tagged() {
            return;
        }
        let destination = frame::addresses(bytes, lifted.ip).1;
        output.catch_up(now.max(output.caught_up()), pool);
        self.speaker.handle_data(now, pool.packet(handle), destination, Some(&output.port.view()));
    }

    /// The next frame that it has to say, and the interface for it.
    pub(super) fn say(&mut self, now: Time) -> Option<(usize, Vec<u8>)> {
        self.speaker.handle_timeout(now);
        loop {
            let (to, packet, more) = self.speaker.poll(now)?;
            let Some(&(there, by)) = self.neighbours.get(&to) else { continue };
            let (stations, addresses) = ((self.station, there), (self.speaker.own.octets(), to.octets()));
            let ports = (UDP_PORT, UDP_PORT);
            return Some((by, made::make(&packet, &SackRanges::NONE, &vec![0; more], stations, addresses, ports)));
        }
    }
}

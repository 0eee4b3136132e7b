//! The agent of a router: handles the frames addressed to it and makes the frames of its messages.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use explicate_core::port::Store;
use explicate_core::units::Time;
use explicate_core::wire::{Extension, SackRanges, UDP_PORT, flag};

use super::forwarding_table::{self, hardware_address};
use super::frame::{self, Kind, Parsed};
use super::made;
use super::output::Output;
use super::pool::Pool;
use crate::agent::AgentHost;

/// A router's agent with its hardware address and its neighbours.
pub(super) struct RouterAgent {
    /// The agent.
    pub(super) host: AgentHost,
    /// Its hardware address.
    station: [u8; 6],
    /// The outputs whose data packets it handles.
    watched: Vec<bool>,
    /// Hardware address and interface of each node to which it may send.
    neighbours: BTreeMap<Ipv4Addr, ([u8; 6], usize)>,
}

/// The disposition of a frame.
pub(super) enum Disposition {
    /// It was addressed to the router.
    Consumed,
    /// It is answered by this frame, to the interface from which it arrived.
    Reply(Vec<u8>),
    /// It is forwarded.
    Forward,
}

impl RouterAgent {
    /// An agent at the hardware address `station`, which handles data packets before they enter the `watched` outputs.
    pub(super) fn new(host: AgentHost, station: [u8; 6], watched: Vec<bool>) -> RouterAgent {
        RouterAgent { host, station, watched, neighbours: BTreeMap::new() }
    }

    /// Handles a frame from an interface.
    pub(super) fn handle_frame(&mut self, now: Time, from: usize, bytes: &[u8], parsed: &Parsed) -> Disposition {
        let own = self.host.own;
        if parsed.is_tagged() {
            return Disposition::Forward; // its own frames have no tag, so an answer would be lost
        }
        match parsed.kind {
            Kind::NonIp => {
                return made::answer_arp(bytes, own, self.station).map_or(Disposition::Forward, Disposition::Reply);
            }
            Kind::Other => return Disposition::Forward,
            Kind::Explicit { .. } => {}
        }
        let (source, destination) = frame::addresses(bytes, parsed.ip);
        // Answers leave through the interface by which packets arrived.
        let back = (hardware_address(bytes, 6), from);
        let named = Extension::of(&parsed.packet).map(|extension| extension.node.into());
        let message = parsed.packet.transport.has(flag::CONTROL);
        for node in named.into_iter().chain(message.then_some(source)) {
            if self.neighbours.len() < forwarding_table::MOST || self.neighbours.contains_key(&node) {
                self.neighbours.insert(node, back);
            }
        }
        if message && destination == own {
            self.host.handle_control(now, source, &parsed.packet);
            return Disposition::Consumed;
        }
        Disposition::Forward
    }

    /// Handles a data packet before it enters the output of this number.
    pub(super) fn handle_data(&mut self, now: Time, to: usize, output: &mut Output, handle: u32, pool: &mut Pool) {
        let (bytes, parsed) = pool.frame(handle);
        let data = matches!(parsed.kind, Kind::Explicit { writable: true, .. }) && !parsed.packet.is_ack();
        if !self.watched[to] || !data || parsed.is_tagged() {
            return;
        }
        let destination = frame::addresses(bytes, parsed.ip).1;
        output.catch_up(now.max(output.caught_up()), pool);
        self.host.handle_data(now, pool.packet(handle), destination, Some(&output.port.view()));
    }

    /// The next frame to send, and its interface.
    pub(super) fn poll(&mut self, now: Time) -> Option<(usize, Vec<u8>)> {
        self.host.handle_timeout(now);
        loop {
            let (to, packet, more) = self.host.poll(now)?;
            let Some(&(there, by)) = self.neighbours.get(&to) else { continue };
            let (table, addresses) = ((self.station, there), (self.host.own.octets(), to.octets()));
            let ports = (UDP_PORT, UDP_PORT);
            return Some((by, made::make(&packet, &SackRanges::NONE, &vec![0; more], table, addresses, ports)));
        }
    }
}

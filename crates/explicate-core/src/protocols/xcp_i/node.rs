//! The agent of a node with XCP-i: detects clouds by their TTL, and is the upstream edge of some and the downstream
//! edge of others.

use alloc::vec::Vec;

use super::clouds::Clouds;
use super::edge::Edge;
use super::message::{Kind, Message};
use super::{NO_ADDRESS, Params, Receives};
use crate::agent::{Address, Agent, AgentInit, Control, PathOracle};
use crate::api::{PortView, Probe};
use crate::units::Time;
use crate::wire::{Extension, Packet, flag};

pub(super) struct Node {
    own: Address,
    edge: Edge,
    clouds: Clouds,
    /// Clouds downstream of this node, for ends that requested it to compute on their behalf.
    ahead: Clouds,
    /// What a receiving end does about a cloud upstream of it.
    receives: Receives,
    /// Messages to send.
    out: Vec<Control>,
    malformed: u64,
}

/// The view of a receiving end, which has no output port: no queue.
const NO_PORT: PortView = PortView { capacity: 0.0, backlog_bytes: 0, backlog_packets: 0, busy: false };

impl Node {
    pub(super) fn new(init: &AgentInit<'_>) -> Node {
        let mut rng = init.rng.clone();
        let other = crate::rng::Rng::stream(rng.next_u64(), "edge");
        Node {
            own: init.own,
            edge: Edge::new(init.own, init.values, other),
            ahead: Clouds::new(init.own, init.values, crate::rng::Rng::stream(rng.next_u64(), "ahead"), false),
            clouds: Clouds::new(init.own, init.values, rng, true),
            receives: Params::of(init.values).receiver,
            out: Vec::new(),
            malformed: 0,
        }
    }
}

impl Agent for Node {
    fn handle_data(&mut self, now: Time, packet: &mut Packet, to: Address, port: Option<&PortView>) -> bool {
        let Some(fields) = Extension::of(packet).filter(|_| !packet.transport.has(flag::CONTROL)) else { return false };
        // This node has decremented the TTL if it forwards the packet; a receiving end has not.
        let expected = packet.ttl as i32 + port.is_some() as i32;
        let plain = fields.counter as i32 - expected;
        let from = Address(fields.node);
        let known = from != NO_ADDRESS && from != self.own;
        let mut news = false;
        if plain < 0 || (plain > 0 && !known) {
            self.malformed += 1;
        } else if plain > 0 && (port.is_some() || self.receives == Receives::Compute) {
            news = self.clouds.handle_packet(now, (from, plain as u8), packet, port.unwrap_or(&NO_PORT), &mut self.out);
        } else if plain > 0 && self.receives == Receives::Ask {
            news = self.clouds.see_packet(now, from, packet, &mut self.out);
        }
        if let Some(port) = port
            && self.edge.computes_for(to)
        {
            news |= self.ahead.handle_packet(now, (to, 0), packet, port, &mut self.out);
        }
        Extension { counter: packet.ttl, node: self.own.0 }.put(packet);
        news
    }

    fn handle_control(&mut self, now: Time, control: &Control) {
        let Some(message) = Message::parse(&control.message) else {
            self.malformed += 1;
            return;
        };
        match message.kind {
            Kind::Request | Kind::Stop | Kind::Echo => {
                self.edge.handle(now, control.peer, &message, &mut self.out);
            }
            _ => self.clouds.handle(now, control.peer, &message, &mut self.out),
        }
    }

    fn poll_control(&mut self, _now: Time) -> Option<Control> {
        (!self.out.is_empty()).then(|| self.out.remove(0))
    }

    fn consult(&mut self, now: Time, oracle: &mut dyn PathOracle) {
        self.edge.consult(now, oracle);
        self.clouds.consult(now, oracle);
    }

    fn handle_timeout(&mut self, now: Time) {
        self.edge.handle_timeout(now, &mut self.out);
        while let Some((to, measured)) = self.edge.poll_own() {
            self.ahead.learn(now, to, measured);
        }
        self.clouds.handle_timeout(now, &mut self.out);
        self.ahead.handle_timeout(now, &mut self.out);
    }

    fn poll_timeout(&self) -> Time {
        self.edge.poll_timeout().min(self.clouds.poll_timeout()).min(self.ahead.poll_timeout())
    }

    fn probe(&self, put: Probe<'_>) {
        put("virtual_routers", self.clouds.table.len() as f64);
        put("virtual_routers_ahead", self.ahead.table.len() as f64);
        put("clouds_met", self.clouds.detections as f64);
        put("requests", self.clouds.requests as f64);
        put("untold", self.clouds.unlisted as f64);
        put("broken", self.clouds.table.values().filter(|e| e.broken).count() as f64);
        put("malformed", self.malformed as f64);
        put("sessions", self.edge.sessions() as f64);
        put("refused", self.edge.refused as f64);
        put("probe_bytes", self.edge.probe_bytes as f64);
    }

    fn probe_peers(&self, put: &mut dyn FnMut(Address, &'static str, f64)) {
        self.clouds.probe(put);
        self.ahead.probe(put);
        self.edge.probe(put);
    }
}

#[cfg(test)]
mod tests;

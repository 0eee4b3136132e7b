//! What speaks for a node with XCP-i: finds clouds by their TTL, and is the upstream edge of some and the downstream edge of
//! others.

use alloc::vec::Vec;

use super::clouds::Clouds;
use super::edge::Edge;
use super::message::{Kind, Message};
use super::{NOBODY, ROUTER};
use crate::protocol::{Address, Agent, AgentInit, Control, PathOracle, PortView, Probe};
use crate::units::Time;
use crate::wire::{Packet, XcpI, flag};

pub(super) struct Node {
    own: Address,
    edge: Edge,
    clouds: Clouds,
    /// A receiving end has virtual routers.
    receives: bool,
    /// Messages to send, the first one last.
    out: Vec<Control>,
    malformed: u64,
}

/// What a receiving end sees in place of an output port: no queue.
const NO_PORT: PortView = PortView { capacity: 0.0, backlog_bytes: 0, backlog_packets: 0, busy: false };

impl Node {
    pub(super) fn new(init: &AgentInit<'_>) -> Node {
        let mut rng = init.rng.clone();
        let other = crate::rng::Rng::stream(rng.next_u64(), "edge");
        Node {
            own: init.own,
            edge: Edge::new(init.own, init.values, ROUTER, other),
            clouds: Clouds::new(init.values, rng),
            receives: init.values.get(ROUTER, "receiver") == 0.0,
            out: Vec::new(),
            malformed: 0,
        }
    }
}

impl Agent for Node {
    fn handle_data(&mut self, now: Time, packet: &mut Packet, port: Option<&PortView>) -> bool {
        let Some(fields) = XcpI::of(packet).filter(|_| !packet.transport.has(flag::CONTROL)) else { return false };
        // This node has counted the TTL down if it sends the packet on; a receiving end does not.
        let expected = packet.ttl as i32 + port.is_some() as i32;
        let plain = fields.ttl as i32 - expected;
        let from = Address(fields.last_router);
        let known = from != NOBODY && from != self.own;
        let mut news = false;
        if plain < 0 || (plain > 0 && !known) {
            self.malformed += 1;
        } else if plain > 0 && (port.is_some() || self.receives) {
            news = self.clouds.handle_packet(now, from, packet, port.unwrap_or(&NO_PORT), &mut self.out);
        }
        XcpI { ttl: packet.ttl, last_router: self.own.0 }.put(packet);
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
    }

    fn handle_timeout(&mut self, now: Time) {
        self.edge.handle_timeout(now, &mut self.out);
        self.clouds.handle_timeout(now, &mut self.out);
    }

    fn poll_timeout(&self) -> Time {
        self.edge.poll_timeout().min(self.clouds.poll_timeout())
    }

    fn probe(&self, put: Probe<'_>) {
        put("virtual_routers", self.clouds.table.len() as f64);
        put("clouds_met", self.clouds.detections as f64);
        put("requests", self.clouds.requests as f64);
        put("untold", self.clouds.untold as f64);
        put("broken", self.clouds.table.values().filter(|e| e.broken).count() as f64);
        put("malformed", self.malformed as f64);
        put("sessions", self.edge.sessions() as f64);
        put("refused", self.edge.refused as f64);
        put("probe_bytes", self.edge.probe_bytes as f64);
        if let Some(bandwidth) = self.clouds.table.values().find_map(|e| e.bandwidth) {
            put("bandwidth_bytes_per_s", bandwidth);
        }
    }
}

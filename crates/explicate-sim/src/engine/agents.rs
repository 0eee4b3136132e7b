//! Agents of nodes: their timers, and the messages that they send each other through the same queues as data.

use explicate_core::protocol::{Address, Agent, CONTROL_LEN, Control};
use explicate_core::units::Time;
use explicate_core::wire::{Packet, flag};

use super::{AGENT, Engine, RouteFinder};

impl Engine {
    /// Puts an agent at a node; `find_route` answers from then on for all agents.
    pub fn add_agent(&mut self, node: Address, agent: Box<dyn Agent>, find_route: RouteFinder) {
        self.agents.insert(node.0, (agent, Time::NEVER));
        self.find_route = Some(find_route);
        self.arm_agent(node.0);
    }

    pub(super) fn agent_timer(&mut self, node: u32) {
        let Some((agent, armed)) = self.agents.get_mut(&node) else { return };
        if *armed != self.now {
            return;
        }
        *armed = Time::NEVER;
        agent.handle_timeout(self.now);
        self.drain_agent(node);
    }

    fn arm_agent(&mut self, node: u32) {
        let Some((agent, armed)) = self.agents.get_mut(&node) else { return };
        let due = agent.poll_timeout();
        if due < *armed {
            *armed = due.max(self.now);
            self.arm(AGENT | node, due);
        }
    }

    pub(super) fn deliver_control(&mut self, packet: &Packet) {
        let header = &packet.transport;
        let node = header.flow();
        let mut message = [0; CONTROL_LEN];
        message[..12].copy_from_slice(&header.0[12..]);
        message[12..].copy_from_slice(&packet.congestion.0[4..]);
        let from = header.segment();
        if let Some((agent, _)) = self.agents.get_mut(&node) {
            agent.handle_control(self.now, &Control { peer: Address(from), ip_len: packet.ip_len, message });
        }
        self.drain_agent(node);
    }

    fn drain_agent(&mut self, node: u32) {
        while let Some(control) = self.agents.get_mut(&node).and_then(|(a, _)| a.poll_control(self.now)) {
            let Some(place) = self.control_route(node, control.peer.0) else { continue };
            let slot = self.arena.take();
            let packet = self.arena.get_mut(slot);
            *packet = Packet { ip_len: control.ip_len, ..Packet::EMPTY };
            // The congestion header's first four bytes stay zero: routers see none.
            packet.transport.set_flags(flag::CONTROL);
            packet.transport.set_flow(control.peer.0);
            packet.transport.set_segment(node);
            packet.transport.0[12..].copy_from_slice(&control.message[..12]);
            packet.congestion.0[4..].copy_from_slice(&control.message[12..]);
            self.forward(slot, place);
        }
        self.arm_agent(node);
    }

    fn control_route(&mut self, from: u32, to: u32) -> Option<u32> {
        if let Some(&place) = self.control_routes.get(&(from, to)) {
            return Some(place);
        }
        let links = self.find_route.as_mut()?(from, to)?;
        let place = self.add_route(&links);
        self.control_routes.insert((from, to), place);
        Some(place)
    }
}

//! Agents of nodes: their timers, and the messages that they exchange through the same queues as data.

use explicate_core::agent::{Address, Agent, CONTROL_LEN, Control, PathOracle};
use explicate_core::api::{PortView, Probe};
use explicate_core::port::Arriving;
use explicate_core::units::Time;
use explicate_core::wire::{Packet, flag};

use super::{Armed, Engine, Mark, NIL, RouteFinder};
use crate::event::Timer;

impl Engine {
    /// Puts an agent at a node.
    pub fn add_agent(&mut self, node: Address, agent: Box<dyn Agent>) {
        self.agents.insert(node.0, Armed::new(agent));
        self.arm_agent(node.0);
    }
    /// Sets how routes of agents' messages are found.
    pub fn set_routes(&mut self, find_route: Option<RouteFinder>) {
        self.find_route = find_route;
    }

    pub(super) fn agent_timer(&mut self, node: u32) {
        if self.agents.get(&node).is_none_or(|agent| agent.due != self.now) {
            return;
        }
        // The oracle reads all ports, so the agent is removed from the map during the call.
        if let Some(Armed { mut machine, .. }) = self.agents.remove(&node) {
            machine.consult(self.now, self);
            machine.handle_timeout(self.now);
            self.agents.insert(node, Armed::new(machine));
        }
        self.drain_agent(node);
    }

    /// Lets the agent of `node` inspect packets that are about to join the port of an outgoing link.
    pub fn see_before(&mut self, link: u32, node: Address) {
        self.links[link as usize].before = node.0;
    }
    /// Lets the agent of `node` inspect packets that a link delivers there.
    pub fn see_after(&mut self, link: u32, node: Address) {
        self.links[link as usize].after = node.0;
    }
    /// Sets the destination node of each flow, for agents that inspect its packets.
    pub fn set_destinations(&mut self, nodes: Vec<u32>) {
        self.destinations = nodes;
    }
    /// Nodes with agents.
    pub fn agents(&self) -> impl Iterator<Item = Address> {
        self.agents.keys().map(|&node| Address(node))
    }
    /// Reports what a node's agent knows about other nodes.
    pub fn probe_peers(&self, node: Address, put: &mut dyn FnMut(Address, &'static str, f64)) {
        if let Some(agent) = self.agents.get(&node.0) {
            agent.machine.probe_peers(put);
        }
    }
    /// Reports the variables of a node's agent.
    pub fn probe_agent(&self, node: Address, put: Probe<'_>) {
        if let Some(agent) = self.agents.get(&node.0) {
            agent.machine.probe(put);
        }
    }

    /// A packet has reached a node whose agent inspects it, and is then forwarded. Returns whether the node is its destination.
    #[cold]
    #[inline(never)]
    pub(super) fn show(&mut self, slot: u32, place: u32) -> bool {
        let hop = self.routes[place as usize];
        let last = hop.has(Mark::LAST);
        let packet = self.arena.get_mut(slot);
        packet.ttl = packet.ttl.saturating_sub(!last as u8);
        let (node, view): (u32, Option<PortView>) = if last {
            (self.links[hop.index()].after, None)
        } else {
            let next = self.routes[place as usize + 1].index();
            self.catch_up(next);
            (self.links[next].before, Some(self.links[next].port.view()))
        };
        let packet = self.arena.get_mut(slot);
        let to = self.destinations.get(packet.transport.flow() as usize).copied().unwrap_or(NIL);
        let agent = self.agents.get_mut(&node);
        if agent.is_some_and(|agent| agent.machine.handle_data(self.now, packet, Address(to), view.as_ref())) {
            self.drain_agent(node);
        }
        last
    }

    fn arm_agent(&mut self, node: u32) {
        let Some(agent) = self.agents.get_mut(&node) else { return };
        let due = agent.machine.poll_timeout();
        if due < agent.due {
            agent.due = due.max(self.now);
            self.arm(Timer::Agent(node), due);
        }
    }

    pub(super) fn deliver_control(&mut self, packet: &Packet) {
        let header = &packet.transport;
        let node = header.flow();
        let mut message = [0; CONTROL_LEN];
        message[..12].copy_from_slice(&header.0[12..]);
        message[12..].copy_from_slice(&packet.congestion.0[4..]);
        let from = header.segment();
        if let Some(agent) = self.agents.get_mut(&node) {
            agent.machine.handle_control(self.now, &Control { peer: Address(from), ip_len: packet.ip_len, message });
        }
        self.drain_agent(node);
    }

    fn drain_agent(&mut self, node: u32) {
        while let Some(control) = self.agents.get_mut(&node).and_then(|agent| agent.machine.poll_control(self.now)) {
            let Some(place) = self.control_route(node, control.peer.0) else { continue };
            let slot = self.arena.take();
            let packet = self.arena.get_mut(slot);
            *packet = Packet { ip_len: control.ip_len, ..Packet::EMPTY };
            // The congestion header's first four bytes stay zero, so routers find none.
            packet.transport.set_flags(flag::CONTROL);
            packet.transport.set_flow(control.peer.0);
            packet.transport.set_segment(node);
            packet.transport.0[12..].copy_from_slice(&control.message[..12]);
            packet.congestion.0[4..].copy_from_slice(&control.message[12..]);
            // With agents no acknowledgement is processed ahead of time.
            self.forward_slowly(self.now, Arriving { handle: slot, bytes: control.ip_len as u32 }, place);
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

impl PathOracle for Engine {
    fn links(&mut self, from: Address, to: Address, since: Time, report: &mut dyn FnMut(u32, f64, f64)) {
        let Some(mut place) = self.control_route(from.0, to.0) else { return };
        loop {
            let hop = self.routes[place as usize];
            let link = hop.index();
            self.catch_up(link);
            let port = &self.links[link].port;
            report(link as u32, port.offered(since, self.now), port.arrived_bytes());
            if hop.has(Mark::LAST) {
                return;
            }
            place += 1;
        }
    }
}

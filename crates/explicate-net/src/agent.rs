//! Hosts an agent of the core at a node: its messages travel as datagrams between nodes.

use std::net::Ipv4Addr;

use explicate_core::agent::{Address, Agent, AgentInit, CONTROL_LEN, Control};
use explicate_core::api::{AnyProtocol, PortView};
use explicate_core::estimate::{Choice, Which};
use explicate_core::params::Values;
use explicate_core::rng::Rng;
use explicate_core::units::Time;
use explicate_core::wire::{IP_UDP_LEN, Packet, TRANSPORT_LEN, flag};

/// The estimator that replaces the simulator's oracle.
pub const INSTEAD: Which = Which::DelayTrend;

/// An agent and its address.
pub struct AgentHost {
    /// The address.
    pub own: Ipv4Addr,
    agent: Box<dyn Agent>,
}

/// Whether these values select the oracle, an estimator that only a simulator has.
pub fn wants_oracle(protocol: &AnyProtocol, values: &Values) -> bool {
    protocol.router_params().iter().any(|p| p.name == Choice::PARAMS[0].name)
        && Choice::of(values).estimator == Which::Oracle
}

/// A message to send: its destination, its packet, and the number of bytes after its headers.
pub type ControlMessage = (Ipv4Addr, Packet, usize);

impl AgentHost {
    /// The agent of a protocol at a node, if it has one. `values` are the controllers'. An oracle is replaced by an
    /// estimator that measures.
    pub fn new(protocol: &AnyProtocol, values: &Values, own: Ipv4Addr, rng: Rng) -> Option<AgentHost> {
        let mut values = values.clone();
        if wants_oracle(protocol, &values) {
            values.set(&Choice::PARAMS[0], INSTEAD as u8 as f64);
        }
        let agent = protocol.agent(&AgentInit { values: &values, own: Address(own.into()), rng })?;
        Some(AgentHost { own, agent })
    }
    /// Handles a packet of a flow to `to`, before it enters `port`.
    pub fn handle_data(&mut self, now: Time, packet: &mut Packet, to: Ipv4Addr, port: Option<&PortView>) {
        self.agent.handle_data(now, packet, Address(to.into()), port);
    }
    /// Handles a message from a node.
    pub fn handle_control(&mut self, now: Time, from: Ipv4Addr, packet: &Packet) {
        let mut message = [0; CONTROL_LEN];
        message[..12].copy_from_slice(&packet.transport.0[12..]);
        message[12..].copy_from_slice(&packet.congestion.0[4..]);
        self.agent.handle_control(now, &Control { peer: Address(from.into()), ip_len: packet.ip_len, message });
    }
    /// Runs the agent's timer if it has expired.
    pub fn handle_timeout(&mut self, now: Time) {
        if self.agent.poll_timeout() <= now {
            self.agent.handle_timeout(now);
        }
    }
    /// When the agent's timer expires.
    pub fn due(&self) -> Time {
        self.agent.poll_timeout()
    }
    /// The next message to send.
    pub fn poll(&mut self, now: Time) -> Option<ControlMessage> {
        let control = self.agent.poll_control(now)?;
        let mut packet = Packet { ip_len: control.ip_len, ..Packet::EMPTY };
        packet.transport.set_flags(flag::CONTROL);
        packet.transport.set_flow(control.peer.0);
        packet.transport.set_segment(self.own.into());
        packet.transport.0[12..].copy_from_slice(&control.message[..12]);
        packet.congestion.0[4..].copy_from_slice(&control.message[12..]);
        let headers = IP_UDP_LEN + TRANSPORT_LEN + CONTROL_LEN - 12;
        Some((control.peer.0.into(), packet, (control.ip_len as usize).saturating_sub(headers)))
    }
}

//! Agents: protocol parts that belong to a node rather than to a port or a flow.

use alloc::boxed::Box;

use crate::params::{Param, Values};
use crate::rng::Rng;
use crate::units::Time;
use crate::view::{PortView, Probe};
use crate::wire::Packet;

/// Address of a node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Address(pub u32);

/// Bytes of a control message that a packet can carry in place of its headers' fields.
pub const CONTROL_LEN: usize = 28;

/// A message between agents; travels as a packet through the same queues as data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Control {
    /// The other node: the destination of a message that is sent, the origin of one that is received.
    pub peer: Address,
    /// Length of the IP datagram, bytes.
    pub ip_len: u16,
    /// The message.
    pub message: [u8; CONTROL_LEN],
}

/// Arguments for making an agent.
pub struct AgentInit<'a> {
    /// Values of [`AgentKind::params`].
    pub values: &'a Values,
    /// The node.
    pub own: Address,
    /// The agent's own stream.
    pub rng: Rng,
}

/// Access to the true state of the network, which a simulator can give to ideal estimators.
pub trait PathOracle {
    /// Reports every link on the path from one node to another, in order: its number, the bytes that its line could
    /// carry since `since`, and the bytes that have arrived at it so far. Reports nothing if there is no path.
    fn links(&mut self, from: Address, to: Address, since: Time, report: &mut dyn FnMut(u32, f64, f64));
}

/// A kind of agent, declared by a protocol.
pub trait AgentKind: Sync {
    /// Those of [`Protocol::ROUTER_PARAMS`] that it reads. A router has one agent, so they must agree on all its ports.
    ///
    /// [`Protocol::ROUTER_PARAMS`]: crate::api::Protocol::ROUTER_PARAMS
    fn params(&self) -> &'static [Param];
    /// An agent for one node.
    fn build(&self, init: &AgentInit<'_>) -> Box<dyn Agent>;
}

/// The agent of a node: receives and sends messages that are addressed to nodes, not ports.
pub trait Agent: Send {
    /// A message for this node arrived.
    fn handle_control(&mut self, now: Time, control: &Control);
    /// The next message to send.
    fn poll_control(&mut self, now: Time) -> Option<Control>;
    /// The timer of [`Agent::poll_timeout`] expired.
    fn handle_timeout(&mut self, now: Time);
    /// When [`Agent::handle_timeout`] is to be called.
    fn poll_timeout(&self) -> Time;
    /// A packet of a flow to the node `to` has reached this node, before it enters the output port described by
    /// `port`, or is delivered here. Returns whether there is a message to send or a new timer.
    fn handle_data(&mut self, now: Time, packet: &mut Packet, to: Address, port: Option<&PortView>) -> bool {
        let _ = (now, packet, to, port);
        false
    }
    /// The timer is about to expire: the agent may query the oracle.
    fn consult(&mut self, now: Time, oracle: &mut dyn PathOracle) {
        let _ = (now, oracle);
    }
    /// Reports its variables.
    fn probe(&self, put: Probe<'_>) {
        let _ = put;
    }
    /// Reports its variables about each other node.
    fn probe_peers(&self, put: &mut dyn FnMut(Address, &'static str, f64)) {
        let _ = put;
    }
}

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
    /// The other node: destination when polled, origin when handled.
    pub peer: Address,
    /// Length of the IP datagram, bytes.
    pub ip_len: u16,
    /// The message.
    pub message: [u8; CONTROL_LEN],
}

/// What an agent is made from.
pub struct AgentInit<'a> {
    /// Values of [`AgentKind::params`].
    pub values: &'a Values,
    /// The node.
    pub own: Address,
    /// The agent's own stream.
    pub rng: Rng,
}

/// What a driver that knows the truth about the network tells of it, for estimators that are to be perfect.
pub trait PathOracle {
    /// Tells of every link on the way from one node to another, in order: its number, the bytes that its line could carry since
    /// `since`, and the bytes that have come to it so far. Tells nothing if there is no way.
    fn links(&mut self, from: Address, to: Address, since: Time, tell: &mut dyn FnMut(u32, f64, f64));
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
    /// The timer asked for by [`Agent::poll_timeout`] expired.
    fn handle_timeout(&mut self, now: Time);
    /// When this agent wants [`Agent::handle_timeout`].
    fn poll_timeout(&self) -> Time;
    /// A packet of a flow to the node `to` has reached this node, before it joins the output port that `port` is a view of, or
    /// is delivered here. Returns whether there is something to send or a new timer.
    fn handle_data(&mut self, now: Time, packet: &mut Packet, to: Address, port: Option<&PortView>) -> bool {
        let _ = (now, packet, to, port);
        false
    }
    /// The timer is about to expire: what an agent may ask of one who knows the truth.
    fn consult(&mut self, now: Time, oracle: &mut dyn PathOracle) {
        let _ = (now, oracle);
    }
    /// Tells its variables.
    fn probe(&self, put: Probe<'_>) {
        let _ = put;
    }
    /// Tells what it keeps about each other node.
    fn probe_peers(&self, put: &mut dyn FnMut(Address, &'static str, f64)) {
        let _ = put;
    }
}

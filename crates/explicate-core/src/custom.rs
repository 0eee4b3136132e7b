//! A protocol whose properties are values instead of constants: for bindings to other languages.

use alloc::boxed::Box;

use crate::agent::{Agent, AgentInit};
use crate::api::object::ProtocolObject;
use crate::api::{AnyProtocol, AnyReceiver, AnyRouter, AnySender, RouterInit, SenderInit};
use crate::params::{Info, Param};
use crate::wire::Packet;

/// Makes a sender for one flow.
pub type MakeSender = Box<dyn Fn(&SenderInit<'_>) -> Box<AnySender> + Send + Sync>;
/// Makes a receiver for one flow.
pub type MakeReceiver = Box<dyn Fn() -> Box<AnyReceiver> + Send + Sync>;
/// Makes a controller for one output port.
pub type MakeRouter = Box<dyn Fn(&RouterInit<'_>) -> Box<AnyRouter> + Send + Sync>;

/// The declarations of [`crate::api::Protocol`], as fields. It has no agent.
pub struct Custom {
    /// [`crate::api::Protocol::INFO`].
    pub info: &'static Info,
    /// [`crate::api::Protocol::ROUTER_PARAMS`].
    pub router_params: &'static [Param],
    /// [`crate::api::Protocol::EXPLICIT`].
    pub explicit: bool,
    /// [`crate::api::Protocol::HEADER_LEN`], bytes.
    pub header_len: u16,
    /// [`crate::api::Protocol::BEARS_PLAIN_ROUTERS`].
    pub bears_plain_routers: bool,
    /// [`crate::api::Protocol::CONTROLLER`].
    pub controller: Option<&'static AnyProtocol>,
    /// [`crate::api::Protocol::sender`].
    pub sender: MakeSender,
    /// [`crate::api::Protocol::receiver`].
    pub receiver: Option<MakeReceiver>,
    /// [`crate::api::Protocol::router`].
    pub router: Option<MakeRouter>,
}

impl ProtocolObject for Custom {
    fn info(&self) -> &'static Info {
        self.info
    }
    fn router_params(&self) -> &'static [Param] {
        self.router_params
    }
    fn agent_params(&self) -> &'static [Param] {
        &[]
    }
    fn explicit(&self) -> bool {
        self.explicit
    }
    fn congestion_header_len(&self) -> u16 {
        self.header_len
    }
    fn bears_plain_routers(&self) -> bool {
        self.bears_plain_routers
    }
    fn controller(&self) -> Option<&'static AnyProtocol> {
        self.controller
    }
    fn has_router(&self) -> bool {
        self.router.is_some()
    }
    fn sender(&self, init: &SenderInit<'_>) -> Box<AnySender> {
        (self.sender)(init)
    }
    fn receiver(&self) -> Option<Box<AnyReceiver>> {
        self.receiver.as_ref().map(|make| make())
    }
    fn router(&self, init: &RouterInit<'_>) -> Option<Box<AnyRouter>> {
        self.router.as_ref().map(|make| make(init))
    }
    fn matches(&self, packet: &Packet) -> bool {
        packet.congestion.is_present()
    }
    fn agent(&self, _init: &AgentInit<'_>) -> Option<Box<dyn Agent>> {
        None
    }
}

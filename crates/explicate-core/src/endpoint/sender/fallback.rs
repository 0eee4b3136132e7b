//! The controller by which a flow goes on if the other end refuses explicit feedback, and which its guard has beside
//! the explicit one: TCP as the flow's host has it.

use alloc::boxed::Box;

use super::{FlowInit, PARAMS, Params};
use crate::api::{AnySender, SenderInit};
use crate::params::Values;
use crate::registry::Resolved;
use crate::units::Rate;

/// What the controller is made from; the flow keeps it until the other end has answered.
pub(super) struct Fallback {
    resolved: Resolved,
    values: Values,
    interface: Rate,
}

impl Fallback {
    /// The fallback of the flow that `init` describes.
    pub(super) fn new(init: &FlowInit<'_>) -> Fallback {
        Fallback { resolved: init.fallback, values: values(&init.fallback, init.values), interface: init.interface }
    }
    /// A controller for packets of this IP length, bytes.
    pub(super) fn sender(&self, packet: f64) -> Box<AnySender> {
        self.resolved.protocol.sender(&SenderInit {
            values: &self.values,
            packet,
            initial_window: Params::of(&self.values).initial_window,
            interface: self.interface,
        })
    }
}

/// The parameters that every flow has are the flow's own; the others, and those that it does not have, are what the
/// fallback's preset and stack set.
fn values(fallback: &Resolved, flow: &Values) -> Values {
    let mut values = Values::default();
    for param in PARAMS {
        if let Some(value) = flow.number(param.name) {
            values.set(param, value);
        }
    }
    for (name, value) in fallback.sets() {
        let declared = fallback.protocol.params().iter().chain(PARAMS).find(|param| param.name == name);
        if let Some(param) = declared.filter(|_| values.number(name).is_none()) {
            values.set(param, value);
        }
    }
    values
}

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
        self.with(&self.values, packet)
    }
    /// The same for a guard, by the law of the RFC. Linux's is for a receiver that delays acknowledgements; that of an
    /// explicit flow does not, and CUBIC kept 0.79 of its share beside such a guard, 0.86 beside the RFC's (40 Mbit/s,
    /// 40 ms, a buffer of 20 packets).
    pub(super) fn guarding(&self, packet: f64) -> Box<AnySender> {
        let mut values = self.values.clone();
        if let Some(param) = self.resolved.protocol.params().iter().find(|param| param.name == "variant") {
            values.set(param, param.default);
        }
        self.with(&values, packet)
    }
    fn with(&self, values: &Values, packet: f64) -> Box<AnySender> {
        let initial_window = Params::of(values).initial_window;
        self.resolved.protocol.sender(&SenderInit { values, packet, initial_window, interface: self.interface })
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

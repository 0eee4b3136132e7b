//! The controller by which a flow goes on if the other end refuses explicit feedback, and which its guard has beside
//! the explicit one: TCP as the flow's host has it.

use alloc::boxed::Box;

use super::{FlowInit, PARAMS, Params};
use crate::api::{AnyProtocol, AnySender, SenderInit};
use crate::params::Values;
use crate::stacks::Stack;
use crate::units::Rate;

/// What the controller is made from; the flow keeps it until the other end has answered. Presets of fallbacks set nothing.
pub(super) struct Fallback {
    protocol: &'static AnyProtocol,
    stack: Option<&'static Stack>,
    interface: Rate,
}

/// The parameters of a flow that controllers read; of all others a fallback has what its stack sets.
#[derive(Clone, Copy)]
pub(super) struct Own {
    /// `initial_window`, if it is given; NaN is none, which takes half the memory of an `Option`.
    pub(super) initial_window: f32,
    pub(super) paced: bool,
}

impl Fallback {
    /// The fallback of the flow that `init` describes.
    pub(super) fn new(init: &FlowInit<'_>) -> Fallback {
        Fallback { protocol: init.fallback.protocol, stack: init.fallback.stack, interface: init.interface }
    }
    /// A controller for packets of this IP length, bytes.
    pub(super) fn sender(&self, own: Own, packet: f64) -> Box<AnySender> {
        self.with(&self.values(own), packet)
    }
    /// The same for a guard, by the law of the RFC. Linux's is for a receiver that delays acknowledgements; that of an
    /// explicit flow does not, and TCP kept 0.79 of its share beside such a guard, 0.86 beside the RFC's (40 Mbit/s,
    /// 40 ms, a buffer of 20 packets).
    pub(super) fn guarding(&self, own: Own, packet: f64) -> Box<AnySender> {
        let mut values = self.values(own);
        if let Some(param) = self.protocol.params().iter().find(|param| param.name == "variant") {
            values.set(param, param.default);
        }
        self.with(&values, packet)
    }
    fn with(&self, values: &Values, packet: f64) -> Box<AnySender> {
        let initial_window = Params::of(values).initial_window;
        self.protocol.sender(&SenderInit { values, packet, initial_window, interface: self.interface })
    }
    fn values(&self, own: Own) -> Values {
        let mut values = Values::default();
        let window =
            Some(own.initial_window).filter(|window| !window.is_nan()).map(|window| ("initial_window", window as f64));
        let paced = own.paced.then_some(("paced", 1.0));
        let sets = self.stack.into_iter().flat_map(|stack| stack.sets(self.protocol));
        for (name, value) in window.into_iter().chain(paced).chain(sets) {
            let declared = self.protocol.params().iter().chain(PARAMS).find(|param| param.name == name);
            if let Some(param) = declared.filter(|_| values.number(name).is_none()) {
                values.set(param, value);
            }
        }
        values
    }
}

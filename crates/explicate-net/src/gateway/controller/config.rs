//! By which laws windows move, and which protocols a connection can follow.

use explicate_core::api::AnyProtocol;
use explicate_core::params::Values;
use explicate_core::presets::{DEFAULT_FALLBACK, DEFAULT_TCP};
use explicate_core::registry;
use explicate_core::stacks::{self, Stack};
use explicate_core::units::{Rate, Time};

use super::sender;

/// The stack whose TCP a connection has if none is named.
const STACK: &str = "linux";
/// Parameters that need what QUIC does not report: the spacing of acknowledgements, which come for many packets at once, and the
/// packets that a sender had outstanding; quinn itself reports when the application limited it.
const OF_UDP: &[&str] = &["hystart", "growth", "after_idle"];

/// By which laws windows move.
#[derive(Clone)]
pub struct ControllerConfig {
    /// The protocol of the core.
    pub protocol: &'static AnyProtocol,
    /// Its parameters, as far as the user or a preset sets them.
    pub values: Values,
    /// The stack whose TCP moves the window, limits it, or moves it while no router answers.
    pub stack: Option<&'static Stack>,
    /// Share of the datagrams that the air may lose beyond repair: no sign of a narrower line.
    pub air_loss: f64,
    /// Whether TCP's law limits the window, and moves it while no router answers.
    pub guard: bool,
}

impl ControllerConfig {
    /// This protocol with losses that do not move its window, if it has parameters for that, and with a guard.
    pub fn new(protocol: &'static AnyProtocol, air_loss: f64) -> ControllerConfig {
        let (values, stack) = (unmoved_by_losses(protocol), stacks::stack(STACK));
        ControllerConfig { protocol, values, stack, air_loss, guard: true }
    }
    /// The parameters of a protocol's controller: those given if it is the connection's own, then what the stack sets. QUIC takes the
    /// law of the window from a stack and nothing else: it has its own recovery, timers and acknowledgements.
    pub(super) fn values_of(&self, protocol: &AnyProtocol) -> Values {
        let own = protocol.name() == self.protocol.name();
        let mut values = if own { self.values.clone() } else { Values::default() };
        for (name, value) in self.stack.iter().flat_map(|stack| stack.sets(protocol)) {
            let param = protocol.params().iter().find(|param| param.name == name && !is_of_udp(name));
            if let Some(param) = param.filter(|_| values.number(name).is_none()) {
                values.set(param, value);
            }
        }
        values
    }
    /// Whether a connection can follow this protocol: one of TCP, or an explicit one with neither a pace nor timers nor agents, whose
    /// receiver returns the sum of the feedback, or the highest code and a flag.
    pub fn can_follow(protocol: &AnyProtocol) -> bool {
        if !protocol.explicit() {
            let tcp = [DEFAULT_TCP, DEFAULT_FALLBACK].map(registry::resolve);
            return tcp.iter().flatten().any(|tcp| tcp.protocol.name() == protocol.name());
        }
        let values = unmoved_by_losses(protocol);
        let (sender, headed) = (sender(protocol, &values, 1500.0, Rate::mbps(1)), protocol.congestion_header());
        let timer = if headed { sender.interest().timer } else { sender.next_timer() != Time::NEVER };
        let plain = sender.allowance().pacing.is_none() && !timer && protocol.agent_params().is_empty();
        plain && protocol.receiver().is_some_and(|receiver| receiver.echoes() || !headed && receiver.highest_counts())
    }
}

/// Whether a parameter needs the transport UDP.
pub fn is_of_udp(name: &str) -> bool {
    OF_UDP.contains(&name)
}

/// Values by which losses do not move the window of this protocol, if it has parameters for that.
fn unmoved_by_losses(protocol: &AnyProtocol) -> Values {
    let mut values = Values::default();
    for param in protocol.params().iter().filter(|param| ["on_loss", "on_timeout"].contains(&param.name)) {
        values.set(param, 1.0);
    }
    values
}

//! By which laws windows move, and which protocols a connection can follow.

use explicate_core::api::AnyProtocol;
use explicate_core::params::Values;
use explicate_core::presets::{DEFAULT_FALLBACK, DEFAULT_TCP};
use explicate_core::registry;
use explicate_core::units::{Rate, Time};

use super::sender;

/// By which laws windows move.
#[derive(Clone)]
pub struct ControllerConfig {
    /// The protocol of the core.
    pub protocol: &'static AnyProtocol,
    /// Its parameters.
    pub values: Values,
    /// Share of the datagrams that the air may lose beyond repair: no sign of a narrower line.
    pub air_loss: f64,
    /// Whether TCP's law limits the window, and moves it while no router answers.
    pub guard: bool,
}

impl ControllerConfig {
    /// This protocol with losses that do not move its window, if it has parameters for that, and with a guard.
    pub fn new(protocol: &'static AnyProtocol, air_loss: f64) -> ControllerConfig {
        ControllerConfig { protocol, values: unmoved_by_losses(protocol), air_loss, guard: true }
    }
    /// Whether a connection can follow this protocol: one of TCP, or an explicit one with neither a pace nor timers nor agents, whose
    /// receiver returns the sum of the feedback, or a code and a flag.
    pub fn can_follow(protocol: &AnyProtocol) -> bool {
        if !protocol.explicit() {
            let tcp = [DEFAULT_TCP, DEFAULT_FALLBACK].map(registry::resolve);
            return tcp.iter().flatten().any(|tcp| tcp.protocol.name() == protocol.name());
        }
        let values = unmoved_by_losses(protocol);
        let (sender, headed) = (sender(protocol, &values, 1500.0, Rate::mbps(1)), protocol.congestion_header());
        let timer = if headed { sender.interest().timer } else { sender.next_timer() != Time::NEVER };
        let plain = sender.allowance().pacing.is_none() && !timer && protocol.agent_params().is_empty();
        plain && protocol.receiver().is_some_and(|receiver| receiver.echoes() || !headed)
    }
}

/// Values by which losses do not move the window of this protocol, if it has parameters for that.
fn unmoved_by_losses(protocol: &AnyProtocol) -> Values {
    let mut values = Values::default();
    for param in protocol.params().iter().filter(|param| ["on_loss", "on_timeout"].contains(&param.name)) {
        values.set(param, 1.0);
    }
    values
}

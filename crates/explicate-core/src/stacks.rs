//! Stacks: the TCP of a system, by one name. Data only.
//!
//! A stack sets the recovery and parameters of flows. A value that the scenario gives wins over the flow's preset, and
//! both win over the stack.

use crate::api::AnyProtocol;
use crate::presets::{Preset, STACKS};

/// The transport of a system.
pub struct Stack {
    /// The name in scenarios.
    pub name: &'static str,
    /// One sentence.
    pub summary: &'static str,
    /// RFCs, or the version of a system.
    pub source: &'static str,
    /// The recovery of flows whose protocol key names none; `None`: the preset's.
    pub recovery: Option<&'static str>,
    /// Parameters of all flows: those of retransmission timer and recovery.
    pub params: &'static [(&'static str, f64)],
    /// Parameters of flows whose protocol works end to end: start and acknowledgements. Explicit protocols have their own.
    pub end_to_end: &'static [(&'static str, f64)],
    /// Parameters of flows with one protocol, by its name.
    pub of_protocol: &'static [(&'static str, &'static [(&'static str, f64)])],
}

/// Finds a stack by name.
pub fn stack(name: &str) -> Option<&'static Stack> {
    STACKS.iter().find(|s| s.name == name)
}

impl Stack {
    /// What it sets for flows of this protocol, in order.
    pub fn sets(&self, protocol: &AnyProtocol) -> impl Iterator<Item = (&'static str, f64)> {
        let end_to_end = if protocol.explicit() { &[][..] } else { self.end_to_end };
        let name = protocol.name();
        let own = self.of_protocol.iter().filter(move |(of, _)| *of == name).flat_map(|(_, sets)| *sets);
        self.params.iter().chain(end_to_end).chain(own).copied()
    }
    /// The recovery that it gives to flows of this preset; `None` if the preset's name stands for a recovery, or the stack
    /// has no recovery of its own.
    pub fn recovery_of(&self, preset: &Preset) -> Option<&'static str> {
        self.recovery.filter(|_| !preset.names_recovery)
    }
}

//! Stacks: the TCP of a system, by one name. Data only.
//!
//! A stack sets the recovery and parameters of flows. A value that the scenario gives wins over the flow's preset, and
//! both win over the stack.

use crate::presets::Preset;

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
}

/// All stacks.
pub const STACKS: &[Stack] = &[
    Stack {
        name: "linux",
        summary: "TCP as Linux 6.18 runs it",
        source: "Linux 6.18, net/ipv4",
        recovery: None,
        params: &[],
        end_to_end: &[("initial_window", 10.0)],
    },
    Stack {
        name: "rfc",
        summary: "TCP as the RFCs of 2026 describe it",
        source: "RFC 5681, RFC 6298, RFC 6928, RFC 8985, RFC 9406, RFC 9438",
        recovery: None,
        params: &[],
        end_to_end: &[("initial_window", 10.0)],
    },
    Stack {
        name: "ns2",
        summary: "TCP as ns-2 has it, with which the papers compare",
        source: "ns-2.35, tcp",
        recovery: None,
        params: &[],
        end_to_end: &[],
    },
];

/// The names of [`STACKS`], in their order.
pub const NAMES: &[&str] = &["linux", "rfc", "ns2"];

/// Finds a stack by name.
pub fn stack(name: &str) -> Option<&'static Stack> {
    STACKS.iter().find(|s| s.name == name)
}

impl Stack {
    /// What it sets for flows of this protocol, in order.
    pub fn sets(&self, explicit: bool) -> impl Iterator<Item = (&'static str, f64)> {
        let end_to_end = if explicit { &[][..] } else { self.end_to_end };
        self.params.iter().chain(end_to_end).copied()
    }
    /// The recovery that it gives to flows of this preset; `None` if the preset's name stands for a recovery, or the stack
    /// has no recovery of its own.
    pub fn recovery_of(&self, preset: &Preset) -> Option<&'static str> {
        self.recovery.filter(|_| !preset.names_recovery)
    }
}

//! Which protocols are explicit.

use explicate_core::presets::PRESETS;
use explicate_core::registry::{PROTOCOLS, resolve};

/// Every registered name of an explicit protocol. `greedy`, which has no congestion control and is no explicit protocol, is not among them.
pub(crate) fn explicit() -> Vec<&'static str> {
    let names = PRESETS.iter().map(|p| p.name).chain(PROTOCOLS.iter().map(|p| p.name()));
    let mut names: Vec<&str> = names.filter(|name| resolve(name).is_ok_and(|r| r.protocol.explicit())).collect();
    names.sort_unstable();
    names.dedup();
    names
}

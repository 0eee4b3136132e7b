//! Measurements that other load disturbs.

use explicate_net::awake::Awake;

/// Measures in real time, once: `make measure` repeats measurements, and looks for other load.
pub(crate) fn measured(once: impl Fn()) {
    let _awake = Awake::keep();
    once();
}

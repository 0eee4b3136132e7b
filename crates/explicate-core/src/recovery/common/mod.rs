//! Code that several recoveries share, and the recovery of a flow as its endpoint uses it.

pub(crate) mod handle;
pub mod loss_free;
pub mod rto;
pub(crate) mod rtt;
pub mod scoreboard;
#[cfg(test)]
pub(super) mod testing;
pub mod timers;

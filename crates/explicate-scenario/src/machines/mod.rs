//! Builds the core's state machines from a scenario, for simulator and lab alike, so that a file means the same in both.

pub mod agents;
pub mod flows;
pub mod ports;
pub mod rows;
pub mod session;
pub mod source;
pub mod ways;

//! From a scenario to the core's machines, for whoever drives them: so a file means the same in every world.

pub mod agents;
pub mod flows;
pub mod ports;
pub mod rows;
pub mod session;
pub mod source;
pub mod ways;

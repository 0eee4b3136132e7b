//! Explicit congestion control between Linux hosts, with the state machines of `explicate-core` on real sockets, queues and
//! clocks.
//!
//! [`endpoint`] sends and receives, [`forward`] is what routers and emulated links do, [`lab`] runs a scenario in network
//! namespaces, [`gateway`] carries the TCP connections of a site. [`sys`] holds the system calls, and all unsafe code.
//! The feature `simulated` adds a machine and a network in simulated time, for tests.
#![deny(unsafe_code)]
#![expect(clippy::missing_errors_doc, reason = "all functions that talk to the system fail as it does")]

pub mod address;
pub mod agent;
pub mod awake;
pub mod cli;
pub mod clock;
pub mod commands;
pub mod digest;
pub mod endpoint;
pub mod error;
pub mod files;
pub mod forward;
pub mod gateway;
pub mod hex;
pub mod histogram;
pub mod lab;
pub mod metrics;
#[cfg(feature = "simulated")]
pub mod simulated;
pub mod sys;

#[cfg(test)]
#[path = "../tests/figures/mod.rs"]
mod figures;
#[cfg(test)]
#[path = "../tests/patience/mod.rs"]
#[allow(dead_code, reason = "each program of tests uses a part of it")]
mod patience;

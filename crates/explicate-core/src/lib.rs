//! Explicit congestion control, from paper to packets: protocols, loss recoveries, queue disciplines and channels as
//! state machines that read no clock, open no socket and draw no unseeded randomness.
//!
//! Start with [`api`], then read [`protocols::reno`] as an example and [`protocols::xcp`] with its paper.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
// Lets the file of a protocol be the same in this crate and in a crate of its own.
extern crate self as explicate_core;
#[cfg(any(test, feature = "std"))]
extern crate std;

pub mod agent;
pub mod api;
pub mod channel;
pub mod custom;
pub mod datagram;
pub mod endpoint;
pub mod estimate;
pub(crate) mod gaps;
pub mod guard;
pub mod medium;
pub mod params;
pub mod port;
pub mod presets;
pub mod protocols;
pub mod qdisc;
pub mod reassembly;
pub mod recovery;
pub mod registry;
pub mod rng;
pub mod scone;
pub mod stacks;
#[doc(hidden)]
pub mod testing;
pub mod transit;
pub mod units;
pub mod view;
pub mod wire;

//! Whole runs of the simulator: a situation, a run, an expectation. One binary, so that the engine is linked once.

mod abc_targets;
mod agents_and_classes;
#[path = "../common/alike.rs"]
mod alike;
mod bbr3_targets;
mod capacity_error;
mod channels;
mod classes;
#[path = "../common/mod.rs"]
mod common;
mod counted_once;
mod dcf_access;
mod dcf_conservation;
mod dcf_saturation;
mod dcf_xcp;
mod dctcp_targets;
mod decimal;
mod delayed_acks;
mod disciplines;
mod dualpi2_targets;
mod equilibrium;
#[path = "../common/explicit.rs"]
mod explicit;
mod fading_link;
mod guard;
mod host_clock;
mod host_queue;
mod host_refusals;
mod l4s_cohabitation;
mod large;
mod long_paths;
mod measured_capacity;
mod negotiation;
#[path = "../common/outcome.rs"]
mod outcome;
mod own_queue;
mod paper_001_fig2;
mod paper_003;
mod prague_targets;
mod product;
#[path = "../common/random.rs"]
mod random;
mod rcp_targets;
mod scone_targets;
mod shares;
mod symmetry;
mod tcp_hosts;
mod tcp_laws;
mod tcp_targets;
mod ties;
mod udp;
mod vcp_targets;
mod xcp_family;
mod xcp_i;
mod xcp_i_routes;
mod xcp_i_shared;
mod xcp_pools;
mod xcp_targets;
mod xtcp_targets;

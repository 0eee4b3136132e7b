//! Programs, router and link on this machine's kernel, in network namespaces. Needs root, so `make linux` runs it. What these tests
//! claim does not depend on how fast the machine is, so several run at a time; those of `timed` measure in real time.

mod common;
mod dissector;
#[path = "../figures/mod.rs"]
mod figures;
mod files;
mod gateway;
mod gateway_destinations;
mod gateway_direct;
mod gateway_ends;
mod gateway_faults;
mod gateway_life;
mod gateway_ports;
mod gateway_service;
mod hostile;
mod kernel_flows;
mod lab;
#[path = "../patience/mod.rs"]
#[allow(dead_code, reason = "each program of tests uses a part of it")]
mod patience;
mod programs;
mod quic;
mod root;
mod router;
mod timed;

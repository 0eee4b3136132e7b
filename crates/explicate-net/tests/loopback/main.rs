//! End points and programs over the loopback interface. Needs no root.

mod arguments;
mod datagrams;
mod ends;
mod files;
mod hostile_resets;
mod hostile_sockets;
mod keys;
mod limits;
#[path = "../patience/mod.rs"]
#[allow(dead_code, reason = "each program of tests uses a part of it")]
mod patience;
mod quic;
mod units;

//! End points and programs over the loopback interface. Needs no root.

mod arguments;
mod hostile_sockets;
#[path = "../patience/mod.rs"]
#[allow(dead_code, reason = "each program of tests uses a part of it")]
mod patience;
mod quic;
mod units;

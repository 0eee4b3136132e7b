//! Tests that measure in real time: they need an otherwise idle machine.

mod classes;
mod files;
mod gateway;
mod guard;
mod lab;
mod measured;
mod mtu;
#[path = "../../../../explicate-sim/tests/common/explicit.rs"]
mod names;
mod rates;
mod soak;
mod tcp;
mod ways;

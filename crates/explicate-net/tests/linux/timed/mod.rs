//! Tests that measure in real time: they need an otherwise idle machine.

mod classes;
mod files;
mod gateway;
mod guard;
mod lab;
mod measured;
mod rates;
mod shares;
mod soak;
mod tcp;
mod ways;

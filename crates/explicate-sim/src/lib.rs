//! A deterministic packet-level simulator for explicit congestion control.
#![forbid(unsafe_code)]

mod arena;
pub mod engine;
pub mod packet_log;
pub mod source;
mod wheel;

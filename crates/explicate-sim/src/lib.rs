//! A deterministic packet-level simulator for explicit congestion control: same scenario and seed, same bytes in every result.
//!
//! [`simulation`] runs a scenario, [`engine`] moves its packets, [`measure`] makes the result tables.
#![deny(unsafe_code)]

#[cfg(not(target_arch = "wasm32"))]
pub mod adversaries;
mod arena;
#[cfg(not(target_arch = "wasm32"))]
pub mod bench;
pub mod build;
pub mod engine;
pub mod error;
mod event;
#[cfg(not(target_arch = "wasm32"))]
pub mod floor;
mod keyed;
pub mod measure;
pub mod packet_log;
pub mod pcap;
mod prefetch;
mod rotations;
pub mod sample;
pub mod simulation;
mod wheel;

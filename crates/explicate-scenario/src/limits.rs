//! Limits of a scenario. Parsing reports an error with a remedy beyond them, instead of starting an endless run.

use explicate_core::units::Time;

/// Longest scenario file, bytes.
pub const FILE_BYTES: usize = 64 << 20;
/// Longest trace file, bytes.
pub const TRACE_BYTES: u64 = 256 << 20;
/// Longest time, seconds (about three years).
pub const SECONDS: f64 = 1e8;
/// Least rate of a link, bit/s.
pub const LEAST_RATE: u64 = 10;
/// Greatest rate of a link, bit/s.
pub const RATE: u64 = 1_000_000_000_000_000;
/// Most pairs of hosts, or runs.
pub const COUNT: u64 = 1_000_000;
/// Most flows of a group.
pub const GROUP: u64 = 1_000_000_000;
/// Most flows of all groups together, packet by packet.
pub const FLOWS: u64 = 4_000_000;
/// Most flows of all groups together in a fluid model, which computes classes of them.
pub const FLUID_FLOWS: u64 = 4_000_000_000;
/// Most hops of a chain or parking lot.
pub const HOPS: u64 = 1000;
/// Most changes of routes.
pub const REROUTES: usize = 100;
/// Most stations of a medium.
pub const STATIONS: u64 = 1000;
/// Most interferers of a medium.
pub const INTERFERERS: usize = 100;
/// Farthest place, metres.
pub const METRES: f64 = 1e7;
/// Most channels of a link.
pub const CHANNELS: usize = 16;
/// Most steps of a rate over time.
pub const STEPS: usize = 100_000;
/// Longest time that a host takes for a packet.
pub const PROCESSING: Time = Time::secs(1);
/// Greatest seed: TOML's integers have 63 bits.
pub const SEED: u64 = i64::MAX as u64;
/// Most packet-hops of one run, estimated: some days of computing.
pub const PACKET_HOPS: f64 = 1e13;
/// Most rows of the table of samples, estimated.
pub const SAMPLES: f64 = 1e9;
/// Longest name of a node, link or group, bytes.
pub const NAME_BYTES: usize = 200;
/// Longest path of keys of an override or axis, bytes.
pub const PATH_BYTES: usize = 1000;
/// Most problems that are reported at once.
pub const PROBLEMS: usize = 50;

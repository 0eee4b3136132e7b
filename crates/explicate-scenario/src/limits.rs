//! Limits of a scenario. Beyond them parsing reports an error with a remedy, instead of starting a run that does not
//! end.

use explicate_core::units::Time;

/// Maximum length of a scenario file, bytes.
pub const FILE_BYTES: usize = 64 << 20;
/// Maximum length of a trace file, bytes.
pub const TRACE_BYTES: u64 = 256 << 20;
/// Maximum time, seconds (about three years).
pub const SECONDS: f64 = 1e8;
/// Minimum rate of a link, bit/s.
pub const LEAST_RATE: u64 = 10;
/// Maximum rate of a link, bit/s.
pub const RATE: u64 = 1_000_000_000_000_000;
/// Maximum number of pairs of hosts, or runs.
pub const COUNT: u64 = 1_000_000;
/// Maximum number of flows of a group.
pub const GROUP: u64 = 1_000_000_000;
/// Maximum number of flows of all groups together, packet by packet.
pub const FLOWS: u64 = 4_000_000;
/// Maximum number of flows of all groups together in a fluid model, which computes classes of them.
pub const FLUID_FLOWS: u64 = 4_000_000_000;
/// Maximum number of hops of a chain or parking lot.
pub const HOPS: u64 = 1000;
/// Maximum number of changes of routes.
pub const REROUTES: usize = 100;
/// Maximum number of stations of a medium.
pub const STATIONS: u64 = 1000;
/// Maximum number of interferers of a medium.
pub const INTERFERERS: usize = 100;
/// Maximum distance of a position, metres.
pub const METRES: f64 = 1e7;
/// Maximum number of channels of a link.
pub const CHANNELS: usize = 16;
/// Maximum number of steps of a rate over time.
pub const STEPS: usize = 100_000;
/// Maximum processing time of a host per packet.
pub const PROCESSING: Time = Time::secs(1);
/// Maximum seed: TOML's integers have 63 bits.
pub const SEED: u64 = i64::MAX as u64;
/// Maximum number of packet-hops of one run, estimated: some days of computing.
pub const PACKET_HOPS: f64 = 1e13;
/// Maximum number of rows of the table of samples over all runs, estimated.
pub const SAMPLES: f64 = 1e9;
/// Maximum length of the name of a node, link or group, bytes.
pub const NAME_BYTES: usize = 200;
/// Maximum length of the path of keys of an override or axis, bytes.
pub const PATH_BYTES: usize = 1000;
/// Maximum number of problems that are reported at once.
pub const PROBLEMS: usize = 50;

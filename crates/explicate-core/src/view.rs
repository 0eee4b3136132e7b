//! How a port appears to controllers and disciplines, and how state machines report their variables.

use crate::units::Time;

/// Receives a machine's variables by name (samples, plots, tests).
pub type Probe<'a> = &'a mut dyn FnMut(&'static str, f64);

/// A measured time in milliseconds; NaN, which tables write as null, while it is zero or never: nothing was measured.
pub fn measured_ms(time: Time) -> f64 {
    if time == Time::ZERO || time == Time::NEVER { f64::NAN } else { time.to_millis() }
}

/// A port as its controller or queue discipline sees it.
#[derive(Clone, Copy, Debug)]
pub struct PortView {
    /// The configured capacity, bytes/s; the true rate may differ.
    pub capacity: f64,
    /// Bytes waiting, without the packet in service.
    pub backlog_bytes: u64,
    /// Packets waiting, without the packet in service.
    pub backlog_packets: u32,
    /// A packet is in service.
    pub busy: bool,
}

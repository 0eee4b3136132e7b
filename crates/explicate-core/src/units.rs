//! Units as types: time in integer nanoseconds, rates in bits per second, sizes in bytes.
//!
//! All unit arithmetic of the project is in this file. Inside a controller plain `f64` is used, with the unit in the
//! field's name or documentation.

use core::fmt;
use core::ops::{Add, AddAssign, Sub};

/// A point in time or a span of time, in whole nanoseconds from the driver's epoch (584 years fit).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(pub u64);

impl Time {
    /// The driver's epoch, and the empty span.
    pub const ZERO: Time = Time(0);
    /// "Never": the time of a timer that is not armed.
    pub const NEVER: Time = Time(u64::MAX);

    /// Whole seconds.
    pub const fn secs(s: u64) -> Time {
        Time(s * 1_000_000_000)
    }
    /// Whole milliseconds.
    pub const fn millis(ms: u64) -> Time {
        Time(ms * 1_000_000)
    }
    /// Whole microseconds.
    pub const fn micros(us: u64) -> Time {
        Time(us * 1_000)
    }
    /// Seconds as a float, rounded to the nearest nanosecond; negative and NaN give zero, too large gives [`Time::NEVER`].
    pub fn from_secs_f64(s: f64) -> Time {
        // `as` saturates, so the limits are as documented.
        Time((s * 1e9 + 0.5) as u64)
    }
    /// This span or instant in seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 * 1e-9
    }
    /// This span or instant in milliseconds.
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 * 1e-6
    }
    /// The first multiple of `tick` that is not before this; never stays never.
    pub const fn next_multiple_of(self, tick: Time) -> Time {
        match self.0.checked_next_multiple_of(tick.0) {
            Some(ns) => Time(ns),
            None => Time::NEVER,
        }
    }
    /// The span from `earlier` to `self`; zero if `earlier` is later.
    pub const fn since(self, earlier: Time) -> Time {
        Time(self.0.saturating_sub(earlier.0))
    }
}

impl Add for Time {
    type Output = Time;
    fn add(self, span: Time) -> Time {
        Time(self.0.saturating_add(span.0))
    }
}
impl AddAssign for Time {
    fn add_assign(&mut self, span: Time) {
        *self = *self + span;
    }
}
impl Sub for Time {
    type Output = Time;
    fn sub(self, span: Time) -> Time {
        Time(self.0.saturating_sub(span.0))
    }
}
impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Time::NEVER { f.write_str("never") } else { write!(f, "{:.9}s", self.as_secs_f64()) }
    }
}
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// A rate in bits per second.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Rate(pub u64);

impl Rate {
    /// Bits per second.
    pub const fn bps(bits: u64) -> Rate {
        Rate(bits)
    }
    /// Whole megabits per second.
    pub const fn mbps(megabits: u64) -> Rate {
        Rate(megabits * 1_000_000)
    }
    /// In bytes per second, the unit of every controller.
    pub fn bytes_per_sec(self) -> f64 {
        self.0 as f64 / 8.0
    }
    /// From bytes per second, rounded to whole bits per second.
    pub fn from_bytes_per_sec(rate: f64) -> Rate {
        Rate((rate * 8.0 + 0.5) as u64)
    }
    /// The bytes that are sent in `span`, rounded down.
    pub fn bytes_in(self, span: Time) -> Bytes {
        Bytes((self.0 as u128 * span.0 as u128 / 8_000_000_000) as u64)
    }
}

/// A number of bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Bytes(pub u64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_saturate_and_round() {
        assert_eq!(Time::from_secs_f64(1e-9 * 2.6), Time(3));
        assert_eq!(Time::from_secs_f64(-1.0), Time::ZERO);
        assert_eq!(Time::from_secs_f64(f64::INFINITY), Time::NEVER);
        assert_eq!(Time::millis(1).since(Time::secs(1)), Time::ZERO);
        assert_eq!(Time::NEVER + Time(1), Time::NEVER);
        let tick = |t: Time| t.next_multiple_of(Time::millis(10));
        assert_eq!(tick(Time::millis(30)), Time::millis(30));
        assert_eq!((tick(Time(30_000_001)), tick(Time::NEVER)), (Time::millis(40), Time::NEVER));
    }

    #[test]
    fn a_bandwidth_delay_product() {
        assert_eq!(Rate::mbps(100).bytes_in(Time::millis(80)), Bytes(1_000_000));
        assert_eq!(Rate::from_bytes_per_sec(Rate::mbps(3).bytes_per_sec()), Rate::mbps(3));
    }
}

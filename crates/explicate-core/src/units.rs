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
        // The conversion saturates, so the limits are as documented.
        Time(whole(s * 1e9 + 0.5))
    }
    /// This span or instant in seconds, for arithmetic: the last digit may be wrong. Results leave by
    /// [`Time::to_seconds`].
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 * 1e-9
    }
    /// This span or instant in seconds, for results: the nearest number, so that 300 ms are equal to 0.3.
    pub fn to_seconds(self) -> f64 {
        ratio(self.0 as u128, 1_000_000_000)
    }
    /// This span or instant in milliseconds, for results: the nearest number.
    pub fn to_millis(self) -> f64 {
        ratio(self.0 as u128, 1_000_000)
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
        let (seconds, rest) = (self.0 / 1_000_000_000, self.0 % 1_000_000_000);
        if *self == Time::NEVER { f.write_str("never") } else { write!(f, "{seconds}.{rest:09}s") }
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
        Rate(whole(rate * 8.0 + 0.5))
    }
    /// The bytes that are sent in `span`, rounded down.
    pub fn bytes_in(self, span: Time) -> Bytes {
        Bytes((self.0 as u128 * span.0 as u128 / 8_000_000_000) as u64)
    }
}

/// `x as u64`, in half of the instructions for what is below 2^32, as most spans between packets and most rates are.
#[inline]
fn whole(x: f64) -> u64 {
    if x < u32::MAX as f64 { x as u32 as u64 } else { x as u64 }
}

/// `amount` for each second of `span`, for results: the nearest number; NaN if the span is empty.
pub fn per_second(amount: u64, span: Time) -> f64 {
    ratio(amount as u128 * 1_000_000_000, span.0 as u128)
}

/// The mean in milliseconds of `count` times whose sum is `nanoseconds`, for results: the nearest number; NaN if there are
/// none.
pub fn mean_millis(nanoseconds: u128, count: u64) -> f64 {
    ratio(nanoseconds, count as u128 * 1_000_000)
}

/// The number that is nearest to a quotient; NaN if `denominator`, which is below 2^73, is zero.
fn ratio(numerator: u128, denominator: u128) -> f64 {
    const EXACT: u128 = 1 << f64::MANTISSA_DIGITS;
    if denominator == 0 {
        return f64::NAN;
    }
    if numerator == 0 || numerator <= EXACT && denominator <= EXACT {
        return numerator as f64 / denominator as f64;
    }
    // More binary digits than a float has, the last of them set if any beyond it is: the conversion rounds correctly.
    let shift = numerator.leading_zeros();
    let shifted = numerator << shift;
    let quotient = (shifted / denominator) | u128::from(!shifted.is_multiple_of(denominator));
    libm::ldexp(quotient as f64, -(shift as i32))
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
        assert_eq!([f64::INFINITY, f64::NAN].map(Time::from_secs_f64), [Time::NEVER, Time::ZERO]);
        let limit = [4_294_967_294.4, 4_294_967_294.6, 4_294_967_295.6].map(|ns| Time::from_secs_f64(1e-9 * ns));
        assert_eq!(limit, [Time(4_294_967_294), Time(4_294_967_295), Time(4_294_967_296)]);
        assert_eq!(Time::millis(1).since(Time::secs(1)), Time::ZERO);
        assert_eq!(Time::NEVER + Time(1), Time::NEVER);
        let tick = |t: Time| t.next_multiple_of(Time::millis(10));
        assert_eq!(tick(Time::millis(30)), Time::millis(30));
        assert_eq!((tick(Time(30_000_001)), tick(Time::NEVER)), (Time::millis(40), Time::NEVER));
    }

    /// What a reader of the decimal text gets, who is taken to round correctly.
    fn read(text: &str) -> f64 {
        text.parse().unwrap()
    }

    #[test]
    fn results_are_the_numbers_nearest_to_the_exact_values() {
        use alloc::format;
        assert_eq!((Time::millis(300).to_seconds(), Time::secs(15).to_seconds()), (0.3, 15.0));
        let mut rng = crate::rng::Rng::stream(1, "decimal");
        for bits in 1..=64 {
            for _ in 0..1000 {
                let (a, b) = (rng.next_u64() >> (64 - bits), rng.next_u64());
                let (seconds, rest) = (a / 1_000_000_000, a % 1_000_000_000);
                assert_eq!(Time(a).to_seconds(), read(&format!("{seconds}.{rest:09}")), "{a} ns");
                assert_eq!(
                    format!("{:?}", Time(a >> 1)),
                    format!("{}.{:09}s", (a >> 1) / 1_000_000_000, (a >> 1) % 1_000_000_000)
                );
                let (millis, rest) = (a / 1_000_000, a % 1_000_000);
                assert_eq!(Time(a).to_millis(), read(&format!("{millis}.{rest:06}")), "{a} ns");
                assert_eq!(mean_millis(a as u128, 1), Time(a).to_millis());
                // A second of 2^k parts is exact, whatever the amount.
                let k = b % 33;
                assert_eq!(per_second(a, Time(1_000_000_000 << k)), a as f64 / (1u64 << k) as f64);
                // In a span of 10^k ns the digits stay, and the point moves.
                let k = b % 19;
                let text = format!("{a}e{}", 9 - k as i32);
                assert_eq!(per_second(a, Time(10u64.pow(k as u32))), read(&text), "{text}");
            }
        }
        assert!(per_second(3, Time::ZERO).is_nan() && per_second(u64::MAX, Time::ZERO).is_nan());
        assert!(mean_millis(0, 0).is_nan() && mean_millis(u128::MAX, 0).is_nan());
        assert_eq!(per_second(u64::MAX, Time(1)), read("18446744073709551615e9"));
        assert_eq!((mean_millis(0, u64::MAX), mean_millis(10, 3)), (0.0, 10.0 / 3e6));
    }

    #[test]
    fn a_bandwidth_delay_product() {
        assert_eq!(Rate::mbps(100).bytes_in(Time::millis(80)), Bytes(1_000_000));
        assert_eq!(Rate::from_bytes_per_sec(Rate::mbps(3).bytes_per_sec()), Rate::mbps(3));
    }
}

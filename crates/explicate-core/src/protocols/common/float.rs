//! Floating-point arithmetic in one or two instructions, for what every packet or acknowledgement computes.

use crate::units::Time;

/// The lesser of two numbers that are not NaN. [`f64::min`] takes seven instructions, because it respects NaN.
#[inline(always)]
pub(crate) fn lesser(a: f64, b: f64) -> f64 {
    if a < b { a } else { b }
}

/// The greater of two numbers that are not NaN.
#[inline(always)]
pub(crate) fn greater(a: f64, b: f64) -> f64 {
    if a > b { a } else { b }
}

/// A span below 2^63 ns (292 years) in seconds, as [`Time::as_secs_f64`]: a signed number is converted in one
/// instruction, an unsigned one in six.
#[inline(always)]
pub(crate) fn seconds(span: Time) -> f64 {
    span.0 as i64 as f64 * 1e-9
}

//! The line behind a port: computes when the last byte of a packet leaves.

use alloc::boxed::Box;

use crate::channel::ServiceCurve;
use crate::units::{Rate, Time};

/// A link's service.
pub(super) enum Line {
    /// Nanoseconds per byte in 32.32 fixed point, and the fraction of a nanosecond that remains of the last
    /// departure.
    Constant {
        /// 2^-32 ns per byte.
        per_byte: u64,
        /// 2^-32 ns.
        part: u32,
    },
    /// Known in advance, not constant. Boxed twice, so that a constant line, the common case, stays small.
    Curve(Box<Box<dyn ServiceCurve>>),
}

impl Line {
    /// # Panics
    /// If the rate is zero and no service curve replaces it.
    pub(super) fn new(rate: Rate, service: Option<Box<dyn ServiceCurve>>) -> Line {
        if let Some(curve) = service {
            return Line::Curve(Box::new(curve));
        }
        assert!(rate.0 > 0, "a line needs a rate");
        Line::Constant { per_byte: (((8_000_000_000u128) << 32) / rate.0 as u128) as u64, part: 0 }
    }

    /// When a packet of `bytes` leaves that enters service at `start`; with `idle` the line was idle until then.
    #[inline]
    pub(super) fn finish(&mut self, start: u64, bytes: u32, idle: bool) -> u64 {
        match self {
            Line::Constant { per_byte, part } => {
                let carried = if idle { 0 } else { *part };
                let span = bytes as u128 * *per_byte as u128 + carried as u128;
                *part = span as u32;
                start + (span >> 32) as u64
            }
            Line::Curve(curve) => curve.finish(Time(start), bytes, idle).0,
        }
    }

    /// [`Line::finish`] at an idle line of constant rate, if the result `suits`; otherwise changes nothing.
    #[inline(always)]
    pub(super) fn finish_if(&mut self, start: u64, bytes: u32, suits: impl FnOnce(u64) -> bool) -> Option<u64> {
        let Line::Constant { per_byte, part } = self else { return None };
        let span = bytes as u128 * *per_byte as u128;
        let finish = start + (span >> 32) as u64;
        if !suits(finish) {
            return None;
        }
        *part = span as u32;
        Some(finish)
    }

    /// The result of [`Line::finish`] at an idle line, if its rate is constant.
    pub(super) fn idle_finish(&self, start: u64, bytes: u32) -> Option<u64> {
        let Line::Constant { per_byte, .. } = self else { return None };
        Some(start + ((bytes as u128 * *per_byte as u128) >> 32) as u64)
    }

    /// Bytes that the line offers in `(from, to]`.
    pub(super) fn offered(&self, from: Time, to: Time) -> f64 {
        match self {
            Line::Constant { per_byte, .. } => to.since(from).0 as f64 * (1u64 << 32) as f64 / *per_byte as f64,
            Line::Curve(curve) => curve.offered(from, to),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// At 3 Gbit/s a byte takes 8/3 ns: packets of 100 bytes leave after 266.67, 533.33 and 800 ns, and no nanosecond is lost.
    #[test]
    fn fractions_of_a_nanosecond_are_carried_while_the_line_is_busy() {
        let mut line = Line::new(Rate(3_000_000_000), None);
        let mut at = line.finish(0, 100, true);
        assert_eq!(at, 266);
        at = line.finish(at, 100, false);
        assert_eq!(at, 533);
        assert!((799..=800).contains(&line.finish(at, 100, false)));
        assert_eq!(line.finish(1000, 100, true), 1266, "an idle line begins anew");
    }

    #[test]
    fn a_line_offers_its_rate() {
        let line = Line::new(Rate::mbps(8), None);
        assert_eq!(line.offered(Time::millis(5), Time::millis(8)), 3000.0);
    }
}

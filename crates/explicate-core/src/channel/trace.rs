//! Recorded capacity in the mahimahi format: each line is a millisecond at which the link could deliver 1500 bytes.
//!
//! An opportunity delivers bytes: several small packets, or a part of a large one, as long as packets wait; with an
//! empty queue the rest of an opportunity is lost. After its last line the trace repeats, shifted by the time of that
//! line.

use alloc::boxed::Box;
use alloc::sync::Arc;

use crate::channel::{ChannelInit, ChannelKind, ChannelStages, ServiceCurve};
use crate::params::{File, Info, parameters};
use crate::units::Time;

/// Recorded capacity.
pub struct Trace;

/// Bytes that one opportunity delivers.
const OPPORTUNITY: u32 = 1500;

parameters! {
    /// What a scenario can set.
    struct Params {
        /// The trace, relative to the scenario's folder.
        file: File = (), "mahimahi";
    }
}

impl ChannelKind for Trace {
    const INFO: Info = Info {
        name: "trace",
        summary: "Recorded capacity: delivery opportunities in the mahimahi format, wrapping at the end",
        source: "mahimahi (Netravali et al., USENIX ATC 2015)",
        params: Params::PARAMS,
    };

    fn build(&self, init: ChannelInit<'_>) -> ChannelStages {
        let service = init.values.file.clone().filter(|t| t.last().is_some_and(|&end| end > 0)).map(|millis| {
            Box::new(Opportunities { millis, next: 0, left: 0, at: Time::ZERO }) as Box<dyn ServiceCurve>
        });
        ChannelStages { service, ..ChannelStages::default() }
    }
}

struct Opportunities {
    millis: Arc<[u64]>,
    /// The first opportunity not yet used, counted over all rounds of the trace.
    next: u64,
    /// Remaining bytes of the previous opportunity, and its time.
    left: u32,
    at: Time,
}

impl Opportunities {
    fn period(&self) -> u64 {
        *self.millis.last().expect("a trace has lines")
    }
    fn time(&self, index: u64) -> Time {
        let n = self.millis.len() as u64;
        Time::millis(index / n * self.period() + self.millis[(index % n) as usize])
    }
    /// The first opportunity at `t` or later.
    fn first_from(&self, t: Time) -> u64 {
        let n = self.millis.len() as u64;
        let ms = t.0.div_ceil(1_000_000);
        // A millisecond that ends one round also starts the next: the earlier round's opportunities come first.
        let round = ms.saturating_sub(1) / self.period();
        let within = ms - round * self.period();
        round * n + self.millis.partition_point(|&m| m < within) as u64
    }
}

impl ServiceCurve for Opportunities {
    fn finish(&mut self, start: Time, bytes: u32, idle: bool) -> Time {
        if idle {
            if self.at != start {
                self.left = 0;
            }
            self.next = self.next.max(self.first_from(start));
        }
        let mut need = bytes;
        while need > self.left {
            need -= self.left;
            self.left = OPPORTUNITY;
            self.at = self.time(self.next);
            self.next += 1;
        }
        self.left -= need;
        self.at.max(start)
    }
    fn offered(&self, from: Time, to: Time) -> f64 {
        (self.first_from(Time(to.0 + 1)) - self.first_from(Time(from.0 + 1))) as f64 * OPPORTUNITY as f64
    }
    fn mean_rate(&self) -> f64 {
        self.millis.len() as f64 * OPPORTUNITY as f64 / (self.period() as f64 * 1e-3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(millis: &[u64]) -> Opportunities {
        Opportunities { millis: millis.into(), next: 0, left: 0, at: Time::ZERO }
    }

    #[test]
    fn opportunities_are_fed_with_bytes_and_wrap() {
        let mut c = curve(&[2, 5, 5, 10]);
        assert_eq!(c.finish(Time::ZERO, 1000, true), Time::millis(2));
        assert_eq!(c.finish(Time::millis(2), 500, false), Time::millis(2), "the rest of the same opportunity");
        assert_eq!(c.finish(Time::millis(2), 3000, false), Time::millis(5), "two at once");
        assert_eq!(c.finish(Time::millis(6), 100, true), Time::millis(10));
        assert_eq!(c.finish(Time::micros(10_500), 100, true), Time::millis(12), "the second round; the rest is gone");
        assert_eq!(c.mean_rate(), 600_000.0);
    }

    #[test]
    fn offered_counts_each_opportunity_once() {
        let c = curve(&[0, 2, 5, 10]);
        let total = c.offered(Time::ZERO, Time::millis(40));
        // (0, 40 ms]: 2 5 10 10 | 12 15 20 20 | ... four rounds and the zero of the fifth.
        assert_eq!(total, 16.0 * 1500.0);
        let split = c.offered(Time::ZERO, Time::micros(12_500)) + c.offered(Time::micros(12_500), Time::millis(40));
        assert_eq!(split, total);
        let offered = c.offered(Time::ZERO, Time::secs(1000)) / 1000.0;
        assert!((offered / c.mean_rate() - 1.0).abs() < 1e-4, "the configured capacity is the mean");
    }
}

//! Delay trend: streams of probes at a rate above the available bandwidth have increasing delays.
//!
//! Source: Jain, Dovrolis, "Pathload: a measurement tool for end-to-end available bandwidth", PAM 2002; paper I names it.
//!
//! The idea: a stream is sent at a steady rate. If this exceeds the available bandwidth, a queue grows while the
//! stream passes, and later probes have longer delays; otherwise the delays show no trend. Clocks need not be
//! synchronised. A search (`search.rs`) varies the rate, and reports the highest one without a trend.
//!
//! | symbol | field | value | source |
//! | --- | --- | --- | --- |
//! | K | `probes` | 40 | 100 in the paper |
//! | PCT | `rises` of the medians of groups | above 0.6 | 0.55 in the paper, 0.66 in the later tool |
//! | PDT | `net / gross` | above 0.4 | the paper |
//!
//! Deviations:
//! 1. Both tests have to detect a trend, since a single stream decides, not a fleet of 12.
//! 2. Streams are shorter, so that a search is fast enough for a control loop.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::search::{Arrived, Search};
use super::{Estimator, EstimatorInit, EstimatorKind, Probing};
use crate::params::Info;

/// Streams and trends.
pub struct DelayTrend;

impl EstimatorKind for DelayTrend {
    const INFO: Info = Info {
        name: "delay_trend",
        summary: "Streams of probes, whose delays grow if their rate exceeds the available bandwidth",
        source: "Jain, Dovrolis, PAM 2002",
        params: Probing::PARAMS,
    };

    fn build(&self, init: EstimatorInit<'_>) -> Box<dyn Estimator> {
        Box::new(Search::new(&init, grows))
    }
}

/// Whether the delays of a stream increase.
fn grows(stream: &[Arrived]) -> bool {
    let size = (libm::sqrt(stream.len() as f64) as usize).max(1);
    let median = |group: &[Arrived]| {
        let mut delays: Vec<i64> = group.iter().map(|p| p.came.0.wrapping_sub(p.sent.0) as i64).collect();
        delays.sort_unstable();
        delays[delays.len() / 2]
    };
    let medians: Vec<i64> = stream.chunks(size).map(median).collect();
    let steps: Vec<i64> = medians.windows(2).map(|w| w[1] - w[0]).collect();
    let rises = steps.iter().filter(|s| **s > 0).count() as f64;
    let (net, gross): (i64, i64) = (steps.iter().sum(), steps.iter().map(|s| s.abs()).sum());
    rises > 0.6 * steps.len() as f64 && net as f64 > 0.4 * gross as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Time;

    #[test]
    fn a_growing_queue_is_a_trend_and_noise_is_none() {
        let stream = |delay: &dyn Fn(u64) -> u64| -> Vec<Arrived> {
            let at = |i: u64| Arrived { index: i as u16, sent: Time(i * 1000), came: Time(i * 1000 + delay(i)) };
            (0..40).map(at).collect()
        };
        assert!(grows(&stream(&|i| 500 + 30 * i)));
        assert!(!grows(&stream(&|_| 500)));
        assert!(!grows(&stream(&|i| 500 + (i * 7919) % 101)));
        assert!(!grows(&stream(&|i| 5000 - 30 * i)));
    }
}

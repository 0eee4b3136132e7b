//! Spruce: pairs of probes measure the traffic that arrives between them.
//!
//! Source: Strauss, Katabi, Kaashoek, "A measurement study of available bandwidth estimation tools", IMC 2003.
//!
//! The idea: two probes are sent so closely that the second enters the tight link's queue before the first has left
//! it. The traffic between them widens their gap: available bandwidth = C (1 - (gap_out - gap_in) / gap_in), with
//! gap_in = L / C. The mean of many pairs at random times is reported. C has to be known; here it is measured with
//! pairs sent back to back at the start.
//!
//! | symbol | field | value | source |
//! | --- | --- | --- | --- |
//! | L | `probe_bytes` | 1500 bytes | the paper |
//! | C | `capacity` | bytes/s, from the least gap of 10 pairs | the paper takes it as known |
//! | K | `probes` | 10 pairs | 100 in the paper |
//! | mean time between pairs | `pause` | 2 L / `probe_rate` | the paper: at most 5 % of C |
//!
//! Deviations:
//! 1. Fewer pairs make an estimate, so that a control loop can follow; the receiver's `result_weight` averages over
//!    more.

use alloc::boxed::Box;

use super::{Estimator, EstimatorInit, EstimatorKind, ProbePacket, Probing};
use crate::params::Info;
use crate::rng::Rng;
use crate::units::Time;

/// Pairs of probes.
pub struct Spruce;

impl EstimatorKind for Spruce {
    const INFO: Info = Info {
        name: "spruce",
        summary: "Pairs of probes, whose gap is widened by the traffic that enters the tight link between them",
        source: "Strauss, Katabi, Kaashoek, IMC 2003",
        params: Probing::PARAMS,
    };

    fn build(&self, init: EstimatorInit<'_>) -> Box<dyn Estimator> {
        let params = Probing::of(init.values);
        let bytes = params.probe_bytes.unwrap_or(1500.0);
        Box::new(Pairs {
            bytes,
            count: params.probes.unwrap_or(10.0) as u32,
            pause: 2.0 * bytes / (params.probe_rate / 8.0),
            next: init.now,
            index: 0,
            first: None,
            seen: 0,
            least: f64::INFINITY,
            capacity: None,
            sum: 0.0,
            rng: init.rng,
        })
    }
}

struct Pairs {
    bytes: f64,
    count: u32,
    /// Mean time from pair to pair, seconds.
    pause: f64,
    next: Time,
    /// Number of the next probe; the first of a pair has an even number.
    index: u16,
    /// The first probe of a pair that has arrived.
    first: Option<(u16, Time)>,
    /// Pairs since the last estimate.
    seen: u32,
    /// Least gap of the pairs sent back to back, seconds.
    least: f64,
    /// Of the tight link, bytes/s.
    capacity: Option<f64>,
    /// Sum of the pairs' estimates.
    sum: f64,
    rng: Rng,
}

/// Number of pairs that are sent back to back at the start.
const CALIBRATION: u32 = 10;

impl Estimator for Pairs {
    fn set_period(&mut self, _now: Time, _period: Time) {}
    fn poll_timeout(&self) -> Time {
        if self.capacity.is_some() && self.seen >= self.count { Time::ZERO } else { self.next }
    }
    fn poll_probe(&mut self, now: Time) -> Option<ProbePacket> {
        if self.next > now {
            return None;
        }
        let gap = self.capacity.map_or(0.0, |capacity| self.bytes / capacity);
        let begins = self.index.is_multiple_of(2);
        let wait = if begins { gap } else { self.rng.exponential(self.pause) };
        self.next = now + Time::from_secs_f64(wait);
        let index = self.index;
        self.index = self.index.wrapping_add(1);
        Some(ProbePacket { index, ip_len: self.bytes as u16 })
    }
    fn handle_echo(&mut self, _now: Time, index: u16, _sent: Time, came: Time) {
        if index.is_multiple_of(2) {
            self.first = Some((index, came));
            return;
        }
        let Some((_, first)) = self.first.take().filter(|(i, _)| i.wrapping_add(1) == index) else { return };
        let gap = came.since(first).as_secs_f64();
        self.seen += 1;
        match self.capacity {
            None => {
                self.least = self.least.min(gap);
                if self.seen >= CALIBRATION && self.least > 0.0 {
                    (self.capacity, self.seen) = (Some(self.bytes / self.least), 0);
                }
            }
            Some(capacity) => {
                let sent = self.bytes / capacity;
                self.sum += (capacity * (1.0 - (gap - sent) / sent)).clamp(0.0, capacity);
            }
        }
    }
    fn poll_estimate(&mut self, _now: Time) -> Option<f64> {
        if self.capacity.is_none() || self.seen < self.count {
            return None;
        }
        let mean = self.sum / self.seen as f64;
        (self.sum, self.seen) = (0.0, 0);
        Some(mean)
    }
    fn capacity(&self) -> Option<f64> {
        self.capacity
    }
}

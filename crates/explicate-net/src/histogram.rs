//! Counts of spans of time in classes of at most 1/8 of their length: percentiles without keeping the values.

use explicate_core::units::Time;

const PARTS: u64 = 8;

/// A histogram.
#[derive(Clone)]
pub struct Histogram {
    counts: Vec<u64>,
    /// Number of values.
    pub count: u64,
    /// The greatest.
    pub most: Time,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram { counts: vec![0; (62 * PARTS) as usize], count: 0, most: Time::ZERO }
    }
}

impl Histogram {
    /// Adds a value.
    pub fn add(&mut self, value: Time) {
        self.counts[class(value.0)] += 1;
        self.count += 1;
        self.most = self.most.max(value);
    }
    /// Adds all of another's values.
    pub fn merge(&mut self, other: &Histogram) {
        for (own, more) in self.counts.iter_mut().zip(&other.counts) {
            *own += more;
        }
        self.count += other.count;
        self.most = self.most.max(other.most);
    }
    /// The least value that so large a share of all does not exceed, up to the width of a class; zero without values.
    pub fn percentile(&self, share: f64) -> Time {
        let mut left = (share * self.count as f64) as u64;
        for (i, &count) in self.counts.iter().enumerate() {
            if count > left {
                return Time(upper(i as u64)).min(self.most);
            }
            left -= count;
        }
        self.most
    }
}

fn class(value: u64) -> usize {
    if value < PARTS {
        return value as usize;
    }
    let power = value.ilog2() as u64;
    ((power - 2) * PARTS + (value >> (power - 3)) - PARTS) as usize
}

/// The greatest value of a class.
fn upper(class: u64) -> u64 {
    if class < PARTS {
        return class;
    }
    let power = class / PARTS + 2;
    ((class % PARTS + PARTS + 1) << (power - 3)) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_narrow_and_in_order() {
        let mut before = 0;
        for value in (0..200).chain((200..60_000_000_000).step_by(1_000_003)) {
            let class = class(value);
            assert!(class >= before && upper(class as u64) >= value);
            assert!(upper(class as u64) - value <= value / PARTS, "{value}");
            before = class;
        }
        assert!(class(u64::MAX) < 62 * PARTS as usize);
    }

    #[test]
    fn percentiles() {
        let mut h = Histogram::default();
        assert_eq!(h.percentile(0.5), Time::ZERO);
        (1..=1000).for_each(|i| h.add(Time::micros(i)));
        let near = |share, us: f64| (h.percentile(share).0 as f64 / 1e3 / us - 1.0).abs() < 0.13;
        assert!(near(0.5, 500.0) && near(0.99, 990.0));
        assert_eq!(h.percentile(1.0), Time::millis(1));
    }
}

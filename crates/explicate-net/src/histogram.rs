//! Distributions of durations, without storing the values.

use explicate_core::units::Time;

/// Longest duration with a class of its own, an hour in nanoseconds; longer ones count in the last class.
const LONGEST: u64 = 3_600_000_000_000;
/// Significant decimal digits of a percentile.
const DIGITS: u8 = 2;

/// A histogram.
#[derive(Clone)]
pub struct Histogram {
    durations: hdrhistogram::Histogram<u64>,
    /// The longest duration.
    pub most: Time,
}

impl Default for Histogram {
    fn default() -> Histogram {
        let durations = hdrhistogram::Histogram::new_with_max(LONGEST, DIGITS).expect("constant bounds are valid");
        Histogram { durations, most: Time::ZERO }
    }
}

impl Histogram {
    /// Adds a duration.
    pub fn add(&mut self, duration: Time) {
        self.durations.saturating_record(duration.0);
        self.most = self.most.max(duration);
    }
    /// Adds all durations of another histogram.
    pub fn merge(&mut self, other: &Histogram) {
        self.durations.add(&other.durations).expect("bounds are equal");
        self.most = self.most.max(other.most);
    }
    /// The duration that this share of all values does not exceed, with an error below 1 %; zero without values.
    pub fn percentile(&self, share: f64) -> Time {
        Time(self.durations.value_at_quantile(share)).min(self.most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_within_a_hundredth() {
        let mut h = Histogram::default();
        assert_eq!(h.percentile(0.5), Time::ZERO);
        (1..=1000).for_each(|i| h.add(Time::micros(i)));
        let near = |share, us: f64| (h.percentile(share).0 as f64 / 1e3 / us - 1.0).abs() < 0.01;
        assert!(near(0.5, 500.0) && near(0.99, 990.0), "{:?} {:?}", h.percentile(0.5), h.percentile(0.99));
        assert_eq!(h.percentile(1.0), Time::millis(1));
    }

    #[test]
    fn durations_beyond_the_last_class_count() {
        let (mut h, mut other) = (Histogram::default(), Histogram::default());
        h.add(Time(u64::MAX));
        other.add(Time::ZERO);
        h.merge(&other);
        assert_eq!((h.most, h.percentile(0.5)), (Time(u64::MAX), Time::ZERO));
        assert!(h.percentile(1.0).0 >= LONGEST);
    }
}

//! The maximum of the last rounds as Linux keeps it (`lib/minmax.c`, K. Nichols): three samples instead of one for each round.
//!
//! They are the best sample, the best of those after it, and the best after that. If no sample comes near the best
//! one for a quarter of the window, a later one becomes the second, whatever its value. So a sample is the maximum
//! for one round more than the window has, and the next maximum may be less than the best sample of the window.

/// Rounds of the window (`bbr_bw_rtts`).
const WINDOW: u32 = 10;

/// Samples in the order of their values, with the round of each.
#[derive(Clone, Copy, Default)]
pub(super) struct Maximum([(u32, f64); 3]);

impl Maximum {
    /// Takes a sample of this round; returns the maximum.
    pub(super) fn take(&mut self, round: u32, value: f64) -> f64 {
        let (kept, sample) = (&mut self.0, (round, value));
        if value >= kept[0].1 || round - kept[2].0 > WINDOW {
            *kept = [sample; 3];
            return value;
        }
        for at in 1..3 {
            if value >= kept[at].1 {
                kept[at..].fill(sample);
            }
        }
        let age = round - kept[0].0;
        if age > WINDOW {
            while round - kept[0].0 > WINDOW {
                kept.rotate_left(1);
                kept[2] = sample;
            }
        } else if age > WINDOW / 4 && kept[1].0 == kept[0].0 {
            kept[1..].fill(sample);
        } else if age > WINDOW / 2 && kept[2].0 == kept[1].0 {
            kept[2] = sample;
        }
        kept[0].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 200 in round 1 is the maximum in rounds 1 to 11. From then on it is the best of those after: 120 of round 5, not 150 of round 2,
    /// which came within a quarter of the window. Then the one that came last when half of the window was over.
    #[test]
    fn three_samples_by_hand() {
        let mut maximum = Maximum::default();
        let rates = |round| match round {
            1 => 200.0,
            2 => 150.0,
            5 => 120.0,
            _ => 100.0,
        };
        let kept: std::vec::Vec<f64> = (1..=18).map(|round| maximum.take(round, rates(round))).collect();
        assert_eq!(kept[..11], [200.0; 11]);
        assert_eq!(kept[11..15], [120.0; 4]);
        assert_eq!(kept[15..], [100.0; 3]);
    }

    /// A sample as good as the best replaces it: its window begins anew.
    #[test]
    fn a_sample_as_good_begins_anew() {
        let mut maximum = Maximum::default();
        let rate = |round| if round == 1 || round == 8 { 200.0 } else { 100.0 };
        let kept: std::vec::Vec<f64> = (1..=19).map(|round| maximum.take(round, rate(round))).collect();
        assert_eq!((kept[17], kept[18]), (200.0, 100.0));
    }

    /// Eleven rounds without a sample: the next one is the maximum, whatever it is.
    #[test]
    fn old_samples_count_no_longer() {
        let mut maximum = Maximum::default();
        maximum.take(1, 200.0);
        assert_eq!((maximum.take(11, 50.0), maximum.take(30, 60.0)), (200.0, 60.0));
    }
}

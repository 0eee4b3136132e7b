//! Dips of the window, which show whether delays depend on what the flow sends.
//!
//! A flow that never reacts to losses keeps a short queue full, so the packets behind lost ones take as long as all others. So they
//! do on a path without a queue where the air loses packets. The two differ when less is sent: a queue gets shorter and loses nothing
//! until it is full again, and the air goes on losing. So while losses come at delays that are alike, the window falls by [`DEPTH`] at
//! once and returns over [`ROUNDS`] round trips, [`TIMES`] times over; `full_queue.rs` compares the delays. When that happens
//! depends on round trips, not on a loss, so the losses of the air stay independent of it. If losses go on and the comparisons
//! say no more than before, no queue follows this flow, and the next dips come after [`REST`]. If losses cease while less is sent,
//! there is nothing to compare, and the next dips come with the next losses.

use crate::units::Time;

/// The window falls by the packets of this time, which is sixteen times the least difference of delays, and by at most this share.
const DEPTH: Time = Time::millis(8);
const MOST_DEPTH: f64 = 0.125;
/// Round trips in which the window returns, number of dips in a row, and pause after dips that show nothing.
const ROUNDS: u32 = 8;
const TIMES: u32 = 4;
const REST: Time = Time::secs(60);
/// Round trips with losses before the first dip, and during dips that show something.
const WITH_LOSSES: u32 = 4;

/// The dips of a flow.
#[derive(Default)]
pub(super) struct Dips {
    /// Round trips to come, of all dips.
    left: u32,
    /// Round trips with losses since the last dips.
    lossy: u32,
    /// Sum of the comparisons when the dips began.
    sum: f64,
    rests_until: Time,
}

impl Dips {
    /// A round trip has ended: whether it had losses, whether delays are alike, and the sum of the comparisons.
    pub(super) fn next_round(&mut self, now: Time, losses: bool, alike: bool, sum: f64) {
        self.lossy += u32::from(losses);
        if self.left == 0 {
            if alike && self.lossy >= WITH_LOSSES && now >= self.rests_until {
                self.begin(sum);
            }
            return;
        }
        self.left -= 1;
        if self.left > 0 || self.lossy < WITH_LOSSES {
            return;
        }
        if sum <= self.sum {
            self.rests_until = now + REST;
        } else {
            self.begin(sum);
        }
    }
    fn begin(&mut self, sum: f64) {
        (self.left, self.lossy, self.sum) = (ROUNDS * TIMES, 0, sum);
    }
    /// The share of the window that is used.
    pub(super) fn share(&self, srtt: Time) -> f64 {
        if self.left == 0 || srtt == Time::ZERO {
            return 1.0;
        }
        let depth = (DEPTH.as_secs_f64() / srtt.as_secs_f64()).min(MOST_DEPTH);
        let to_come = (self.left - 1) % ROUNDS + 1;
        1.0 - depth * f64::from(to_come) / f64::from(ROUNDS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Time = Time::millis(40);

    /// Ends `count` round trips with losses; `sum` gives the sum of the comparisons after each. Returns the shares of the window.
    fn rounds(dips: &mut Dips, from: u32, count: u32, sum: impl Fn(u32) -> f64) -> std::vec::Vec<f64> {
        let round = |number: u32| {
            dips.next_round(Time(u64::from(number) * RTT.0), true, true, sum(number));
            dips.share(RTT)
        };
        (from..from + count).map(round).collect()
    }

    #[test]
    fn the_window_falls_by_an_eighth_and_returns_over_eight_round_trips() {
        let shares = rounds(&mut Dips::default(), 0, 12, |_| 0.0);
        assert_eq!(shares[..4], [1.0, 1.0, 1.0, 0.875]);
        assert_eq!(shares[4..12], [0.890625, 0.90625, 0.921875, 0.9375, 0.953125, 0.96875, 0.984375, 0.875]);
    }

    /// 8 of 600 ms, where an eighth would be 75 ms.
    #[test]
    fn over_a_long_path_a_dip_is_what_drains_eight_milliseconds() {
        let mut dips = Dips::default();
        rounds(&mut dips, 0, WITH_LOSSES, |_| 0.0);
        assert!((dips.share(Time::millis(600)) - (1.0 - 8.0 / 600.0)).abs() < 1e-12);
    }

    #[test]
    fn dips_that_show_nothing_rest_for_a_minute() {
        let mut dips = Dips::default();
        let dipped = |shares: &[f64]| shares.iter().filter(|share| **share < 1.0).count();
        assert_eq!(dipped(&rounds(&mut dips, 0, 1500, |_| 0.0)), 32, "one minute of 1500 round trips");
        assert_eq!(dipped(&rounds(&mut dips, 1500, 100, |_| 0.0)), 32, "and once more after it");
    }

    /// A queue that is not full while less is sent loses nothing, so there is nothing to compare.
    #[test]
    fn dips_in_which_losses_cease_do_not_rest() {
        let mut dips = Dips::default();
        let mut round = |number: u32, losses: bool| {
            dips.next_round(Time(u64::from(number) * RTT.0), losses, true, 0.0);
            dips.share(RTT) < 1.0
        };
        let in_dips = (0..40).filter(|&number| round(number, number < 7)).count();
        assert_eq!(in_dips, 32, "three of them with losses");
        assert!(round(40, true), "the fourth");
    }

    #[test]
    fn dips_that_show_a_queue_go_on() {
        let shares = rounds(&mut Dips::default(), 0, 200, f64::from);
        assert!(shares.iter().filter(|share| **share == 1.0).count() < 5, "{shares:?}");
    }

    #[test]
    fn neither_without_losses_nor_where_delays_differ() {
        let mut dips = Dips::default();
        for number in 0..1000 {
            dips.next_round(Time(number * RTT.0), number % 2 == 0, number % 2 == 1 && number < 4, 0.0);
            assert_eq!(dips.share(RTT), 1.0);
        }
        let mut dips = Dips::default();
        (0..1000).for_each(|number| dips.next_round(Time(number * RTT.0), false, true, 0.0));
        assert_eq!(dips.share(RTT), 1.0);
    }
}

//! A link over a medium: its rate, and its airtime.

use super::{RATES, Settings};
use crate::units::Time;

/// From a station to another.
pub(super) struct AirLink {
    /// The engine's link.
    pub(super) link: u32,
    /// Stations.
    pub(super) from: u32,
    pub(super) to: u32,
    /// Index in [`RATES`].
    pub(super) rate: u8,
    successes: u32,
    failures: u32,
    /// The rate was raised, and the first attempt at it is not yet complete.
    on_trial: bool,
    /// Airtime of all its frames including answers; and the part before the measured span.
    pub(super) airtime: Time,
    pub(super) airtime_before: Time,
    /// Frames sent (RTS, or data without RTS), and those without an answer.
    pub(super) attempts: u64,
    pub(super) unanswered: u64,
    /// Changes of the rate, up or down.
    pub(super) rate_changes: u64,
}

impl AirLink {
    pub(super) fn new(link: u32, from: u32, to: u32, rate: u8) -> AirLink {
        AirLink {
            link,
            from,
            to,
            rate,
            successes: 0,
            failures: 0,
            on_trial: false,
            airtime: Time::ZERO,
            airtime_before: Time::ZERO,
            attempts: 0,
            unanswered: 0,
            rate_changes: 0,
        }
    }
    /// An attempt was acknowledged.
    pub(super) fn succeeded(&mut self, s: &Settings) {
        let Some((up, _)) = s.arf else { return };
        self.failures = 0;
        self.successes += 1;
        self.on_trial = false;
        if self.successes >= up && (self.rate as usize) < RATES.len() - 1 {
            self.rate += 1;
            self.rate_changes += 1;
            self.successes = 0;
            self.on_trial = true;
        }
    }
    /// An attempt was not answered.
    pub(super) fn failed(&mut self, s: &Settings) {
        self.unanswered += 1;
        let Some((_, down)) = s.arf else { return };
        self.successes = 0;
        self.failures += 1;
        if self.on_trial || self.failures >= down {
            self.rate_changes += (self.rate > 0) as u64;
            self.rate = self.rate.saturating_sub(1);
            (self.failures, self.on_trial) = (0, false);
        }
    }
}

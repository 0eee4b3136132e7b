//! The reordering window (RFC 8985 section 6.2, steps 3 and 4, with Linux's conditions): how much longer than a round trip a segment
//! may take before it is lost.

use crate::units::Time;

/// How long a minimum of the round trip is valid (Linux: `tcp_min_rtt_wlen`).
const MINIMUM_VALID: Time = Time::secs(300);
/// Episodes after which a window that DSACKs have widened is narrow again.
const PERSISTS: u8 = 16;

/// Linux: `tcp_max_reordering`.
const MOST_DEGREE: u32 = 300;

/// What was seen of reordering, and the minimum round trip.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reordering {
    pub(super) seen: bool,
    /// How many segments a report was ahead of one that came later, at most (Linux: `reordering`).
    degree: u32,
    /// Quarters of the minimum round trip.
    steps: u8,
    pub(super) persists: u8,
    /// DSACKs count once until a segment from here on is acknowledged.
    round: u32,
    /// Reported segments from which on nothing waits.
    dupackthreshold: u32,
    min_rtt: Time,
    measured: Time,
}

impl Reordering {
    pub(super) fn new(dupackthreshold: u32) -> Reordering {
        let (min_rtt, measured) = (Time::NEVER, Time::ZERO);
        Reordering {
            seen: false,
            degree: dupackthreshold,
            steps: 1,
            persists: 0,
            round: 0,
            dupackthreshold,
            min_rtt,
            measured,
        }
    }
    /// A segment that was sent once arrived, this number of segments behind the highest report (`tcp_check_sack_reordering`).
    pub(super) fn behind(&mut self, segments: u32) {
        self.seen = true;
        self.degree = self.degree.max(segments.min(MOST_DEGREE));
    }
    /// The path reorders so much that a report says nothing of a loss: it is progress as good as an acknowledgement
    /// (`tcp_may_raise_cwnd`).
    pub(super) fn is_wide(&self) -> bool {
        self.degree > self.dupackthreshold
    }
    /// The retransmission timer expired with this number of segments reported: the degree was overestimated.
    pub(super) fn on_timeout(&mut self, reported: u32) {
        if reported >= self.dupackthreshold {
            self.degree = self.degree.min(self.dupackthreshold);
        }
    }
    /// A round trip was measured.
    pub(super) fn sample(&mut self, now: Time, rtt: Time) {
        if rtt <= self.min_rtt || now.since(self.measured) > MINIMUM_VALID {
            (self.min_rtt, self.measured) = (rtt, now);
        }
    }
    /// The minimum round trip.
    pub(super) fn min_rtt(&self) -> Time {
        self.min_rtt
    }
    /// How long to wait: nothing in a repair, or once `dupackthreshold` segments are reported, until reordering has been seen.
    pub(super) fn wait(&self, repairing: bool, reported: u32, srtt: Time) -> Time {
        let impatient = !self.seen && (repairing || reported >= self.dupackthreshold);
        if impatient || self.min_rtt == Time::NEVER {
            return Time::ZERO;
        }
        Time((self.min_rtt.0 / 4).saturating_mul(self.steps as u64)).min(srtt)
    }
    /// A retransmission was needless: the window widens by a step, once in a round trip.
    pub(super) fn needless(&mut self, acked: u32, highest: u32) {
        if self.seen && acked >= self.round {
            self.round = highest;
            self.steps = self.steps.saturating_add(1);
            self.persists = PERSISTS;
        }
    }
    /// Duplicates that the receiver reported took a response back (`tcp_try_undo_dsack`).
    pub(super) fn undone_by_duplicates(&mut self) {
        self.persists = (self.persists + 1).min(PERSISTS);
    }
    /// An episode ended, and its response was not taken back.
    pub(super) fn episode_ends(&mut self) {
        self.persists = self.persists.saturating_sub(1);
        if self.persists == 0 {
            self.steps = 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A minimum of 100 ms, widened once to 50 ms: narrow again after 16 episodes. One that duplicates took back counts as one more, one that
    /// time stamps took back as none.
    #[test]
    fn a_widened_window_persists_for_episodes() {
        let episodes = |undone: u32| {
            let mut r = Reordering::new(3);
            r.sample(Time::ZERO, Time::millis(100));
            r.behind(1);
            r.needless(1, 10);
            (0..4).for_each(|_| r.episode_ends());
            (0..undone).for_each(|_| r.undone_by_duplicates());
            let wide = |r: &Reordering| r.wait(false, 0, Time::secs(1)) == Time::millis(50);
            (1..).find(|_| {
                r.episode_ends();
                !wide(&r)
            })
        };
        assert_eq!([0, 1, 3, 9].map(episodes), [12, 13, 15, 16].map(Some));
    }
}

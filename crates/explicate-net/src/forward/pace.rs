//! The interval between turns under load.
//!
//! The kernel puts frames into rings, but the thread that reads them has to be woken. On a virtual machine, whose
//! timers are the host's, one wake-up costs as much as several frames. So the interval is the time in which
//! [`ENOUGH`] frames arrive, up to the user's limit: the higher the rate, the shorter the interval.

use explicate_core::units::Time;

/// Target number of frames per turn: more would only leave in longer bursts.
const ENOUGH: u64 = 64;
/// Minimum interval assumed: several turns may begin at the same time.
const LEAST: Time = Time::micros(1);

/// Times at which turns begin.
pub(super) struct Pace {
    /// Longest interval; zero if turns begin as soon as a frame arrives.
    most: Time,
    busy: bool,
    /// When the last turn began, and the last with frames.
    began: Time,
    found: Time,
}

impl Pace {
    /// Turns with this maximum interval.
    pub(super) fn new(most: Time) -> Pace {
        Pace { most, busy: false, began: Time::ZERO, found: Time::ZERO }
    }
    /// When the next turn begins, after one at `began` that received or sent `frames`. `None` if it begins with the next frame or
    /// departure.
    pub(super) fn next(&mut self, began: Time, frames: usize) -> Option<Time> {
        let before = std::mem::replace(&mut self.began, began);
        self.busy = frames > 0 && (self.busy || began.since(self.found) < self.most);
        if frames > 0 {
            self.found = began;
        }
        let took = began.since(before).max(LEAST).min(self.most).0;
        self.busy.then(|| began + Time(took * ENOUGH / frames as u64).min(self.most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The interval between turns in steady state when frames arrive every `gap` microseconds, and frames per turn.
    fn settles(most: u64, gap: f64) -> (f64, f64) {
        let mut pace = Pace::new(Time::micros(most));
        let (mut now, mut seen) = (0.0, 0.0);
        for _ in 0..100 {
            let frames = ((now - seen) / gap) as usize;
            seen += frames as f64 * gap;
            now = pace.next(Time((now * 1e3) as u64), frames).map_or(seen + gap, |at| at.0 as f64 / 1e3);
        }
        (now - seen, (now - seen) / gap)
    }

    #[test]
    fn frames_that_come_slowly_wake_and_fast_ones_wait_for_enough() {
        assert!(settles(500, 1000.0).1 < 1.01, "one a turn");
        let (apart, frames) = settles(500, 20.0);
        assert!((480.0..=520.0).contains(&apart) && (24.0..27.0).contains(&frames), "{apart} us, {frames}");
        let (apart, frames) = settles(500, 2.0);
        assert!((100.0..160.0).contains(&apart) && (50.0..80.0).contains(&frames), "{apart} us, {frames}");
        assert!(settles(0, 20.0).1 < 1.01, "switched off");
    }
}

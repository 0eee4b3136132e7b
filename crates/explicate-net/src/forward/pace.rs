//! How far turns are apart while there is something to do in each.
//!
//! Frames come to rings by themselves, but the thread that takes them out has to be woken, and on a virtual machine, whose timers
//! are the host's, one wake-up costs as much as several frames. So turns are as far apart as it takes for [`ENOUGH`]
//! frames to come, but no farther than the user allows: the faster they come, the shorter each waits.

use explicate_core::units::Time;

/// Frames that are worth a turn: more in one would only leave in longer bursts.
const ENOUGH: u64 = 64;
/// Least time by which turns are taken to be apart: several may begin at one time.
const LEAST: Time = Time::micros(1);

/// When turns begin.
pub(super) struct Pace {
    /// How far they are apart at most; zero if all begin as soon as there is something to do.
    most: Time,
    busy: bool,
    /// When the last one began, and the last that found something.
    began: Time,
    found: Time,
}

impl Pace {
    /// Turns that are so far apart at most.
    pub(super) fn new(most: Time) -> Pace {
        Pace { most, busy: false, began: Time::ZERO, found: Time::ZERO }
    }
    /// A turn that began at `began` had `frames` come or go: when the next begins, whatever comes until then. `None` if that shall
    /// begin it.
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

    /// The distance at which turns settle when frames come so many microseconds apart, and frames a turn.
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
        assert!(settles(0, 20.0).1 < 1.01, "not asked for");
    }
}

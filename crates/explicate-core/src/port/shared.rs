//! One line before two ports, as on a half-duplex link: it carries one packet at a time, and the two take turns while both
//! have something to send.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use crate::units::Time;

/// A port's end of a line that another port shares. One run has one thread, so no ordering of memory is needed.
pub struct SharedLine {
    line: Arc<State>,
    side: usize,
}

#[derive(Default)]
struct State {
    /// When the packet that is carried has left, ns.
    free: AtomicU64,
    /// Whether the second side sent last.
    second: AtomicBool,
    /// Sides that have something to send and may not yet.
    waiting: [AtomicBool; 2],
}

impl SharedLine {
    /// The two ends of a line.
    pub fn pair() -> [SharedLine; 2] {
        let line = Arc::new(State::default());
        [0, 1].map(|side| SharedLine { line: line.clone(), side })
    }
    /// The other side waits, and it is its turn.
    fn yields(&self) -> bool {
        self.line.waiting[1 - self.side].load(Relaxed) && self.line.second.load(Relaxed) as usize == self.side
    }
    /// Asks for the line; if it is not to be had, this side waits from now on.
    pub(super) fn ask(&self, now: Time) -> bool {
        let granted = self.line.free.load(Relaxed) <= now.0 && !self.yields();
        self.line.waiting[self.side].store(!granted, Relaxed);
        granted
    }
    /// A packet takes the line until `free`.
    pub(super) fn occupy(&self, free: Time) {
        self.line.free.store(free.0, Relaxed);
        self.line.second.store(self.side == 1, Relaxed);
    }
    /// When to ask again; never while it is not known, for then the other side sends first.
    pub(super) fn next_timer(&self) -> Time {
        let waits = self.line.waiting[self.side].load(Relaxed) && !self.yields();
        if waits { Time(self.line.free.load(Relaxed)) } else { Time::NEVER }
    }
}

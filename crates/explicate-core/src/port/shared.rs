//! One line of two ports, as on a half-duplex link: it carries one packet at a time, and the ports alternate while
//! both have packets to send.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use crate::units::Time;

/// A port's end of a line that another port shares. A run has one thread, so no memory ordering is needed.
pub struct SharedLine {
    line: Arc<State>,
    side: usize,
}

#[derive(Default)]
struct State {
    /// When the packet in service leaves, ns.
    free: AtomicU64,
    /// Whether the second side sent last.
    second: AtomicBool,
    /// Ports that have packets to send and must wait.
    waiting: [AtomicBool; 2],
}

impl SharedLine {
    /// The two ends of a line.
    pub fn pair() -> [SharedLine; 2] {
        let line = Arc::new(State::default());
        [0, 1].map(|side| SharedLine { line: line.clone(), side })
    }
    /// The other port waits, and it is its turn.
    fn yields(&self) -> bool {
        self.line.waiting[1 - self.side].load(Relaxed) && self.line.second.load(Relaxed) as usize == self.side
    }
    /// Requests the line; if it is not free, this port waits from now on.
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
    /// When to request the line again; never while that is unknown, because the other port sends first.
    pub(super) fn next_timer(&self) -> Time {
        let waits = self.line.waiting[self.side].load(Relaxed) && !self.yields();
        if waits { Time(self.line.free.load(Relaxed)) } else { Time::NEVER }
    }
}

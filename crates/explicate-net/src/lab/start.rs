//! The common start of all parts of a lab.
//!
//! A router whose sockets open late loses the first packets of all flows, and with them seconds until their timers expire; one that opens
//! some seconds late leaves every flow without a byte. So the clock starts when the last part is ready, however late that is.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use explicate_core::units::Time;

use crate::clock::Clock;

/// Time for all parts to wake up when the last is ready. Their sockets are open: they keep what comes earlier.
const PREPARATION: Time = Time::millis(100);
/// Interval between looks at whether to stop.
const LOOKS: Duration = Duration::from_millis(100);

/// The parts that are ready, and the clock once all are.
pub(super) struct Start {
    parts: usize,
    state: Mutex<(usize, Option<Clock>)>,
    all: Condvar,
}

impl Start {
    /// The start of this number of parts.
    pub(super) fn of(parts: usize) -> Start {
        Start { parts, state: Mutex::default(), all: Condvar::new() }
    }
    /// Notes that a part is ready, with its sockets open, and waits for the others. Returns the clock of all; after `stop` any.
    pub(super) fn wait(&self, stop: &dyn Fn() -> bool) -> Clock {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.0 += 1;
        if state.0 == self.parts {
            state.1 = Some(Clock::start_in(PREPARATION));
            self.all.notify_all();
        }
        loop {
            match state.1 {
                Some(clock) => return clock,
                None if stop() => return Clock::start(),
                None => state = self.all.wait_timeout(state, LOOKS).unwrap_or_else(PoisonError::into_inner).0,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    use super::*;
    use crate::sys;

    /// The clock of all starts after the last of them is ready, not at a time set before.
    #[test]
    fn all_wait_for_one_that_comes_late() {
        let start = Start::of(3);
        let coming = AtomicUsize::new(0);
        let early = || {
            coming.fetch_add(1, Ordering::SeqCst);
            start.wait(&|| false)
        };
        thread::scope(|scope| {
            let early = [(); 2].map(|()| scope.spawn(early));
            while coming.load(Ordering::SeqCst) < 2 {
                thread::yield_now();
            }
            sys::sleep_until(sys::monotonic() + 3 * PREPARATION.0);
            let ready = sys::monotonic();
            let own = start.wait(&|| false);
            assert_eq!(own.of(ready + PREPARATION.0), Time::ZERO, "it starts after the last is ready");
            for early in early {
                let at = |clock: Clock| clock.of(u64::MAX);
                assert_eq!(at(early.join().unwrap()), at(own));
            }
        });
    }

    #[test]
    fn a_lab_that_stops_waits_for_none() {
        Start::of(2).wait(&|| true);
    }
}

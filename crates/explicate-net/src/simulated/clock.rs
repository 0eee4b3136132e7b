//! The clock of a simulation, which tokio's paused clock moves.

use std::cell::Cell;

use tokio::time::Instant;

thread_local! {
    static START: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// What the clock shows at the start, ns: waits count from 0.
const OFFSET: u64 = 1_000_000_000;

/// While it lives, this thread's clock is that of the runtime in which it was made.
pub struct Simulated(());

impl Simulated {
    /// Begins now.
    pub fn begin() -> Simulated {
        START.set(Some(Instant::now()));
        Simulated(())
    }
}

impl Drop for Simulated {
    fn drop(&mut self) {
        START.set(None);
    }
}

/// Nanoseconds of the simulated clock, if this thread is a simulation.
pub fn now() -> Option<u64> {
    START.get().map(|start| OFFSET + start.elapsed().as_nanos() as u64)
}

/// Nanoseconds since the start.
pub fn elapsed() -> u64 {
    now().map_or(0, |now| now - OFFSET)
}

/// Waits until so many nanoseconds after the start; without a time it never ends.
pub async fn until(at: Option<u64>) {
    match at {
        Some(at) => tokio::time::sleep(std::time::Duration::from_nanos(at.saturating_sub(elapsed()))).await,
        None => std::future::pending().await,
    }
}

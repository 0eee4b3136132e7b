//! The clock of a simulation, which tokio's paused clock moves, or the simulation itself.

use std::cell::Cell;

use tokio::time::Instant;

thread_local! {
    static START: Cell<Option<Instant>> = const { Cell::new(None) };
    static BY_HAND: Cell<Option<u64>> = const { Cell::new(None) };
    static WALL: Cell<u64> = const { Cell::new(0) };
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

/// While it lives, this thread's clock stands still until it is [moved](move_to): for programs without tasks.
pub struct ByHand(());

impl ByHand {
    /// Begins now.
    pub fn begin() -> ByHand {
        BY_HAND.set(Some(OFFSET));
        set_wall(3600 * OFFSET);
        ByHand(())
    }
}

impl Drop for ByHand {
    fn drop(&mut self) {
        BY_HAND.set(None);
    }
}

/// Moves the clock to so many nanoseconds after the start, if it is earlier.
pub fn move_to(at: u64) {
    BY_HAND.set(BY_HAND.get().map(|now| now.max(OFFSET + at)));
}

/// Sets how far the wall clock is ahead of it, ns.
pub fn set_wall(ahead: u64) {
    WALL.set(ahead);
}

/// How far the wall clock is ahead, if this thread's clock is moved by hand.
pub fn wall_ahead() -> Option<u64> {
    BY_HAND.get().map(|_| WALL.get())
}

/// Nanoseconds of the simulated clock, if this thread is a simulation.
pub fn now() -> Option<u64> {
    if let Some(now) = BY_HAND.get() {
        return Some(now);
    }
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

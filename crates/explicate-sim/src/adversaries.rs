//! Patterns of times that are bad for lists of events by time: the tests bound what an event costs the queue there, and
//! `bench/cost_queue.py` counts it.

use explicate_core::rng::Rng;

use crate::arena::Arena;
use crate::event::Event;
use crate::wheel::Wheel;

/// An event queue as the patterns use it.
pub trait Queue {
    /// Inserts an event this many nanoseconds after the last one removed.
    fn insert(&mut self, after: u64);
    /// Removes the first event.
    fn pop(&mut self);
    /// A random number below `end`.
    fn below(&mut self, end: u64) -> u64;
}

/// Fills a queue with about `n` events, and goes on.
pub type Pattern = fn(&mut dyn Queue, u64);

const SECOND: u64 = 1_000_000_000;

/// The patterns, by name.
pub const ADVERSARIES: [(&str, Pattern); 9] = [
    ("all at one time", |queue, n| {
        fill(queue, n, |_| 50);
        hold(queue, 3 * n, |_| 0);
    }),
    ("two times", |queue, n| {
        fill(queue, n, |q| 50 + q.below(2));
        hold(queue, 3 * n, |q| q.below(2));
    }),
    ("backwards", |queue, n| {
        (0..n).for_each(|event| queue.insert(2 * n - 2 * event));
        (0..n).for_each(|event| queue.insert(2 * event + 1));
    }),
    ("a burst after a calm", |queue, n| {
        queue.insert(SECOND);
        hold(queue, 1000, |_| SECOND);
        fill(queue, n, |q| q.below(1_000_000));
        hold(queue, 3 * n, |q| q.below(1_000_000));
    }),
    ("a long burst after a long calm", |queue, n| {
        queue.insert(SECOND);
        hold(queue, 70_000, |_| SECOND);
        fill(queue, n, |q| q.below(SECOND));
        hold(queue, 3 * n, |q| q.below(SECOND));
    }),
    ("alternating scales", |queue, n| {
        fill(queue, n, |q| q.below(n));
        for _ in 0..6 {
            hold(queue, n / 2, |q| q.below(2 * n));
            hold(queue, n / 2, |q| q.below(n * SECOND));
        }
    }),
    ("every scale at once", |queue, n| {
        let after = |q: &mut dyn Queue| {
            let bits = q.below(44);
            q.below(1 << bits)
        };
        fill(queue, n, after);
        hold(queue, 3 * n, after);
    }),
    ("one far event in each rotation", |queue, n| {
        fill(queue, 70_000, |_| 1);
        (0..n).for_each(|event| queue.insert(SECOND + (event << 19)));
        (0..70_000 + n / 2).for_each(|_| queue.pop());
    }),
    ("ties that grow while they are popped", |queue, n| {
        for tie in 0..n / 8 {
            fill(queue, 8, |_| 1000 + tie / 4);
        }
        hold(queue, 2 * n, |q| q.below(3));
    }),
];

fn fill(queue: &mut dyn Queue, events: u64, after: impl Fn(&mut dyn Queue) -> u64) {
    for _ in 0..events {
        let after = after(queue);
        queue.insert(after);
    }
}

fn hold(queue: &mut dyn Queue, events: u64, after: impl Fn(&mut dyn Queue) -> u64) {
    for _ in 0..events {
        queue.pop();
        let after = after(queue);
        queue.insert(after);
    }
}

/// The event queue alone, without a network.
pub struct Alone {
    pub(crate) arena: Arena,
    pub(crate) wheel: Wheel,
    pub(crate) now: u64,
    rng: Rng,
    /// Insertions and removals so far.
    pub operations: u64,
}

impl Alone {
    /// Numbers of the sources of events are below.
    const SOURCES: u64 = 1000;

    /// An empty queue that breaks ties by this key, which is also the seed.
    pub fn new(ties: u64) -> Alone {
        let rng = Rng::stream(ties, "adversaries");
        Alone { arena: Arena::new(), wheel: Wheel::new(ties), now: 0, rng, operations: 0 }
    }
    /// [`Queue::insert`]; returns the slot.
    pub(crate) fn insert_after(&mut self, after: u64) -> u32 {
        let place = self.below(Alone::SOURCES) as u32;
        let slot = self.arena.take();
        self.wheel.insert(&mut self.arena, slot, self.now + after, Event::arrival(place));
        self.operations += 1;
        slot
    }
    /// Removes the first event if it is not later than `limit`: its time and slot.
    pub(crate) fn pop_before(&mut self, limit: u64) -> Option<(u64, u32)> {
        let taken = self.wheel.pop(&mut self.arena, limit, |slot| Event::of(slot).place())?;
        self.arena.give(taken.slot);
        (self.now, self.operations) = (taken.time, self.operations + 1);
        Some((taken.time, taken.slot))
    }
    /// Removes all events.
    pub fn drain(&mut self) {
        while self.pop_before(u64::MAX).is_some() {}
    }
}

impl Queue for Alone {
    fn insert(&mut self, after: u64) {
        self.insert_after(after);
    }
    fn pop(&mut self) {
        self.pop_before(u64::MAX);
    }
    fn below(&mut self, end: u64) -> u64 {
        self.rng.next_u64() % end
    }
}

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::*;
use crate::adversaries::{ADVERSARIES, Alone, Queue};
use crate::keyed::STEPS;
use explicate_core::rng::Rng;

/// Against a plain sorted list, with spans from nanoseconds to hours.
#[test]
fn order_is_time_then_hash_then_rank_then_insertion() {
    let rank = |slot: &Slot| Event::of(slot).place();
    for seed in 0..6usize {
        let mut rng = Rng::stream(seed as u64, "wheel");
        let (mut arena, mut wheel) = (Arena::new(), Wheel::new(seed as u64));
        let mut expected: std::collections::BTreeMap<(u64, u64, u32, u64), u32> = std::collections::BTreeMap::new();
        let (mut now, mut count) = (0u64, 0u64);
        for step in 0..30_000u64 {
            let grows = step < 20_000 && !rng.next_u64().is_multiple_of(3);
            if grows || expected.is_empty() && step < 20_000 {
                let magnitude = rng.next_u64() % [14, 24, 30, 36, 45, 20][seed];
                let slot = arena.take();
                let time = now + rng.next_u64() % (1 << magnitude);
                let place = (rng.next_u64() % 4) as u32;
                wheel.insert(&mut arena, slot, time, Event::arrival(place));
                let hash = rng::drawn(rng::drawn(seed as u64, time), place as u64);
                expected.insert((time, hash, place, count), slot);
                count += 1;
            } else {
                let limit = if rng.next_u64().is_multiple_of(8) { now + 1000 } else { u64::MAX };
                let first = expected.first_key_value().map(|(k, v)| (*k, *v)).filter(|(k, _)| k.0 <= limit);
                let got = wheel.pop(&mut arena, limit, rank);
                assert_eq!(got.map(|t| t.slot), first.map(|(_, slot)| slot), "seed {seed} step {step}");
                if let Some((key, slot)) = first {
                    expected.remove(&key);
                    now = key.0;
                    arena.give(slot);
                    assert!(wheel.now().0 <= now);
                } else if limit != u64::MAX {
                    now = limit; // the search of the queue is there now
                }
            }
            assert_eq!(wheel.len(), expected.len());
        }
    }
}

/// Time, hash, rank, number.
type Key = (u64, u64, u32, u64);

/// A queue beside a heap of the same events: keys in the queue's order, and slots.
struct Both {
    alone: Alone,
    model: BinaryHeap<Reverse<(Key, u32)>>,
}

impl Both {
    const TIES: u64 = 3;

    fn new() -> Both {
        STEPS.set(0);
        Both { alone: Alone::new(Both::TIES), model: BinaryHeap::new() }
    }
    fn drain(&mut self) {
        while !self.model.is_empty() {
            self.pop();
        }
        assert_eq!(self.alone.wheel.len(), 0);
    }
}

impl Queue for Both {
    fn insert(&mut self, after: u64) {
        let slot = self.alone.insert_after(after);
        let pending = self.alone.arena.slot(slot);
        let (time, place) = (pending.time, Event::of(pending).place());
        let hash = rng::drawn(rng::drawn(Both::TIES, time), place as u64);
        self.model.push(Reverse(((time, hash, place, self.alone.operations), slot)));
    }
    fn pop(&mut self) {
        // Often the search stops before the next event, as it does for a sample.
        let limit = self.alone.now + self.alone.below(64);
        let got = self.alone.pop_before(limit).or_else(|| self.alone.pop_before(u64::MAX));
        let Reverse(((time, ..), slot)) = self.model.pop().expect("as many");
        assert_eq!(got, Some((time, slot)));
    }
    fn below(&mut self, end: u64) -> u64 {
        self.alone.below(end)
    }
}

/// The order is the model's, and no pattern costs more than logarithmic time an operation. Empty buckets between two events
/// are not counted: a search passes at most some thousand, 64 at once, however many events are pending.
#[test]
fn operations_take_logarithmic_time_whatever_the_times() {
    for (name, pattern) in ADVERSARIES {
        for n in [1u64 << 10, 1 << 14, 1 << 16] {
            let mut both = Both::new();
            pattern(&mut both, n);
            both.drain();
            let (steps, operations) = (STEPS.get(), both.alone.operations);
            let bound = 2 * operations * u64::from(n.ilog2());
            assert!(steps <= bound, "{name}, {n} events: {steps} steps for {operations} operations, at most {bound}");
        }
    }
}

/// Mixtures of all scales, and of taking out everything in between, as the engine does.
#[test]
fn mixtures_keep_the_order() {
    const SECOND: u64 = 1_000_000_000;
    let mut both = Both::new();
    for _ in 0..2000 {
        let scale = [1, 2, 30, 5000, 1_000_000, SECOND, 700 * SECOND][both.below(7) as usize];
        let events = 1 + both.below(600);
        for _ in 0..events {
            match both.below(3) {
                0 if !both.model.is_empty() => both.pop(),
                1 => both.insert(scale),
                _ => {
                    let after = both.below(scale);
                    both.insert(after);
                }
            }
        }
        for _ in 0..both.below(1000).min(both.model.len() as u64) {
            both.pop();
        }
        if both.below(8) == 0 {
            let Alone { arena, wheel, .. } = &mut both.alone;
            for slot in wheel.take_all(arena) {
                let pending = arena.slot(slot);
                let (time, event) = (pending.time, Event::of(pending));
                wheel.insert(arena, slot, time, event);
            }
        }
    }
    both.drain();
}

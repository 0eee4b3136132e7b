//! The event queue: a timing wheel whose buckets are about as wide as the mean gap between events, so that its cost
//! depends neither on the number of pending events nor on how far in the future they are.
//!
//! Events are slots of the arena, chained through each other. Order is (time, hash, rank, insertion): the rank is
//! the number of the event's source, the hash is of the run, the time and that number. The order of a tie does not
//! depend on the order of insertion, favours no declaration, and differs from tie to tie. Events of the same time stay in order
//! of insertion in their bucket until the first of them is popped; hashes are computed only then, and only for these.
//!
//! The next two rotations of `NEAR` buckets have full resolution; each of `FAR` further rotations is an unsorted list, which is
//! distributed when its time comes; all later events are in one list.

use crate::arena::{Arena, NIL};
use crate::event::Event;
use crate::prefetch;
use crate::rotations::{List, Listed, Rotations};
use explicate_core::port::Slot;
use explicate_core::rng;
#[cfg(test)]
use explicate_core::units::Time;

const NEAR_BITS: u32 = 15;
const NEAR: u64 = 1 << NEAR_BITS;
/// Two rotations. The length is in the arrays' types, so that a masked index needs no check.
const BUCKETS: usize = 2 * NEAR as usize;
const FAR: u64 = 1 << 10;
/// Least number of pops between two checks of the bucket width.
const RETUNE: u64 = 1 << 16;

/// How many events ahead a packet is prefetched when a rotation is distributed.
const SOON: usize = 8;

/// The first and the last event of a chain. In `near` they are undefined while the bucket's bit is zero.
type Chain = [u32; 2];
const HEAD: usize = 0;
const TAIL: usize = 1;
/// In a chain's head: events of one time are in order of insertion, not sorted.
const TIED: u32 = 0x8000_0000;

/// An event that was popped.
pub(crate) struct Taken {
    pub(crate) slot: u32,
    pub(crate) time: u64,
    pub(crate) event: Event,
}

/// An event of a tie.
struct Tied {
    hash: u64,
    rank: u32,
    slot: u32,
}

/// An event beyond the rotations that have lists.
struct Later {
    /// Its bucket, counted from the beginning of time.
    tick: u64,
    slot: u32,
}

/// A check of the bucket width.
struct Check {
    time: u64,
    /// Pops until then.
    taken: u64,
}

/// The event queue.
pub(crate) struct Wheel {
    /// Key that breaks ties, with time and source.
    ties: u64,
    /// The time whose events were sorted last, if none was inserted since; and scratch memory for sorting.
    untied: u64,
    tied: Vec<Tied>,
    /// Width of a bucket: 2^shift ns.
    shift: u32,
    /// Bucket number (time >> shift) at which the search is.
    tick: u64,
    /// The first bucket number that is not in `near`: two rotations from the beginning of the present one.
    near_end: u64,
    near: Box<[Chain; BUCKETS]>,
    /// One bit per bucket of `near`, set if it is not empty.
    occupied: [u64; BUCKETS / 64],
    far: Rotations,
    /// Buckets and slots of events beyond `far`.
    beyond: Vec<Later>,
    /// The first rotation of the events in `beyond`.
    beyond_from: u64,
    /// Events inserted and removed so far.
    put: u64,
    pub(crate) taken: u64,
    /// Events that are not in `near`.
    distant: u64,
    /// The last check of the bucket width.
    checked: Check,
}

impl Wheel {
    /// An empty queue that breaks ties by this key.
    pub(crate) fn new(ties: u64) -> Wheel {
        Wheel {
            ties,
            untied: u64::MAX,
            tied: Vec::new(),
            shift: 14,
            tick: 0,
            near_end: BUCKETS as u64,
            // All zero: unused memory costs nothing.
            near: vec![[0; 2]; BUCKETS].try_into().expect("as many"),
            occupied: [0; BUCKETS / 64],
            far: Rotations::new(FAR),
            beyond: Vec::new(),
            beyond_from: u64::MAX,
            put: 0,
            taken: 0,
            distant: 0,
            checked: Check { time: 0, taken: 0 },
        }
    }

    /// Number of pending events.
    pub(crate) fn len(&self) -> usize {
        (self.put - self.taken) as usize
    }

    /// Inserts a slot at a time not before the last event popped.
    #[inline(always)]
    pub(crate) fn insert(&mut self, arena: &mut Arena, slot: u32, time: u64, event: Event) {
        event.schedule(arena.slot_mut(slot), time);
        self.put_in(arena, slot, time);
    }

    /// [`Wheel::insert`] of a slot whose event has been [scheduled](Event::schedule).
    #[inline(always)]
    pub(crate) fn put_in(&mut self, arena: &mut Arena, slot: u32, time: u64) {
        self.put += 1;
        let tick = time >> self.shift;
        debug_assert!(tick >= self.tick, "an event before the present");
        if tick < self.near_end {
            self.insert_near(arena, slot, tick);
        } else {
            self.insert_distant(tick, slot);
        }
    }

    #[inline(always)]
    fn insert_near(&mut self, arena: &mut Arena, slot: u32, tick: u64) {
        let index = tick as usize % BUCKETS;
        let (word, bit) = (&mut self.occupied[index / 64], 1 << (index % 64));
        if *word & bit == 0 {
            *word |= bit;
            self.near[index] = [slot; 2];
        } else {
            self.insert_among(arena, slot, index);
        }
    }

    /// Inserts a slot, whose `next` is nothing, into a bucket that holds others: behind those of its time, which are
    /// then unsorted.
    fn insert_among(&mut self, arena: &mut Arena, slot: u32, index: usize) {
        let time = arena.slot(slot).time;
        let last = arena.slot(self.near[index][TAIL]).time;
        if time == last {
            self.tie(time, index);
        }
        let chain = &mut self.near[index];
        if time >= last {
            arena.slot_mut(chain[TAIL]).next = slot;
            chain[TAIL] = slot;
            return;
        }
        let mut at = chain[HEAD] & !TIED;
        let first = arena.slot(at).time;
        if time < first {
            arena.slot_mut(slot).next = at;
            chain[HEAD] = slot | chain[HEAD] & TIED;
            return;
        }
        let mut before = first;
        loop {
            let next = arena.slot(at).next;
            let after = arena.slot(next).time;
            if time < after {
                if time == before {
                    self.tie(time, index);
                }
                arena.slot_mut(slot).next = next;
                arena.slot_mut(at).next = slot;
                return;
            }
            (at, before) = (next, after);
        }
    }

    /// One more event of this time is in this bucket.
    #[cold]
    #[inline(never)]
    fn tie(&mut self, time: u64, index: usize) {
        self.near[index][HEAD] |= TIED;
        if self.untied == time {
            self.untied = u64::MAX;
        }
    }

    /// Sorts the first events of a bucket, if they have the same time and are unsorted; returns the first.
    fn untie(&mut self, arena: &mut Arena, index: usize, rank: impl Fn(&Slot) -> u32) -> u32 {
        let first = self.near[index][HEAD] & !TIED;
        let time = arena.slot(first).time;
        if core::mem::replace(&mut self.untied, time) == time {
            return first;
        }
        let key = rng::drawn(self.ties, time);
        let mut slot = first;
        while slot != NIL && arena.slot(slot).time == time {
            let rank = rank(arena.slot(slot));
            self.tied.push(Tied { hash: rng::drawn(key, rank as u64), rank, slot });
            slot = arena.slot(slot).next;
        }
        // The sort is stable: events of one source stay in order of insertion.
        self.tied.sort_by_key(|tied| (tied.hash, tied.rank));
        let mut next = slot;
        if let Some(last) = self.tied.last().filter(|_| next == NIL) {
            self.near[index][TAIL] = last.slot;
        }
        for Tied { slot, .. } in self.tied.drain(..).rev() {
            arena.slot_mut(slot).next = next;
            next = slot;
        }
        next
    }

    fn insert_distant(&mut self, tick: u64, slot: u32) {
        self.distant += 1;
        let rotation = tick >> NEAR_BITS;
        if rotation - (self.tick >> NEAR_BITS) >= FAR {
            self.beyond_from = self.beyond_from.min(rotation);
            self.beyond.push(Later { tick, slot });
            return;
        }
        self.far.push(rotation % FAR, (tick % NEAR) as u32, slot);
    }

    /// Pops the first event if it is due at `limit` or before.
    #[inline(always)]
    pub(crate) fn pop(&mut self, arena: &mut Arena, limit: u64, rank: impl Fn(&Slot) -> u32) -> Option<Taken> {
        loop {
            let index = self.tick as usize % BUCKETS;
            // The rest of this word, then the words after it, up to the end of the present rotation.
            let word = self.occupied[index / 64] >> (index % 64);
            if word != 0 {
                let skip = word.trailing_zeros();
                let index = (index + skip as usize) % BUCKETS;
                let slot = self.near[index][HEAD];
                // No slot has the number of a head with that bit.
                let Some(found) = arena.find(slot) else {
                    return self.pop_tied(arena, limit, (index, skip), rank);
                };
                let (time, next, event) = (found.time, found.next, Event::of(found));
                if time > limit {
                    return None;
                }
                self.tick += skip as u64;
                self.near[index][HEAD] = next;
                if next == NIL {
                    self.occupied[index / 64] &= !(1 << (index % 64));
                }
                self.taken += 1;
                return Some(Taken { slot, time, event });
            }
            // The search never passes the limit: a caller may insert events after it.
            let next_word = (self.tick | 63) + 1;
            if self.put == self.taken || next_word > limit >> self.shift {
                return None;
            }
            if self.taken - self.checked.taken >= RETUNE {
                self.retune(arena);
                continue;
            }
            self.tick = next_word;
            if self.tick.is_multiple_of(NEAR) {
                self.enter_rotation(arena, limit);
            }
        }
    }

    /// [`Wheel::pop`] from a bucket that holds events of one time.
    #[cold]
    #[inline(never)]
    fn pop_tied(
        &mut self,
        arena: &mut Arena,
        limit: u64,
        (index, skip): (usize, u32),
        rank: impl Fn(&Slot) -> u32,
    ) -> Option<Taken> {
        let slot = self.untie(arena, index, rank);
        let found = arena.slot(slot);
        let (time, next, event) = (found.time, found.next, Event::of(found));
        if time > limit {
            self.near[index][HEAD] = slot | TIED;
            return None;
        }
        self.tick += skip as u64;
        self.near[index][HEAD] = next | TIED;
        if next == NIL {
            self.occupied[index / 64] &= !(1 << (index % 64));
        }
        self.taken += 1;
        Some(Taken { slot, time, event })
    }

    /// The first event of the next bucket that is not empty, at most `within` buckets from now, among those after
    /// number `seen`.
    #[inline]
    pub(crate) fn ahead(&self, seen: &mut u64, within: u64) -> Option<u32> {
        let end = (self.tick + within).min(self.near_end - 1);
        if *seen < self.tick || *seen > end {
            *seen = self.tick; // behind, or from buckets of another width
        }
        while *seen < end {
            let from = *seen + 1;
            let index = from as usize % BUCKETS;
            let word = self.occupied[index / 64] >> (index % 64);
            if word == 0 {
                *seen = (from | 63).min(end);
                continue;
            }
            let skip = word.trailing_zeros();
            *seen = (from + skip as u64).min(end);
            return (from + skip as u64 <= end).then(|| self.near[(index + skip as usize) % BUCKETS][HEAD] & !TIED);
        }
        None
    }

    /// A rotation begins: the next one is distributed to full resolution.
    #[inline(never)]
    fn enter_rotation(&mut self, arena: &mut Arena, limit: u64) {
        if self.put - self.taken == self.distant {
            // `near` is empty: jumps to just before the first rotation that holds an event.
            let rotation = self.tick >> NEAR_BITS;
            let first = (1..FAR).find(|ahead| !self.far.is_empty((rotation + ahead) % FAR));
            let to = first.map_or(self.beyond_from, |ahead| rotation + ahead).min(self.beyond_from);
            let to = (to - 1).min((limit >> self.shift) >> NEAR_BITS);
            if to > rotation {
                self.tick = to << NEAR_BITS;
            }
        }
        let rotation = self.tick >> NEAR_BITS;
        self.near_end = (rotation + 2) << NEAR_BITS;
        if self.beyond_from < rotation + FAR {
            self.beyond_from = u64::MAX;
            for Later { tick, slot } in core::mem::take(&mut self.beyond) {
                self.distant -= 1;
                self.insert_distant(tick, slot);
            }
        }
        self.spread(arena, rotation + 1);
    }

    fn spread(&mut self, arena: &mut Arena, rotation: u64) {
        let List { first: mut piece, last } = self.far.empty(rotation % FAR);
        while piece != NIL {
            let (events, next) = self.far.piece(piece);
            self.distant -= events.len() as u64;
            for i in 0..events.len() {
                let events = self.far.piece(piece).0;
                let Listed { bucket, slot } = events[i];
                if let Some(soon) = events.get(i + SOON) {
                    prefetch::whole(arena.slot(soon.slot));
                }
                self.insert_near(arena, slot, (rotation << NEAR_BITS) + bucket as u64);
            }
            piece = if piece == last { NIL } else { next };
        }
    }

    /// Adjusts the width of a bucket to the mean gap of the last events.
    #[cold]
    #[inline(never)]
    fn retune(&mut self, arena: &mut Arena) {
        let now = self.tick << self.shift;
        let gap = now.saturating_sub(self.checked.time) / (self.taken - self.checked.taken);
        self.checked = Check { time: now, taken: self.taken };
        let wanted = (63 - (gap | 1).leading_zeros()).clamp(4, 30);
        if wanted.abs_diff(self.shift) < 2 {
            return;
        }
        let all = self.take_all(arena);
        self.shift = wanted;
        self.tick = now >> self.shift;
        self.near_end = ((self.tick >> NEAR_BITS) + 2) << NEAR_BITS;
        for slot in all {
            let pending = arena.slot(slot);
            let (time, event) = (pending.time, Event::of(pending));
            self.insert(arena, slot, time, event);
        }
    }

    /// Removes every pending slot, in an order in which those of one time are in order of insertion.
    pub(crate) fn take_all(&mut self, arena: &Arena) -> Vec<u32> {
        let all = self.slots(arena);
        self.beyond.clear();
        self.far.clear();
        self.occupied.fill(0);
        (self.put, self.distant, self.beyond_from) = (self.taken, 0, u64::MAX);
        all
    }

    /// Every pending slot, in no order.
    pub(crate) fn slots(&self, arena: &Arena) -> Vec<u32> {
        let mut all = Vec::with_capacity(self.len());
        all.extend(self.beyond.iter().map(|later| later.slot));
        let occupied = |index: usize| self.occupied[index / 64] >> (index % 64) & 1 != 0;
        let near = self.near.iter().enumerate().filter(|(index, _)| occupied(*index)).map(|(_, chain)| chain);
        all.extend(self.far.slots());
        for chain in near {
            let mut slot = chain[HEAD] & !TIED;
            while slot != NIL {
                all.push(slot);
                slot = arena.slot(slot).next;
            }
        }
        all
    }

    /// The time of the bucket at which the search is, for assertions.
    #[cfg(test)]
    pub(crate) fn now(&self) -> Time {
        Time(self.tick << self.shift)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
}

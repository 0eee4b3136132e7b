//! The event queue: a timing wheel whose buckets are about as wide as the mean gap between events, so that its cost
//! usually depends neither on the number of pending events nor on how far in the future they are. Whatever their times, an
//! insertion and a removal take at most time logarithmic in that number, on average over a run.
//!
//! Events are slots of the arena, chained through each other. Order is (time, hash, rank, insertion): the rank is
//! the number of the event's source, the hash is of the run, the time and that number. The order of a tie does not
//! depend on the order of insertion, favours no declaration, and differs from tie to tie. Events of the same time stay in order
//! of insertion in their bucket until the first of them is popped; hashes are computed only then, and only for these.
//!
//! The next two rotations of `NEAR` buckets have full resolution; each of `FAR` further rotations is an unsorted list, which is
//! distributed when its time comes; all later events are in one heap.
//!
//! A bucket is a list in order of time. It is *crowded* once an insertion passed `LONG` events, or a tie has more: in a burst
//! after a calm, for which buckets are too wide, or among events of one time. Events of crowded buckets are in one heap.

use crate::arena::{Arena, NIL};
use crate::event::Event;
use crate::keyed::{Heap, Keyed, count_step};
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
/// A check may move each pending event, so there is one pop at least for this many of them.
const MOVED: u64 = 4;
/// The most events of a bucket that an insertion passes, and of a tie that are sorted for each removal.
const LONG: usize = 64;

/// How many events ahead a packet is prefetched when a rotation is distributed.
const SOON: usize = 8;

/// The first and the last event of a chain. In `near` they are undefined while the bucket's bit is zero.
type Chain = [u32; 2];
const HEAD: usize = 0;
const TAIL: usize = 1;
/// In a chain's head: events of one time are in order of insertion, not sorted; or, if its tail is `NIL`, the bucket is
/// crowded, and the head is one of its events, or was.
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

/// A check of the bucket width.
struct Check {
    time: u64,
    /// Pops until then, and until the next one.
    taken: u64,
    next: u64,
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
    /// Events beyond `far`, by time.
    beyond: Heap,
    /// Events of crowded buckets, by time.
    crowd: Heap,
    /// The first events of `crowd` if they have one time, `due_at`: by hash.
    due: Heap,
    due_at: u64,
    /// Events that were put into `beyond` and `crowd` so far.
    numbered: u64,
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
            beyond: Heap::default(),
            crowd: Heap::default(),
            due: Heap::default(),
            due_at: 0,
            numbered: 0,
            put: 0,
            taken: 0,
            distant: 0,
            checked: Check { time: 0, taken: 0, next: RETUNE },
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
            self.insert_distant(time, slot);
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
        let Some(last) = arena.find(self.near[index][TAIL]) else {
            return self.insert_crowded(time, slot);
        };
        let last = last.time;
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
        for _ in 0..LONG {
            count_step();
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
        self.crowd(arena, index);
        self.insert_crowded(time, slot);
    }

    fn insert_crowded(&mut self, time: u64, slot: u32) {
        self.crowd.push(Keyed { key: time, rank: 0, slot, number: self.numbered });
        self.numbered += 1;
    }

    /// A bucket becomes crowded.
    #[cold]
    #[inline(never)]
    fn crowd(&mut self, arena: &Arena, index: usize) {
        let mut slot = self.near[index][HEAD] & !TIED;
        self.near[index] = [slot | TIED, NIL];
        while let Some(event) = arena.find(slot) {
            self.insert_crowded(event.time, slot);
            slot = event.next;
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

    /// Sorts the first events of a bucket, if they have the same time and are unsorted; returns the first, or nothing if
    /// they are too many.
    fn untie(&mut self, arena: &mut Arena, index: usize, rank: impl Fn(&Slot) -> u32) -> Option<u32> {
        let first = self.near[index][HEAD] & !TIED;
        let time = arena.slot(first).time;
        if self.untied == time {
            return Some(first);
        }
        let key = rng::drawn(self.ties, time);
        let mut slot = first;
        while slot != NIL && arena.slot(slot).time == time {
            let rank = rank(arena.slot(slot));
            if self.tied.len() == LONG {
                self.tied.clear();
                return None;
            }
            self.tied.push(Tied { hash: rng::drawn(key, rank as u64), rank, slot });
            slot = arena.slot(slot).next;
        }
        self.untied = time;
        // The sort is stable: events of one source stay in order of insertion.
        self.tied.sort_by_key(|tied| {
            count_step();
            (tied.hash, tied.rank)
        });
        let mut next = slot;
        if let Some(last) = self.tied.last().filter(|_| next == NIL) {
            self.near[index][TAIL] = last.slot;
        }
        for Tied { slot, .. } in self.tied.drain(..).rev() {
            arena.slot_mut(slot).next = next;
            next = slot;
        }
        Some(next)
    }

    fn insert_distant(&mut self, time: u64, slot: u32) {
        self.distant += 1;
        let tick = time >> self.shift;
        if (tick >> NEAR_BITS) - (self.tick >> NEAR_BITS) >= FAR {
            self.beyond.push(Keyed { key: time, rank: 0, slot, number: self.numbered });
            self.numbered += 1;
            return;
        }
        self.insert_far(tick, slot);
    }
    fn insert_far(&mut self, tick: u64, slot: u32) {
        self.far.push((tick >> NEAR_BITS) % FAR, (tick % NEAR) as u32, slot);
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
            if self.taken >= self.checked.next {
                self.retune(arena, self.tick << self.shift);
                continue;
            }
            self.tick = next_word;
            if self.tick.is_multiple_of(NEAR) {
                self.enter_rotation(arena, limit);
            }
        }
    }

    /// [`Wheel::pop`] from a bucket that holds events of one time, or is crowded.
    #[cold]
    #[inline(never)]
    fn pop_tied(
        &mut self,
        arena: &mut Arena,
        limit: u64,
        (index, skip): (usize, u32),
        rank: impl Fn(&Slot) -> u32,
    ) -> Option<Taken> {
        if self.near[index][TAIL] == NIL {
            return self.pop_crowded(arena, limit, (index, skip), rank);
        }
        let Some(slot) = self.untie(arena, index, &rank) else {
            self.crowd(arena, index);
            return self.pop_crowded(arena, limit, (index, skip), rank);
        };
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

    /// The slot of the first of several events of a crowded bucket at this time: of `first`, if that was popped already,
    /// those that are due, and those that were inserted since.
    fn pop_due(&mut self, arena: &Arena, time: u64, first: Option<Keyed>, rank: impl Fn(&Slot) -> u32) -> Option<u32> {
        self.due_at = time;
        let key = rng::drawn(self.ties, time);
        let mut more = first;
        while let Some(event) = more.or_else(|| self.crowd.pop_if(|key| key == time)) {
            let rank = rank(arena.slot(event.slot));
            self.due.push(Keyed { key: rng::drawn(key, rank as u64), rank, ..event });
            more = None;
        }
        self.due.pop().map(|event| event.slot)
    }

    /// [`Wheel::pop`] from a crowded bucket.
    fn pop_crowded(
        &mut self,
        arena: &mut Arena,
        limit: u64,
        (index, skip): (usize, u32),
        rank: impl Fn(&Slot) -> u32,
    ) -> Option<Taken> {
        let time = if self.due.is_empty() { self.crowd.first_key()? } else { self.due_at };
        if time > limit {
            return None;
        }
        let slot = match self.crowd.pop_if(|_| self.due.is_empty()) {
            Some(event) if self.crowd.first_key() != Some(time) => event.slot,
            first => self.pop_due(arena, time, first, rank)?,
        };
        let event = Event::of(arena.slot(slot));
        self.tick += skip as u64;
        let next = if self.due.is_empty() { self.crowd.first_key() } else { Some(time) };
        if next.is_none_or(|next| next >> self.shift != self.tick) {
            self.occupied[index / 64] &= !(1 << (index % 64));
        }
        self.taken += 1;
        if self.taken >= self.checked.next {
            // A bucket that is far too wide may hold millions of events.
            self.retune(arena, time);
        }
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
            let beyond = self.beyond.first_key().map_or(u64::MAX, |time| (time >> self.shift) >> NEAR_BITS);
            let to = first.map_or(beyond, |ahead| rotation + ahead).min(beyond);
            let to = (to - 1).min((limit >> self.shift) >> NEAR_BITS);
            if to > rotation {
                self.tick = to << NEAR_BITS;
            }
        }
        let rotation = self.tick >> NEAR_BITS;
        self.near_end = (rotation + 2) << NEAR_BITS;
        let (shift, end) = (self.shift, rotation + FAR);
        while let Some(event) = self.beyond.pop_if(|time| (time >> shift) >> NEAR_BITS < end) {
            self.insert_far(event.key >> self.shift, event.slot);
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
                count_step();
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
    fn retune(&mut self, arena: &mut Arena, now: u64) {
        let gap = now.saturating_sub(self.checked.time) / (self.taken - self.checked.taken);
        let next = self.taken + RETUNE.max(self.len() as u64 / MOVED);
        self.checked = Check { time: now, taken: self.taken, next };
        let wanted = (63 - (gap | 1).leading_zeros()).clamp(4, 30);
        if wanted.abs_diff(self.shift) < 2 {
            return;
        }
        let all = self.take_all(arena);
        self.shift = wanted;
        self.tick = now >> self.shift;
        self.near_end = ((self.tick >> NEAR_BITS) + 2) << NEAR_BITS;
        for slot in all {
            count_step();
            let pending = arena.slot(slot);
            let (time, event) = (pending.time, Event::of(pending));
            self.insert(arena, slot, time, event);
        }
    }

    /// Removes every pending slot, in an order in which those of one time are in order of insertion.
    pub(crate) fn take_all(&mut self, arena: &Arena) -> Vec<u32> {
        let all = self.slots(arena);
        self.far.clear();
        for heap in [&mut self.beyond, &mut self.crowd, &mut self.due] {
            heap.clear();
        }
        self.occupied.fill(0);
        (self.put, self.distant) = (self.taken, 0);
        all
    }

    /// Every pending slot; those of one time are in order of insertion.
    pub(crate) fn slots(&self, arena: &Arena) -> Vec<u32> {
        let heaps = [&self.beyond, &self.crowd, &self.due];
        let mut in_heaps: Vec<&Keyed> = heaps.into_iter().flat_map(Heap::iter).collect();
        in_heaps.sort_unstable_by_key(|event| event.number);
        let mut all = Vec::with_capacity(self.len());
        all.extend(in_heaps.iter().map(|event| event.slot));
        all.extend(self.far.slots());
        for (word, mut bits) in self.occupied.into_iter().enumerate() {
            while bits != 0 {
                let [head, tail] = self.near[word * 64 + bits.trailing_zeros() as usize];
                bits &= bits - 1;
                let mut slot = if tail == NIL { NIL } else { head & !TIED };
                while slot != NIL {
                    all.push(slot);
                    slot = arena.slot(slot).next;
                }
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
mod tests;

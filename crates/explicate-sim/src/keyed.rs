//! Heaps of events, for those of which too many are close together or too far ahead for buckets: an insertion and a
//! removal take time logarithmic in their number, whatever the keys.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

/// An event with what it is ordered by: key, rank, number.
#[derive(Clone, Copy)]
pub(crate) struct Keyed {
    /// A time, or a hash.
    pub(crate) key: u64,
    pub(crate) rank: u32,
    pub(crate) slot: u32,
    /// Counts insertions: events that are equal otherwise stay in that order.
    pub(crate) number: u64,
}

impl Ord for Keyed {
    fn cmp(&self, other: &Keyed) -> Ordering {
        count_step();
        (self.key, self.rank, self.number).cmp(&(other.key, other.rank, other.number)).reverse()
    }
}
impl PartialOrd for Keyed {
    fn partial_cmp(&self, other: &Keyed) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl PartialEq for Keyed {
    fn eq(&self, other: &Keyed) -> bool {
        self.cmp(other).is_eq()
    }
}
impl Eq for Keyed {}

/// Events, the first of which is at hand.
#[derive(Default)]
pub(crate) struct Heap(BinaryHeap<Keyed>);

impl Heap {
    pub(crate) fn push(&mut self, event: Keyed) {
        self.0.push(event);
    }
    /// The least key.
    pub(crate) fn first_key(&self) -> Option<u64> {
        self.0.peek().map(|first| first.key)
    }
    pub(crate) fn pop(&mut self) -> Option<Keyed> {
        self.0.pop()
    }
    /// Pops the first event if its key suits.
    pub(crate) fn pop_if(&mut self, suits: impl Fn(u64) -> bool) -> Option<Keyed> {
        self.0.peek_mut().filter(|first| suits(first.key)).map(PeekMut::pop)
    }
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
    /// All events, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Keyed> {
        self.0.iter()
    }
}

#[cfg(test)]
thread_local! {
    /// Comparisons and moves of events on this thread.
    pub(crate) static STEPS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// Counts a comparison or a move of an event, in tests.
#[inline(always)]
pub(crate) fn count_step() {
    #[cfg(test)]
    STEPS.set(STEPS.get() + 1);
}

//! The packets of a port that catches up, in order: those in the port, with the first in service, then predicted
//! packets that have not arrived. One ring holds both, so an arrival moves no packet. Its capacity is a power of two.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::transit::{Passed, Waiting};
use crate::units::Time;

const NOTHING: Waiting =
    Waiting { arrives: Time::NEVER, departs: Time::NEVER, handle: u32::MAX, bytes: 0, lost: false };

/// First in, first out. Its three counters increase without bound and wrap.
#[derive(Default)]
pub(in crate::port) struct Ring {
    slots: Box<[Waiting]>,
    /// The first packet that has not arrived.
    ahead: u32,
    head: u32,
    end: u32,
}

impl Ring {
    /// Packets in the port.
    #[inline]
    pub(in crate::port) fn len(&self) -> u32 {
        self.ahead.wrapping_sub(self.head)
    }
    /// Packets that have not arrived.
    #[inline]
    pub(in crate::port) fn len_ahead(&self) -> u32 {
        self.end.wrapping_sub(self.ahead)
    }
    /// Whether it holds no packet, neither in the port nor predicted.
    #[inline]
    pub(in crate::port) fn is_empty(&self) -> bool {
        self.end == self.head
    }
    /// Whether one more packet needs more capacity.
    #[inline]
    pub(in crate::port) fn is_full(&self) -> bool {
        self.end.wrapping_sub(self.head) as usize == self.slots.len()
    }
    /// True for every sixteenth packet added.
    #[inline]
    pub(in crate::port) fn is_at_turn(&self) -> bool {
        self.end.is_multiple_of(16)
    }
    /// Whether less than half is in use.
    pub(in crate::port) fn is_roomy(&self) -> bool {
        (self.end.wrapping_sub(self.head) as usize) < self.slots.len() / 2
    }
    /// Index of a counter's slot.
    #[inline(always)]
    fn place(&self, counter: u32) -> usize {
        (counter & (self.slots.len() as u32).wrapping_sub(1)) as usize
    }
    #[inline]
    fn at(&self, counter: u32) -> &Waiting {
        &self.slots[self.place(counter)]
    }
    /// Adds a packet that has not arrived.
    #[inline]
    pub(in crate::port) fn push(&mut self, packet: Waiting) {
        if self.is_full() {
            self.grow();
        }
        let place = self.place(self.end);
        self.slots[place] = packet;
        self.end = self.end.wrapping_add(1);
    }
    #[cold]
    pub(in crate::port) fn grow(&mut self) {
        let size = (2 * self.slots.len()).max(2);
        let mut larger = Vec::with_capacity(size);
        larger.extend((0..self.end.wrapping_sub(self.head)).map(|i| *self.at(self.head.wrapping_add(i))));
        larger.resize(size, NOTHING);
        self.slots = larger.into_boxed_slice();
        (self.head, self.ahead, self.end) = (0, self.len(), self.end.wrapping_sub(self.head));
    }
    /// The first predicted packet arrives.
    #[inline]
    pub(in crate::port) fn advance(&mut self) {
        self.ahead = self.ahead.wrapping_add(1);
    }
    /// Removes the packet in service. Call only while there is one.
    #[inline]
    pub(in crate::port) fn pop(&mut self) -> Waiting {
        let first = *self.at(self.head);
        self.head = self.head.wrapping_add(1);
        first
    }
    /// The packet in service. Call only while there is one.
    #[inline]
    pub(in crate::port) fn first(&self) -> &Waiting {
        self.at(self.head)
    }
    /// The first predicted packet. Call only while there is one.
    #[inline]
    pub(in crate::port) fn first_ahead(&self) -> &Waiting {
        self.at(self.ahead)
    }
    /// When the first predicted packet arrives.
    #[inline]
    pub(in crate::port) fn next_arrival(&self) -> Time {
        if self.ahead == self.end { Time::NEVER } else { self.first_ahead().arrives }
    }
    /// The contiguous predicted packets, and when the one after them arrives.
    #[inline]
    pub(in crate::port) fn side_by_side(&self) -> (&[Waiting], Time) {
        let first = self.place(self.ahead);
        let rest = self.slots.get(first..).unwrap_or(&[]);
        match rest.get(..self.len_ahead() as usize) {
            Some(all) => (all, Time::NEVER),
            None => (rest, self.slots[0].arrives),
        }
    }
    /// With an empty port: the first `n` predicted packets have arrived and left.
    #[inline]
    pub(in crate::port) fn skip(&mut self, count: u64) {
        self.ahead = self.ahead.wrapping_add(count as u32);
        self.head = self.ahead;
    }
    /// When the first packet leaves that has not left.
    #[inline]
    pub(in crate::port) fn next_departure(&self) -> Time {
        if self.is_empty() { Time::NEVER } else { self.first().departs }
    }
    /// Passes the packets in the port to `show` while it returns true.
    pub(in crate::port) fn show(&mut self, mut show: impl FnMut(&mut Waiting) -> bool) {
        for counter in 0..self.len() {
            let place = self.place(self.head.wrapping_add(counter));
            if !show(&mut self.slots[place]) {
                return;
            }
        }
    }
    /// With an empty port: removes the packets that have left by `until`, each before the next one arrives, and shows
    /// each. Returns their number and their bytes.
    #[inline(always)]
    pub(in crate::port) fn pop_transits(&mut self, until: Time, mut show: impl FnMut(&Waiting)) -> Passed {
        let (mut at, mut bytes) = (self.ahead, 0);
        while at != self.end {
            let first = self.at(at);
            let after = at.wrapping_add(1);
            if first.departs > until || after != self.end && self.at(after).arrives < first.departs {
                break;
            }
            show(first);
            bytes += first.bytes as u64;
            at = after;
        }
        let count = at.wrapping_sub(self.ahead);
        (self.head, self.ahead) = (at, at);
        Passed { packets: count as u64, bytes }
    }
    /// The packets in the port.
    pub(in crate::port) fn iter(&self) -> impl Iterator<Item = &Waiting> {
        (0..self.len()).map(|i| self.at(self.head.wrapping_add(i)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_in_first_out_while_growing() {
        let mut ring = Ring { head: u32::MAX - 7, ahead: u32::MAX - 7, end: u32::MAX - 7, ..Ring::default() };
        let (mut arrived, mut popped) = (0, 0);
        for handle in 0..100u32 {
            ring.push(Waiting { handle, ..NOTHING });
            if handle % 2 == 0 {
                assert_eq!(ring.first_ahead().handle, arrived);
                ring.advance();
                arrived += 1;
            }
            if handle % 3 == 0 {
                assert_eq!(ring.first().handle, popped);
                assert_eq!(ring.pop().handle, popped);
                popped += 1;
            }
            assert_eq!((ring.len(), ring.len_ahead()), (arrived - popped, handle + 1 - arrived));
        }
        assert_eq!(ring.iter().map(|w| w.handle).collect::<Vec<_>>(), (popped..arrived).collect::<Vec<_>>());
    }
}

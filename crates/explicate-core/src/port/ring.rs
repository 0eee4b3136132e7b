//! The packets that wait in a settled port: a ring whose capacity is a power of two.

use alloc::vec::Vec;

use crate::units::Time;

/// A packet whose departure is known.
#[derive(Clone, Copy)]
pub(super) struct Waiting {
    pub(super) arrives: Time,
    pub(super) departs: Time,
    pub(super) handle: u32,
    pub(super) bytes: u16,
    /// The channel will lose it.
    pub(super) lost: bool,
}

impl Waiting {
    /// No packet.
    pub(super) const NONE: Waiting =
        Waiting { arrives: Time::NEVER, departs: Time::NEVER, handle: u32::MAX, bytes: 0, lost: false };

    pub(super) fn is_some(&self) -> bool {
        self.handle != u32::MAX
    }
}

/// First in, first out.
#[derive(Default)]
pub(super) struct Ring {
    slots: Vec<Waiting>,
    head: u32,
    len: u32,
}

impl Ring {
    pub(super) fn len(&self) -> usize {
        self.len as usize
    }
    #[inline]
    fn slot(&self, offset: u32) -> usize {
        (self.head.wrapping_add(offset)) as usize & (self.slots.len() - 1)
    }
    #[inline]
    pub(super) fn push(&mut self, packet: Waiting) {
        if self.len as usize == self.slots.len() {
            self.grow();
        }
        let at = self.slot(self.len);
        self.slots[at] = packet;
        self.len += 1;
    }
    #[cold]
    fn grow(&mut self) {
        let size = (2 * self.slots.len()).max(4);
        let mut larger = Vec::with_capacity(size);
        larger.extend(self.iter().copied());
        larger.resize(size, Waiting::NONE);
        self.slots = larger;
        self.head = 0;
    }
    /// Takes out the first. Call only while there is one.
    #[inline]
    pub(super) fn pop(&mut self) -> Waiting {
        let at = self.slot(0);
        self.head = self.head.wrapping_add(1);
        self.len -= 1;
        self.slots[at]
    }
    /// The first. Call only while there is one.
    #[inline]
    pub(super) fn first(&self) -> &Waiting {
        &self.slots[self.slot(0)]
    }
    pub(super) fn iter(&self) -> impl Iterator<Item = &Waiting> {
        (0..self.len).map(|i| &self.slots[self.slot(i)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_in_first_out_while_growing() {
        let mut ring = Ring::default();
        let mut next = 0;
        for handle in 0..100u32 {
            ring.push(Waiting { handle, ..Waiting::NONE });
            if handle % 3 == 0 {
                assert_eq!(ring.pop().handle, next);
                next += 1;
            }
        }
        assert_eq!(ring.iter().map(|w| w.handle).collect::<Vec<_>>(), (next..100).collect::<Vec<_>>());
    }
}

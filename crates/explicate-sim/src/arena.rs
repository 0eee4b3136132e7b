//! Packets in memory: 64 bytes each behind 32-bit handles, without an allocation per packet.

use explicate_core::port::{Note, Slot, Store};
use explicate_core::units::Time;
use explicate_core::wire::{Packet, SackRanges};

use crate::packet_log::PacketLog;
use crate::prefetch;

/// No handle.
pub(crate) const NIL: u32 = u32::MAX;

static NO_RANGES: SackRanges = SackRanges::NONE;

/// All packets of a run, and the pending timers, which have the same form in the event queue.
#[derive(Default)]
pub(crate) struct Arena {
    slots: Vec<Slot>,
    sacks: Sacks,
    free: u32,
    live: usize,
    /// A packet trace is running.
    pub(crate) log: Option<Box<PacketLog>>,
}

impl Arena {
    pub(crate) fn new() -> Arena {
        Arena { free: NIL, ..Arena::default() }
    }
    /// Reserves capacity for further slots.
    pub(crate) fn reserve(&mut self, slots: usize) {
        self.slots.reserve(slots);
        prefetch::in_large_pages(self.slots.spare_capacity_mut());
    }
    /// Packets that the allocator moved to a larger block have lost their huge pages.
    #[cold]
    fn grow(&mut self) {
        self.reserve(1);
        prefetch::into_large_pages(&self.slots);
    }
    /// A slot with undefined contents.
    #[inline]
    pub(crate) fn take(&mut self) -> u32 {
        self.live += 1;
        if self.free != NIL {
            let handle = self.free;
            self.free = self.slots[handle as usize].next;
            return handle;
        }
        if self.slots.len() == self.slots.capacity() {
            self.grow();
        }
        self.slots.push(Slot::of(Packet::EMPTY));
        self.slots.len() as u32 - 1
    }
    #[inline]
    pub(crate) fn give(&mut self, handle: u32) {
        self.live -= 1;
        if self.get(handle).transport.sack_count() != 0 {
            self.sacks.forget(handle);
        }
        self.slots[handle as usize].next = self.free;
        self.free = handle;
    }
    /// Takes the SACK ranges behind a packet's header.
    #[inline(never)]
    pub(crate) fn take_sack(&mut self, handle: u32) -> SackRanges {
        let ranges = *self.sack(handle);
        self.sacks.forget(handle);
        ranges
    }
    /// Slots in use.
    pub(crate) fn live(&self) -> usize {
        self.live
    }
    #[inline]
    pub(crate) fn get(&self, handle: u32) -> &Packet {
        &self.slots[handle as usize].packet
    }
    #[inline]
    pub(crate) fn get_mut(&mut self, handle: u32) -> &mut Packet {
        &mut self.slots[handle as usize].packet
    }
    /// The packet with its event.
    #[inline]
    pub(crate) fn slot(&self, handle: u32) -> &Slot {
        &self.slots[handle as usize]
    }
    #[inline]
    pub(crate) fn slot_mut(&mut self, handle: u32) -> &mut Slot {
        &mut self.slots[handle as usize]
    }
    /// The slot of this number, if there is one.
    #[inline]
    pub(crate) fn find(&self, handle: u32) -> Option<&Slot> {
        self.slots.get(handle as usize)
    }
    /// The SACK ranges behind a packet's header.
    #[inline]
    pub(crate) fn sack(&self, handle: u32) -> &SackRanges {
        if self.get(handle).transport.sack_count() == 0 { &NO_RANGES } else { self.sacks.get(handle) }
    }
    #[inline]
    pub(crate) fn set_sack(&mut self, handle: u32, ranges: &SackRanges) {
        if !ranges.as_slice().is_empty() {
            self.sacks.set(handle, ranges);
        }
    }
}

/// SACK ranges of packets by handle, with capacity for the maximum number so far, which is small.
#[derive(Default)]
struct Sacks {
    /// For each handle up to the highest with ranges: one more than their index, or zero.
    places: Vec<u32>,
    ranges: Vec<SackRanges>,
    /// Free indices.
    free: Vec<u32>,
}

impl Sacks {
    fn get(&self, handle: u32) -> &SackRanges {
        let place = self.places.get(handle as usize).map_or(0, |place| *place);
        self.ranges.get((place as usize).wrapping_sub(1)).unwrap_or(&NO_RANGES)
    }
    #[inline(never)]
    fn set(&mut self, handle: u32, ranges: &SackRanges) {
        if self.places.len() <= handle as usize {
            self.places.resize(handle as usize + 1, 0);
        }
        let place = &mut self.places[handle as usize];
        if *place == 0 {
            *place = self.free.pop().unwrap_or_else(|| {
                self.ranges.push(SackRanges::NONE);
                self.ranges.len() as u32
            });
        }
        self.ranges[*place as usize - 1] = *ranges;
    }
    /// The packet of this handle was freed or replaced.
    #[inline(never)]
    fn forget(&mut self, handle: u32) {
        if let Some(place) = self.places.get_mut(handle as usize).filter(|place| **place != 0) {
            self.free.push(core::mem::take(place));
        }
    }
}

impl Store for Arena {
    #[inline]
    fn packet(&mut self, handle: u32) -> &mut Packet {
        self.get_mut(handle)
    }
    #[inline]
    fn slots(&mut self) -> Option<&mut [Slot]> {
        self.log.is_none().then_some(&mut self.slots)
    }
    #[inline]
    fn release(&mut self, handle: u32) {
        self.give(handle);
    }
    fn copy(&mut self, handle: u32) -> Option<u32> {
        let copy = self.take();
        *self.slot_mut(copy) = *self.slot(handle);
        let ranges = *self.sack(handle);
        self.set_sack(copy, &ranges);
        Some(copy)
    }
    #[inline]
    fn note(&mut self, at: Time, port: u32, handle: u32, what: Note) {
        if self.log.is_some() {
            self.note_slowly(at, port, handle, what);
        }
    }
}

impl Arena {
    #[cold]
    pub(crate) fn log_delivery(&mut self, at: Time, handle: u32) {
        let packet = &self.slots[handle as usize].packet;
        if let Some(log) = &mut self.log {
            log.delivered(at, packet);
        }
    }
    #[cold]
    fn note_slowly(&mut self, at: Time, port: u32, handle: u32, what: Note) {
        let sack = *self.sack(handle);
        let packet = &self.slots[handle as usize].packet;
        if let Some(log) = &mut self.log {
            log.port(at, port, packet, &sack, what);
        }
    }
}

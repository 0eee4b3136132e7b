//! Frames in memory, by handle: where the core's ports find packets.

use explicate_core::port::Store;
use explicate_core::wire::{Packet, SackRanges};

use super::frame::{Kind, Lifted, lower};

/// A frame.
struct Slot {
    bytes: Vec<u8>,
    packet: Packet,
    sack: SackRanges,
    kind: Kind,
}

/// Frames, at most so many: a flood finds no more room.
pub struct Pool {
    slots: Vec<Slot>,
    free: Vec<u32>,
    most: usize,
}

impl Pool {
    /// A pool for at most so many frames.
    pub fn new(most: usize) -> Pool {
        Pool { slots: Vec::new(), free: Vec::new(), most }
    }
    /// Takes a frame in; `None` if there is no room.
    pub fn take(&mut self, bytes: &[u8], lifted: &Lifted) -> Option<u32> {
        let handle = match self.free.pop() {
            Some(handle) => handle,
            None if self.slots.len() < self.most => {
                let (packet, sack) = (Packet::EMPTY, SackRanges::NONE);
                self.slots.push(Slot { bytes: Vec::new(), packet, sack, kind: Kind::Alien });
                self.slots.len() as u32 - 1
            }
            None => return None,
        };
        let slot = &mut self.slots[handle as usize];
        slot.bytes.clear();
        slot.bytes.extend_from_slice(bytes);
        (slot.packet, slot.sack, slot.kind) = (lifted.packet, lifted.sack, lifted.kind);
        Some(handle)
    }
    /// The bytes of a frame, with what has changed in its packet.
    pub fn finish(&mut self, handle: u32) {
        let slot = &mut self.slots[handle as usize];
        lower(&mut slot.bytes, &slot.packet, &slot.sack, slot.kind);
    }
    /// The bytes of a frame.
    pub fn bytes(&self, handle: u32) -> &[u8] {
        &self.slots[handle as usize].bytes
    }
    /// The bytes of a frame as they came, its packet and what it is.
    pub fn parts(&mut self, handle: u32) -> (&[u8], &mut Packet, Kind) {
        let Slot { bytes, packet, kind, .. } = &mut self.slots[handle as usize];
        (bytes, packet, *kind)
    }
    /// Frames that are held.
    pub fn live(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}

impl Store for Pool {
    fn packet(&mut self, handle: u32) -> &mut Packet {
        &mut self.slots[handle as usize].packet
    }
    fn release(&mut self, handle: u32) {
        self.free.push(handle);
    }
    fn copy(&mut self, handle: u32) -> Option<u32> {
        let Slot { bytes, packet, sack, kind } = &self.slots[handle as usize];
        let (bytes, lifted) = (bytes.clone(), Lifted { packet: *packet, sack: *sack, kind: *kind, odd: None });
        self.take(&bytes, &lifted)
    }
}

//! Frames in memory, by handle: where the core's ports find packets.

use explicate_core::port::Store;
use explicate_core::wire::Packet;

use super::frame::{Lifted, lift, lower};

/// A frame.
struct Slot {
    bytes: Vec<u8>,
    lifted: Lifted,
}

impl Slot {
    fn empty() -> Slot {
        Slot { bytes: Vec::new(), lifted: lift(&[]) }
    }
}

/// Most bytes that a free slot keeps: a frame as long as any wire's. What offloads put together is rare.
const MOST_KEPT: usize = 1 << 14;

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
    /// A place for a frame; `None` if there is no room.
    pub fn blank(&mut self) -> Option<u32> {
        self.free.pop().or_else(|| {
            if self.slots.len() == self.most {
                return None;
            }
            self.slots.push(Slot::empty());
            Some(self.slots.len() as u32 - 1)
        })
    }
    /// Where the bytes of a frame go that has a place; [read](Self::read) it then.
    pub fn buffer(&mut self, handle: u32) -> &mut Vec<u8> {
        &mut self.slots[handle as usize].bytes
    }
    /// Reads a frame in its place.
    pub fn read(&mut self, handle: u32) -> &mut Lifted {
        let Slot { bytes, lifted } = &mut self.slots[handle as usize];
        *lifted = lift(bytes);
        lifted
    }
    /// Takes a frame in; `None` if there is no room.
    pub fn take(&mut self, bytes: &[u8]) -> Option<u32> {
        let handle = self.blank()?;
        let to = self.buffer(handle);
        to.clear();
        to.extend_from_slice(bytes);
        self.read(handle);
        Some(handle)
    }
    /// The bytes of a frame and what was read there.
    pub fn frame(&mut self, handle: u32) -> (&[u8], &mut Lifted) {
        let Slot { bytes, lifted } = &mut self.slots[handle as usize];
        (bytes, lifted)
    }
    /// Writes what has changed in its packet into a frame.
    pub fn finish(&mut self, handle: u32) {
        let Slot { bytes, lifted } = &mut self.slots[handle as usize];
        lower(bytes, lifted);
    }
    /// The bytes of a frame.
    pub fn bytes(&self, handle: u32) -> &[u8] {
        &self.slots[handle as usize].bytes
    }
    /// Frames that are held.
    pub fn live(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}

impl Store for Pool {
    fn packet(&mut self, handle: u32) -> &mut Packet {
        &mut self.slots[handle as usize].lifted.packet
    }
    fn release(&mut self, handle: u32) {
        let bytes = &mut self.slots[handle as usize].bytes;
        if bytes.capacity() > MOST_KEPT {
            *bytes = Vec::new();
        }
        self.free.push(handle);
    }
    fn copy(&mut self, handle: u32) -> Option<u32> {
        let copy = self.blank()?;
        let mut slot = std::mem::replace(&mut self.slots[copy as usize], Slot::empty());
        slot.bytes.clone_from(&self.slots[handle as usize].bytes);
        slot.lifted = self.slots[handle as usize].lifted;
        self.slots[copy as usize] = slot;
        Some(copy)
    }
}

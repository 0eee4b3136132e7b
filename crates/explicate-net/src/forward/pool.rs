//! Frames in memory by handle, the store of the core's ports.

use explicate_core::port::Store;
use explicate_core::wire::Packet;

use super::frame::{Parsed, emit, parse};

/// A frame.
struct Slot {
    bytes: Vec<u8>,
    parsed: Parsed,
}

impl Slot {
    fn empty() -> Slot {
        Slot { bytes: Vec::new(), parsed: parse(&[]) }
    }
}

/// Maximum number of bytes that a free slot keeps: the longest frame of usual links. Longer ones, merged by offloads,
/// are rare.
const MOST_KEPT: usize = 1 << 14;

/// A bounded pool of frames.
pub struct Pool {
    slots: Vec<Slot>,
    free: Vec<u32>,
    most: usize,
}

impl Pool {
    /// A pool for at most this number of frames.
    pub fn new(most: usize) -> Pool {
        Pool { slots: Vec::new(), free: Vec::new(), most }
    }
    /// A free slot; `None` if the pool is full.
    pub fn blank(&mut self) -> Option<u32> {
        self.free.pop().or_else(|| {
            if self.slots.len() == self.most {
                return None;
            }
            self.slots.push(Slot::empty());
            Some(self.slots.len() as u32 - 1)
        })
    }
    /// The buffer of a slot; call [`read`](Self::read) after writing a frame into it.
    pub fn buffer(&mut self, handle: u32) -> &mut Vec<u8> {
        &mut self.slots[handle as usize].bytes
    }
    /// Parses the frame in a slot.
    pub fn read(&mut self, handle: u32) -> &mut Parsed {
        let Slot { bytes, parsed } = &mut self.slots[handle as usize];
        *parsed = parse(bytes);
        parsed
    }
    /// Copies a frame into a slot and parses it; `None` if the pool is full.
    pub fn take(&mut self, bytes: &[u8]) -> Option<u32> {
        let handle = self.blank()?;
        let to = self.buffer(handle);
        to.clear();
        to.extend_from_slice(bytes);
        self.read(handle);
        Some(handle)
    }
    /// The bytes of a frame and its parsed form.
    pub fn frame(&mut self, handle: u32) -> (&[u8], &mut Parsed) {
        let Slot { bytes, parsed } = &mut self.slots[handle as usize];
        (bytes, parsed)
    }
    /// The bytes of a frame, to be changed, and its parsed form.
    pub fn frame_mut(&mut self, handle: u32) -> (&mut [u8], &Parsed) {
        let Slot { bytes, parsed } = &mut self.slots[handle as usize];
        (bytes, parsed)
    }
    /// Writes the changes of a packet into its frame.
    pub fn finish(&mut self, handle: u32) {
        let Slot { bytes, parsed } = &mut self.slots[handle as usize];
        emit(bytes, parsed);
    }
    /// The bytes of a frame.
    pub fn bytes(&self, handle: u32) -> &[u8] {
        &self.slots[handle as usize].bytes
    }
    /// Slots in use.
    pub fn live(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}

impl Store for Pool {
    fn packet(&mut self, handle: u32) -> &mut Packet {
        &mut self.slots[handle as usize].parsed.packet
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
        slot.parsed = self.slots[handle as usize].parsed;
        self.slots[copy as usize] = slot;
        Some(copy)
    }
}

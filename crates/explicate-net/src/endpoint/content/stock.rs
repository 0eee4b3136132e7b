//! Reassembly of received data by segment number, and its delivery in order.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::store::{Offer, Part};
use crate::endpoint::message::Verdict;

/// In-order bytes that are written at a time.
const CHUNK: usize = 1 << 16;

/// A file being received: written in order, under a temporary name until it is verified.
struct Arriving {
    /// `None` once it has ended.
    part: Option<Part>,
    path: PathBuf,
    size: u64,
    /// Bytes in order, including those of earlier transfers.
    taken: u64,
    /// In-order bytes not yet passed to the disk.
    buffer: Vec<u8>,
    /// Whether everything was passed to the disk.
    finishing: bool,
}

/// Memory of a waiting segment of this length, bytes: the allocator's share, in steps of at least 16 and 32, and its
/// place in the map, whose nodes are at least half full.
fn memory_of(length: usize) -> usize {
    const PLACE: usize = 64;
    (length + 8).next_multiple_of(16).max(32) + PLACE
}

/// The destination of a flow's payload.
pub struct Stock {
    arriving: Option<Arriving>,
    /// The next segment in order.
    next: u32,
    /// Later segments, if they are kept, and the memory that they take.
    beyond: BTreeMap<u32, Vec<u8>>,
    kept: usize,
    /// Payload of full segments, and number of the last, once known.
    full: Option<usize>,
    last: Option<u32>,
    verdict: Option<Verdict>,
}

impl Stock {
    /// A destination that stores nothing.
    pub fn nothing() -> Stock {
        let (beyond, arriving) = Default::default();
        Stock { arriving, next: 0, beyond, kept: 0, full: None, last: None, verdict: None }
    }
    /// Writes a file into a folder; its first segment continues the existing part.
    pub fn file(part: Part, folder: &Path, offer: &Offer) -> Stock {
        let (path, taken) = (folder.join(&offer.name), part.held());
        let arriving =
            Arriving { part: Some(part), path, size: offer.size, taken, buffer: Vec::new(), finishing: false };
        let mut stock = Stock::nothing();
        stock.arriving = Some(arriving);
        stock.hand_on();
        stock
    }
    /// Whether a segment is consistent with earlier ones; otherwise it does not belong to this flow.
    pub fn fits(&self, segment: u32, length: usize, last: bool) -> bool {
        let whole = match (self.full, last) {
            (Some(full), false) => length == full,
            (Some(full), true) => length <= full,
            (None, _) => true,
        };
        let within = match self.last {
            Some(end) if last => segment == end,
            Some(end) => segment < end,
            None => !last || self.beyond.last_key_value().is_none_or(|(highest, _)| *highest < segment),
        };
        whole && within && length > 0
    }
    /// Bytes of memory that a segment would take if it arrives out of order.
    pub fn would_keep(&self, segment: u32, length: usize) -> usize {
        let keeps = self.arriving.is_some() && segment > self.next && !self.beyond.contains_key(&segment);
        if keeps { memory_of(length) } else { 0 }
    }
    /// Takes a segment that [`fits`](Stock::fits).
    pub fn take(&mut self, segment: u32, payload: &[u8], last: bool) {
        if last {
            self.last = Some(segment);
        } else {
            self.full = Some(payload.len());
        }
        if self.arriving.is_none() || segment < self.next {
            return;
        }
        if segment > self.next {
            let before = self.beyond.insert(segment, payload.to_vec()).map_or(0, |old| memory_of(old.len()));
            self.kept = self.kept + memory_of(payload.len()) - before;
            return;
        }
        self.append(payload);
        self.next += 1;
        while let Some(payload) = self.beyond.remove(&self.next) {
            self.kept -= memory_of(payload.len());
            self.append(&payload);
            self.next += 1;
        }
        self.hand_on();
    }
    fn append(&mut self, payload: &[u8]) {
        let Some(arriving) = self.arriving.as_mut().filter(|_| self.verdict.is_none()) else { return };
        let room = arriving.size.saturating_sub(arriving.taken);
        let payload = &payload[..payload.len().min(room as usize)];
        if arriving.buffer.capacity() == 0 {
            // Reserve a whole chunk, to avoid copies while it grows.
            arriving.buffer.reserve_exact((CHUNK + payload.len()).min(room as usize));
        }
        arriving.buffer.extend_from_slice(payload);
        arriving.taken += payload.len() as u64;
    }
    /// Passes in-order data to the disk, if that is a chunk or the rest. Returns whether there is room for more.
    fn hand_on(&mut self) -> bool {
        let Some(arriving) = &mut self.arriving else { return true };
        let enough = arriving.buffer.len() >= CHUNK || arriving.is_whole();
        !enough || arriving.flush()
    }
    /// Passes all in-order data to the disk, so that they survive the end of this process. Returns false if the disk
    /// is too slow.
    pub fn flush(&mut self) -> bool {
        self.arriving.as_mut().is_none_or(Arriving::flush)
    }
    /// Whether there is room for a segment, which depends on the speed of the disk.
    pub fn has_room(&mut self) -> bool {
        self.hand_on()
    }
    /// Bytes of memory of out-of-order and unwritten data.
    pub fn waiting(&self) -> usize {
        let unwritten = self.arriving.as_ref().map_or(0, |arriving| arriving.buffer.len());
        self.kept + unwritten.saturating_sub(CHUNK)
    }
    /// The name of the file, if there is one.
    pub fn path(&self) -> Option<&Path> {
        self.arriving.as_ref().map(|a| a.path.as_path())
    }
    /// The serial number of its part in [`Store::poll`](super::store::Store::poll), while it has one.
    pub fn serial(&self) -> Option<u64> {
        self.arriving.as_ref()?.part.as_ref().map(Part::serial)
    }
    /// The verdict as far as it is known; ends the part if it is complete.
    pub fn conclude(&mut self) -> Verdict {
        match (&self.arriving, self.verdict) {
            (_, Some(verdict)) => verdict,
            (Some(arriving), None) if arriving.taken < arriving.size => Verdict::Missing,
            (Some(_), None) => Verdict::Checking,
            (None, None) => {
                self.verdict = Some(Verdict::Same);
                Verdict::Same
            }
        }
    }
    /// Sets the verdict of the disk.
    pub fn catch_up(&mut self, verdict: Verdict) {
        self.verdict = Some(verdict);
        if let Some(arriving) = &mut self.arriving {
            arriving.part = None;
            arriving.buffer = Vec::new();
        }
        self.beyond.clear();
        self.kept = 0;
    }
    /// Its verdict.
    pub fn verdict(&self) -> Option<Verdict> {
        self.verdict
    }
    /// Its verdict, if that is a final failure.
    pub fn failure(&self) -> Option<Verdict> {
        self.verdict.filter(|verdict| *verdict != Verdict::Same)
    }
    /// Whether it is a file.
    pub fn is_file(&self) -> bool {
        self.arriving.is_some()
    }
}

impl Arriving {
    fn is_whole(&self) -> bool {
        self.taken == self.size
    }
    /// Passes all in-order data to the disk; false if it is too slow.
    fn flush(&mut self) -> bool {
        let Some(part) = &self.part else { return true };
        if !self.buffer.is_empty() {
            let bytes = std::mem::take(&mut self.buffer);
            if let Err(bytes) = part.write(bytes) {
                self.buffer = bytes;
                return false;
            }
        }
        if self.is_whole() && !self.finishing {
            self.finishing = true;
            part.finish();
        }
        true
    }
}

impl Drop for Stock {
    fn drop(&mut self) {
        let Some(arriving) = &mut self.arriving else { return };
        if let Some(part) = arriving.part.as_ref().filter(|_| !arriving.buffer.is_empty()) {
            part.write_last(std::mem::take(&mut arriving.buffer));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_that_do_not_fit() {
        let mut stock = Stock::nothing();
        stock.take(0, &[0; 100], false);
        assert!(!stock.fits(1, 99, false) && !stock.fits(1, 101, true) && !stock.fits(1, 0, true));
        stock.take(5, &[0; 10], true);
        assert!(!stock.fits(6, 100, false) && !stock.fits(4, 10, true) && stock.fits(4, 100, false));
    }
}

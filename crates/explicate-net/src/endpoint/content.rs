//! What is sent, and where it goes: bytes by segment number.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::hello::SHA;
use super::message::{DIGEST, Verdict};

/// What a flow sends.
pub enum Supply {
    /// Bytes that nobody wants.
    Filler,
    /// A file.
    File {
        /// It.
        file: File,
        /// Its length when it was read first, bytes.
        size: u64,
        /// Its SHA-256.
        digest: [u8; SHA],
        /// Its permissions.
        mode: u32,
    },
}

fn start_of(hash: Sha256) -> [u8; DIGEST] {
    let mut digest = [0; DIGEST];
    digest.copy_from_slice(&hash.finalize()[..DIGEST]);
    digest
}

impl Supply {
    /// Opens a file, and reads it once for its digest.
    pub fn open(path: &Path) -> io::Result<Supply> {
        let mut file = File::open(path)?;
        let facts = file.metadata()?;
        if !facts.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        let (mut hash, mut size, mut buffer) = (Sha256::new(), 0, vec![0; 1 << 16]);
        loop {
            match file.read(&mut buffer)? {
                0 => {
                    let (digest, mode) = (hash.finalize().into(), facts.mode() & 0o777);
                    return Ok(Supply::File { file, size, digest, mode });
                }
                n => {
                    hash.update(&buffer[..n]);
                    size += n as u64;
                }
            }
        }
    }
    /// Writes the payload of a segment, where full ones have `full` bytes and the first begins at byte `from`, into `out`.
    pub fn fill(&self, from: u64, segment: u32, full: u16, out: &mut [u8]) -> io::Result<()> {
        match self {
            Supply::Filler => out.fill(segment as u8),
            Supply::File { file, size, .. } => {
                let at = from + segment as u64 * full as u64;
                let length = (size.saturating_sub(at)).min(out.len() as u64) as usize;
                file.read_exact_at(&mut out[..length], at)?;
                out[length..].fill(0);
            }
        }
        Ok(())
    }
    /// What the other end is to compare; zeros if nothing.
    pub fn digest(&self) -> [u8; DIGEST] {
        match self {
            Supply::Filler => [0; DIGEST],
            Supply::File { digest, .. } => *digest.first_chunk().unwrap_or(&[0; DIGEST]),
        }
    }
}

/// A file that arrives: written in order, under another name until it is known to be whole.
struct Arriving {
    file: File,
    part: PathBuf,
    path: PathBuf,
    hash: Sha256,
    size: u64,
    written: u64,
}

/// Bytes of memory that a segment of so many bytes takes while it waits: the allocator's share, in steps of 16 and 32 at least, and its
/// place in the map, whose nodes are half full at worst.
fn memory_of(length: usize) -> usize {
    const PLACE: usize = 64;
    (length + 8).next_multiple_of(16).max(32) + PLACE
}

/// Where the payload of a flow goes.
pub struct Stock {
    arriving: Option<Arriving>,
    /// The next segment in order.
    next: u32,
    /// Segments beyond it, if they are kept, and the memory that they take.
    beyond: BTreeMap<u32, Vec<u8>>,
    kept: usize,
    /// Payload of full segments, and number of the last, as they show themselves.
    full: Option<usize>,
    last: Option<u32>,
    verdict: Option<Verdict>,
}

impl Stock {
    /// Keeps nothing.
    pub fn nothing() -> Stock {
        Stock { arriving: None, next: 0, beyond: BTreeMap::new(), kept: 0, full: None, last: None, verdict: None }
    }
    /// Writes a file into a folder; one of that name that is there already is not touched until this one is whole.
    pub fn file(folder: &Path, name: &str, size: u64, flow: u32) -> io::Result<Stock> {
        let part = folder.join(format!(".{name}.{flow:08x}.part"));
        let file = File::create(&part)?;
        let path = folder.join(name);
        let mut stock = Stock::nothing();
        stock.arriving = Some(Arriving { file, part, path, hash: Sha256::new(), size, written: 0 });
        Ok(stock)
    }
    /// Whether a segment fits what came before: otherwise it is not this flow's.
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
    /// Bytes of memory that a segment would take while it waits.
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
            self.kept += memory_of(payload.len()) - before;
            return;
        }
        self.write(payload);
        self.next += 1;
        while let Some(payload) = self.beyond.remove(&self.next) {
            self.kept -= memory_of(payload.len());
            self.write(&payload);
            self.next += 1;
        }
    }
    fn write(&mut self, payload: &[u8]) {
        // What could not be written once is lost, and said once.
        let Some(arriving) = self.arriving.as_mut().filter(|_| self.verdict.is_none()) else { return };
        let room = arriving.size.saturating_sub(arriving.written);
        let payload = &payload[..payload.len().min(room as usize)];
        arriving.hash.update(payload);
        arriving.written += payload.len() as u64;
        if let Err(error) = arriving.file.write_all(payload) {
            tracing::error!(path = %arriving.path.display(), %error, "cannot write");
            self.verdict = Some(Verdict::NotWritten);
        }
    }
    /// Bytes of memory that what waits for those before it takes.
    pub fn waiting(&self) -> usize {
        self.kept
    }
    /// The name of the file, if there is one.
    pub fn path(&self) -> Option<&Path> {
        self.arriving.as_ref().map(|a| a.path.as_path())
    }
    /// Compares what has arrived with the sender's digest, and if it is the same gives the file its name.
    pub fn conclude(&mut self, digest: [u8; DIGEST]) -> Verdict {
        if let Some(verdict) = self.verdict {
            return verdict;
        }
        let verdict = match &mut self.arriving {
            None => Verdict::Same,
            Some(a) if a.written < a.size => return Verdict::Missing,
            Some(a) if start_of(a.hash.clone()) != digest => Verdict::Differs,
            Some(a) => match a.file.sync_all().and_then(|()| fs::rename(&a.part, &a.path)) {
                Ok(()) => Verdict::Same,
                Err(error) => {
                    tracing::error!(path = %a.path.display(), %error, "cannot write");
                    Verdict::NotWritten
                }
            },
        };
        self.verdict = Some(verdict);
        verdict
    }
    /// What was said of it.
    pub fn verdict(&self) -> Option<Verdict> {
        self.verdict
    }
    /// Whether it is a file.
    pub fn is_file(&self) -> bool {
        self.arriving.is_some()
    }
}

impl Drop for Stock {
    fn drop(&mut self) {
        if let Some(arriving) = self.arriving.as_ref().filter(|_| self.verdict != Some(Verdict::Same)) {
            let _ = fs::remove_file(&arriving.part);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("explicate-content-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn segments_in_any_order_make_the_file() {
        let folder = scratch("order");
        let bytes: Vec<u8> = (0..1003u32).map(|i| (i * 7) as u8).collect();
        let source = folder.join("source");
        fs::write(&source, &bytes).unwrap();
        let supply = Supply::open(&source).unwrap();
        let mut stock = Stock::file(&folder, "copy", 1003, 1).unwrap();
        let mut order: Vec<u32> = (0..11).collect();
        order.swap(0, 9);
        order.swap(3, 10);
        order.push(4);
        for segment in order {
            let last = segment == 10;
            let mut payload = vec![0; if last { 3 } else { 100 }];
            supply.fill(0, segment, 100, &mut payload).unwrap();
            assert!(stock.fits(segment, payload.len(), last));
            stock.take(segment, &payload, last);
            assert_eq!(stock.waiting(), stock.beyond.values().map(|p| memory_of(p.len())).sum::<usize>());
            assert!(!folder.join("copy").exists());
        }
        assert_eq!(stock.conclude(supply.digest()), Verdict::Same);
        assert_eq!(fs::read(folder.join("copy")).unwrap(), bytes);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_is_not_whole_gets_no_name() {
        let folder = scratch("short");
        let mut stock = Stock::file(&folder, "copy", 200, 1).unwrap();
        stock.take(1, &[0; 100], true);
        assert_eq!(stock.conclude([0; DIGEST]), Verdict::Missing);
        stock.take(0, &[0; 100], false);
        assert_eq!(stock.conclude([0; DIGEST]), Verdict::Differs);
        drop(stock);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_cannot_be_written_is_tried_once() {
        let folder = scratch("full");
        std::os::unix::fs::symlink("/dev/full", folder.join(".copy.00000001.part")).unwrap();
        let mut stock = Stock::file(&folder, "copy", 300, 1).unwrap();
        for segment in 0..3 {
            stock.take(segment, &[0; 100], segment == 2);
        }
        assert_eq!(stock.arriving.as_ref().map(|a| a.written), Some(100), "and two that were not tried");
        assert_eq!(stock.conclude([0; DIGEST]), Verdict::NotWritten);
        drop(stock);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn segments_that_do_not_fit() {
        let mut stock = Stock::nothing();
        stock.take(0, &[0; 100], false);
        assert!(!stock.fits(1, 99, false) && !stock.fits(1, 101, true) && !stock.fits(1, 0, true));
        stock.take(5, &[0; 10], true);
        assert!(!stock.fits(6, 100, false) && !stock.fits(4, 10, true) && stock.fits(4, 100, false));
    }
}

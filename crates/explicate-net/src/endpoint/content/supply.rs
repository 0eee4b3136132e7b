//! The data that a flow sends, by segment number.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use crate::digest::Sha256;
use crate::endpoint::hello::SHA;
use crate::endpoint::message::DIGEST;
use crate::sys;

/// The data of a flow.
pub enum Supply {
    /// Filler data.
    Filler,
    /// A file.
    File {
        /// The open file.
        file: File,
        /// Its length when it was first read, bytes.
        size: u64,
        /// Its SHA-256 at that time.
        digest: [u8; SHA],
        /// Its permissions.
        mode: u32,
        /// Time of its last modification, seconds since 1970.
        modified: u64,
    },
}

impl Supply {
    /// Opens a file, and reads it once for its digest, unless the process is asked to stop.
    pub fn open(path: &Path) -> io::Result<Supply> {
        // A pipe without a writer would block.
        let mut file = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
        let facts = file.metadata()?;
        if !facts.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        let (mut hash, mut size, mut buffer) = (Sha256::default(), 0, vec![0; 1 << 16]);
        loop {
            if sys::stopped() {
                return Err(io::Error::other("interrupted"));
            }
            match file.read(&mut buffer)? {
                0 => break,
                n => {
                    hash.update(&buffer[..n]);
                    size += n as u64;
                }
            }
        }
        let (digest, mode, modified) = (hash.finish(), facts.mode() & 0o777, facts.mtime().max(0) as u64);
        Ok(Supply::File { file, size, digest, mode, modified })
    }
    /// Writes the payload of a segment into `out`, where full segments have `full` bytes and the first begins at byte
    /// `from`.
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
    /// The digest in requests for the verdict; zeros without a file.
    pub fn digest(&self) -> [u8; DIGEST] {
        match self {
            Supply::Filler => [0; DIGEST],
            Supply::File { digest, .. } => *digest.first_chunk().unwrap_or(&[0; DIGEST]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_counted_from_what_the_other_end_has() {
        let path = std::env::temp_dir().join(format!("explicate-supply-{}", std::process::id()));
        std::fs::write(&path, (0..250).collect::<Vec<u8>>()).unwrap();
        let supply = Supply::open(&path).unwrap();
        let mut out = [0; 100];
        supply.fill(30, 1, 100, &mut out).unwrap();
        assert_eq!((out[0], out[99]), (130, 229));
        supply.fill(30, 2, 100, &mut out[..20]).unwrap();
        assert_eq!((out[0], out[19]), (230, 249));
        std::fs::remove_file(path).unwrap();
    }
}

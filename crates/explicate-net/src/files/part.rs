//! A part of a file: written in order, read back and verified, and then given the file's name.
//!
//! [`write`](Part::write) and [`finish`](Part::finish) wait for the disk, so they run on threads that may wait.

use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use super::message::{Offer, Verdict};
use super::store::Claimed;
use crate::digest;
#[cfg(feature = "simulated")]
use crate::simulated::faults::{Fault, is_back};
use crate::sys;

/// A part that one transfer alone writes.
pub struct Part {
    /// Open and locked.
    pub(super) file: File,
    /// The folders of the part and of the complete file.
    pub(super) parts: Arc<File>,
    pub(super) folder: Arc<File>,
    pub(super) part: String,
    /// The file, with the permissions that it gets.
    pub(super) offer: Offer,
    pub(super) replace: bool,
    /// Bytes of earlier transfers.
    pub(super) held: u64,
    /// Bytes written, all from the first.
    pub(super) written: Arc<AtomicU64>,
    /// It was removed, or has the file's name.
    pub(super) settled: bool,
    /// Ends after the file was closed.
    pub(super) claimed: Claimed,
}

impl Part {
    /// Bytes of earlier transfers.
    pub fn held(&self) -> u64 {
        self.held
    }
    /// Bytes that are missing.
    pub fn missing(&self) -> u64 {
        self.offer.size - self.written.load(Ordering::Relaxed)
    }
    /// Appends these bytes. If that fails, the part is removed.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), Verdict> {
        let at = self.written.load(Ordering::Relaxed);
        self.file.write_all_at(bytes, at).map_err(|error| self.fails(&error))?;
        self.written.store(at + bytes.len() as u64, Ordering::Relaxed);
        Ok(())
    }
    /// Ends the part: syncs it, verifies it, and gives it its name. If the store stops meanwhile, it is kept.
    pub fn finish(&mut self) -> Verdict {
        let verdict = self.check().unwrap_or_else(|error| self.fails(&error));
        match verdict {
            Verdict::Same => self.settled = true,
            Verdict::Differs => self.remove(),
            _ => {}
        }
        verdict
    }

    fn check(&self) -> io::Result<Verdict> {
        self.file.sync_all()?;
        sys::forget_cached(&self.file);
        let found = digest::of_file(&self.file, self.offer.size, || self.claimed.is_stopped())?;
        let Some((digest, _)) = found else { return Ok(Verdict::Missing) };
        #[cfg(feature = "simulated")]
        let digest = if is_back(Fault::Unverified) { self.offer.digest } else { digest };
        if digest != self.offer.digest || self.file.metadata()?.len() != self.offer.size {
            return Ok(Verdict::Differs);
        }
        let name = self.offer.name.rsplit('/').next().unwrap_or_default();
        match sys::move_at((&self.parts, &self.part), (&self.folder, name), self.replace) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(Verdict::NameExists),
            moved => moved?,
        }
        self.file.set_permissions(Permissions::from_mode(self.offer.mode))?;
        if let Some(seconds) = self.offer.modified
            && let Some(time) = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds))
        {
            // A time that the file system cannot store is not fatal.
            let _ = self.file.set_modified(time);
        }
        self.file.sync_all()?;
        self.folder.sync_all()?;
        Ok(Verdict::Same)
    }

    fn fails(&mut self, error: &io::Error) -> Verdict {
        tracing::error!(name = self.offer.name, %error, "cannot write");
        self.remove();
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Verdict::Full,
            _ => Verdict::NotWritten,
        }
    }
    fn remove(&mut self) {
        self.settled = true;
        let _ = sys::remove_at(&self.parts, &self.part, false);
    }
}

impl Drop for Part {
    /// Abandons the part, which is kept unless it is empty.
    fn drop(&mut self) {
        match self.written.load(Ordering::Relaxed) {
            _ if self.settled => {}
            0 => self.remove(),
            written => drop(self.file.set_len(written)),
        }
    }
}

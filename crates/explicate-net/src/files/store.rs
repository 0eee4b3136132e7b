//! The folder of received files and their parts.
//!
//! A file is written as a *part*, in a subfolder that only its owner may read. A part is named after the
//! sender (its key) and the file's SHA-256, so that other senders cannot reach it, and is locked by the one transfer
//! that writes it. The next transfer of the same file from the same sender resumes at its end. It gets the file's name only after it was
//! written, synced, read back and verified.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs::File;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use super::disk::{Desk, Disk, ENDING, Outcome, PARTS, Work, listing};
use super::message::{Refusal, Verdict};
use crate::digest::LEN as SHA;
use crate::error::{Error, Result};
use crate::hex::hex;
use crate::sys;

/// Interval between two searches for abandoned parts.
const SWEEP_EVERY: Duration = Duration::from_secs(600);
/// Interval between two counts of the folder's size.
const COUNT_EVERY: Duration = Duration::from_secs(1);
/// The reserve of a disk that received files do not use: this share, but at most this many bytes.
const SPARED: (u64, u64) = (20, 1 << 30);

/// Settings of a store.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The folder.
    pub folder: PathBuf,
    /// Whether a file may replace one of the same name.
    pub replace: bool,
    /// Limit of the folder's size, parts included, bytes.
    pub quota: Option<u64>,
    /// Age at which an unchanged part is removed.
    pub keep_parts: Duration,
}

impl Settings {
    /// The defaults for this folder.
    pub fn new(folder: impl Into<PathBuf>) -> Settings {
        Settings { folder: folder.into(), replace: false, quota: None, keep_parts: Duration::from_secs(86_400) }
    }
}

/// A file that a sender offers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Offer {
    /// Its name, after those of the folders that it is in, with slashes between them. Each was found valid.
    pub name: String,
    /// Its length, bytes.
    pub size: u64,
    /// Its SHA-256.
    pub digest: [u8; SHA],
    /// Its permissions; set-user-ID, set-group-ID and sticky bits are ignored.
    pub mode: u32,
    /// Time of its last modification, seconds since 1970, if known.
    pub modified: Option<u64>,
}

/// A folder for received files.
pub struct Store {
    settings: Settings,
    folder: Arc<File>,
    /// The folder of parts, open while there are transfers.
    parts: Option<Arc<File>>,
    disk: Disk,
    /// Open transfers, by the serial number of their parts.
    claims: BTreeMap<u64, Claim>,
    serial: u64,
    /// When abandoned parts were last searched for, ns of the monotonic clock.
    swept: u64,
    /// The folder's size at the last count.
    counted: Option<Counted>,
    /// Permissions that are removed (the umask).
    mask: u32,
}

/// The resources of an open transfer.
struct Claim {
    part: String,
    name: String,
    size: u64,
    work: Weak<Work>,
}

impl Claim {
    /// Whether the transfer still goes on. If not, [`Store::poll`] will remove it.
    fn is_open(&self) -> bool {
        self.work.upgrade().is_some_and(|work| !work.settled.load(Ordering::Relaxed))
    }
    /// Bytes not written yet.
    fn left(&self) -> u64 {
        let written = self.work.upgrade().map_or(0, |work| work.written.load(Ordering::Relaxed));
        self.size.saturating_sub(written)
    }
}

struct Counted {
    /// When, ns of the monotonic clock.
    at: u64,
    files: u64,
    parts: BTreeMap<String, u64>,
}

/// A part that this transfer alone writes, in order.
pub struct Part {
    work: Arc<Work>,
    desk: Desk,
    held: u64,
}

impl Part {
    /// Bytes of earlier transfers.
    pub fn held(&self) -> u64 {
        self.held
    }
    /// Its serial number in [`Store::poll`].
    pub fn serial(&self) -> u64 {
        self.work.serial
    }
    /// Appends these bytes; returns them if the disk does not keep up.
    pub fn write(&self, bytes: Vec<u8>) -> std::result::Result<(), Vec<u8>> {
        self.desk.write(&self.work, bytes)
    }
    /// Appends the last bytes.
    pub fn write_last(&self, bytes: Vec<u8>) {
        self.desk.write_last(&self.work, bytes);
    }
    /// Ends the part; [`Store::poll`] returns its verdict later.
    pub fn finish(&self) {
        self.desk.finish(&self.work);
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.desk.leave(&self.work);
    }
}

impl Store {
    /// Opens a folder, which this process has to be permitted to write into.
    pub fn open(settings: Settings) -> Result<Store> {
        let path = settings.folder.clone();
        let fail = |reason: io::Error| Error::Failed(unwritable(&path, &reason));
        let folder = Arc::new(File::open(&settings.folder).map_err(fail)?);
        make_parts(&folder).map_err(fail)?;
        let disk = Disk::start().map_err(fail)?;
        disk.sweep(&folder, settings.keep_parts);
        let (claims, swept) = (BTreeMap::new(), sys::monotonic());
        Ok(Store { settings, folder, parts: None, disk, claims, serial: 0, swept, counted: None, mask: mask() })
    }

    /// Opens a part for a file that `peer` offers, or returns why it is refused. Existing files are not changed.
    pub fn take(&mut self, peer: impl Display, offer: &Offer) -> std::result::Result<Part, Refusal> {
        let part = format!("{peer}-{}{ENDING}", hex(&offer.digest));
        let (folder, name) = self.find_folder(&offer.name)?;
        self.is_free(&part, offer, (&folder, name))?;
        let parts = self.open_parts()?;
        let there = held(&parts, &part).map_err(|error| self.unusable(&error))?;
        let held = match &there {
            Some((file, _)) if file.try_lock().is_err() => return Err(Refusal::Busy),
            Some((_, length)) if *length <= offer.size => *length,
            _ => 0,
        };
        if let Err(refusal) = self.has_room(&part, offer, held) {
            self.tidy();
            return Err(refusal);
        }
        // Another receiver of this folder may have removed it before it was locked.
        let there = there.filter(|(file, _)| file.metadata().is_ok_and(|meta| meta.nlink() == 1));
        let held = if there.is_some() { held } else { 0 };
        let file = self.open_part(&parts, &part, there.map(|(file, _)| file), held)?;
        self.parts = Some(parts.clone());
        self.serial += 1;
        let work = Arc::new(Work {
            serial: self.serial,
            file,
            parts,
            folder,
            part: part.clone(),
            name: name.to_string(),
            size: offer.size,
            digest: offer.digest,
            mode: offer.mode & 0o777 & !self.mask,
            modified: offer.modified,
            replace: self.settings.replace,
            written: AtomicU64::new(held),
            settled: AtomicBool::new(false),
        });
        let (name, size, weak) = (offer.name.clone(), offer.size, Arc::downgrade(&work));
        self.claims.insert(self.serial, Claim { part, name, size, work: weak });
        Ok(Part { work, desk: self.disk.desk(), held })
    }
    /// Logs why the folder cannot be used; the sender gets no details.
    fn unusable(&self, error: &io::Error) -> Refusal {
        tracing::error!(folder = %self.settings.folder.display(), %error, "cannot take a file");
        Refusal::NotWritable
    }
    /// The folder that a name is in, and the last part of the name. Folders that are missing are made; links are not followed.
    fn find_folder<'a>(&self, name: &'a str) -> std::result::Result<(Arc<File>, &'a str), Refusal> {
        let Some((folders, last)) = name.rsplit_once('/') else { return Ok((self.folder.clone(), name)) };
        let open = |folder: Arc<File>, name| open_or_make(&folder, name).map(Arc::new);
        let folder = folders.split('/').try_fold(self.folder.clone(), open);
        match folder {
            Ok(folder) => Ok((folder, last)),
            Err(error) if error.kind() == io::ErrorKind::NotADirectory || sys::is_link(&error) => {
                Err(Refusal::NameExists)
            }
            Err(error) => Err(self.unusable(&error)),
        }
    }
    /// Makes a folder with these permissions; its owner may always write into it. One that is there stays as it is.
    pub fn make_folder(&self, name: &str, mode: u32) -> std::result::Result<(), Refusal> {
        let (folder, last) = self.find_folder(name)?;
        if matches!(sys::find_at(&folder, last), Ok(Some(true))) {
            return Ok(());
        }
        // The folder that a name in it would be in.
        let (made, _) = self.find_folder(&format!("{name}/x"))?;
        let mode = mode & 0o777 & !self.mask | 0o700;
        made.set_permissions(std::fs::Permissions::from_mode(mode)).map_err(|error| self.unusable(&error))
    }
    /// The file of this name, if there is one of its own.
    pub fn existing(&self, name: &str) -> Option<File> {
        let (folder, last) = self.find_folder(name).ok()?;
        let file = sys::read_file_at(&folder, last).ok()?;
        file.metadata().ok().filter(std::fs::Metadata::is_file).map(|_| file)
    }
    /// Whether no file and no transfer has this name or this part.
    fn is_free(&self, part: &str, offer: &Offer, (folder, name): (&File, &str)) -> std::result::Result<(), Refusal> {
        match sys::find_at(folder, name).map_err(|error| self.unusable(&error))? {
            Some(is_folder) if is_folder || !self.settings.replace => return Err(Refusal::NameExists),
            _ => {}
        }
        let mut open = self.claims.values().filter(|claim| claim.is_open());
        if open.clone().any(|claim| claim.part == part) {
            return Err(Refusal::Busy);
        }
        if open.any(|claim| claim.name == offer.name) {
            return Err(Refusal::NameTaken);
        }
        Ok(())
    }
    /// The folder of the parts.
    fn open_parts(&self) -> std::result::Result<Arc<File>, Refusal> {
        match &self.parts {
            Some(parts) => Ok(parts.clone()),
            None => make_parts(&self.folder).map(Arc::new).map_err(|error| self.unusable(&error)),
        }
    }
    /// The file of a part, locked: the one that is there and holds so much, or a new one.
    fn open_part(
        &mut self,
        parts: &File,
        part: &str,
        there: Option<File>,
        held: u64,
    ) -> std::result::Result<File, Refusal> {
        let file = match there {
            Some(file) => file.set_len(held).map(|()| file),
            None => sys::create_at(parts, part),
        };
        let file = file.map_err(|error| match error.kind() {
            // Another receiver of this folder has just made the part, or removed the empty folder of the parts.
            io::ErrorKind::AlreadyExists | io::ErrorKind::NotFound => {
                self.parts = None;
                Refusal::Busy
            }
            _ => self.unusable(&error),
        })?;
        // One that was there is locked already.
        if file.try_lock().is_err() { Err(Refusal::Busy) } else { Ok(file) }
    }

    /// Whether what is still to come of a file may come.
    fn has_room(&mut self, part: &str, offer: &Offer, held: u64) -> std::result::Result<(), Refusal> {
        let (free, all) = sys::space(&self.folder).map_err(|_| Refusal::NotWritable)?;
        let spared = (all / SPARED.0).min(SPARED.1);
        let promised: u64 = self.claims.values().map(Claim::left).fold(0, u64::saturating_add);
        let wanted = (offer.size - held).saturating_add(promised).saturating_add(spared);
        if offer.size > i64::MAX as u64 || wanted > free {
            return Err(Refusal::NoSpace);
        }
        let Some(quota) = self.settings.quota else { return Ok(()) };
        let fits = self.used(part, offer).saturating_add(offer.size) <= quota;
        if fits { Ok(()) } else { Err(Refusal::Quota) }
    }
    /// Bytes of the folder's files and parts, those that are promised included, without what this offer takes the place of.
    fn used(&mut self, own: &str, offer: &Offer) -> u64 {
        if self.counted.as_ref().is_none_or(|counted| since(counted.at) > COUNT_EVERY) {
            let files = bytes_in(&self.folder);
            let parts = sys::open_folder_at(&self.folder, PARTS).map(|parts| listing(&parts)).unwrap_or_default();
            self.counted = Some(Counted { at: sys::monotonic(), files, parts: parts.into_iter().collect() });
        }
        let Some(counted) = &self.counted else { return 0 };
        let claimed = |part: &str| part == own || self.claims.values().any(|claim| claim.part == part);
        let kept: u64 = counted.parts.iter().filter(|(part, _)| !claimed(part)).map(|(_, length)| length).sum();
        let promised = self.claims.values().map(|claim| claim.size).fold(0, u64::saturating_add);
        let replaced = std::fs::symlink_metadata(self.settings.folder.join(&offer.name)).map_or(0, |meta| meta.len());
        counted.files.saturating_sub(replaced).saturating_add(kept).saturating_add(promised)
    }

    /// Verdicts of the parts that ended since the last call, by their serial numbers.
    pub fn poll(&mut self) -> Vec<(u64, Verdict)> {
        if since(self.swept) > SWEEP_EVERY {
            self.swept = sys::monotonic();
            self.disk.sweep(&self.folder, self.settings.keep_parts);
        }
        let mut ended = Vec::new();
        for (serial, outcome) in self.disk.poll() {
            match outcome {
                Outcome::Ended(verdict) => ended.push((serial, verdict)),
                Outcome::Left => {
                    self.claims.remove(&serial);
                    self.counted = None;
                    self.tidy();
                }
            }
        }
        ended
    }
    /// Removes the folder of the parts if it is empty. Only this thread does, which makes it too.
    fn tidy(&mut self) {
        if self.claims.is_empty() {
            self.parts = None;
            let _ = sys::remove_at(&self.folder, PARTS, true);
        }
    }
    /// Where files go.
    pub fn folder(&self) -> &Path {
        &self.settings.folder
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.disk.stop();
        self.claims.clear();
        self.tidy();
    }
}

/// How long ago a time of the monotonic clock is, ns.
fn since(then: u64) -> Duration {
    Duration::from_nanos(sys::monotonic().saturating_sub(then))
}

/// Opens a folder, and makes it if it is not there.
fn open_or_make(folder: &File, name: &str) -> io::Result<File> {
    match sys::open_folder_at(folder, name) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            sys::make_folder_at(folder, name)?;
            sys::open_folder_at(folder, name)
        }
        opened => opened,
    }
}

/// Bytes of the files in a folder and its folders, without that of the parts. Links are not followed.
fn bytes_in(folder: &File) -> u64 {
    let bytes = |(name, length): (String, u64)| match sys::open_folder_at(folder, &name) {
        Ok(inner) if name != PARTS => bytes_in(&inner),
        _ => length,
    };
    listing(folder).into_iter().map(bytes).fold(0, u64::saturating_add)
}

/// Opens the folder of the parts, and makes it if it is not there.
fn make_parts(folder: &File) -> io::Result<File> {
    // It is removed when it is empty, maybe just now.
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for _ in 0..3 {
        match sys::make_folder_at(folder, PARTS) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        match sys::open_folder_at(folder, PARTS) {
            Ok(parts) => {
                let meta = parts.metadata()?;
                if meta.uid() != sys::user() || meta.mode() & 0o022 != 0 {
                    let why = format!("{PARTS} in it is another user's, or others may write into it; remove it");
                    return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
                }
                return Ok(parts);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// The part of this name if there is one, and its length. What is no plain file of its own is removed.
fn held(parts: &File, name: &str) -> io::Result<Option<(File, u64)>> {
    let removed = || match sys::remove_at(parts, name, false) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(None),
    };
    let file = match sys::open_file_at(parts, name) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if sys::is_link(&error) => return removed(),
        Err(error) => return Err(error),
    };
    let meta = file.metadata()?;
    // The disk's thread has removed it since: it belonged to a transfer that ended before its first byte.
    if meta.nlink() == 0 {
        return Ok(None);
    }
    if !meta.is_file() || meta.nlink() != 1 || meta.uid() != sys::user() {
        return removed();
    }
    Ok(Some((file, meta.len())))
}

/// The permissions that new files of this process do not get.
fn mask() -> u32 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let word = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    word.and_then(|word| u32::from_str_radix(word.trim(), 8).ok()).unwrap_or(0o022)
}

/// Why a folder takes no files, and what to do.
fn unwritable(folder: &Path, reason: &io::Error) -> String {
    let message = format!("cannot write into {}: {reason}", folder.display());
    let owner = folder.metadata().map(|meta| meta.uid());
    match owner {
        Ok(owner) if reason.kind() == io::ErrorKind::PermissionDenied && owner != sys::user() => format!(
            "{message}. It belongs to user {owner}, and this is user {}, who gives up all capabilities before anything is received: \
             run as user {owner}, or name another folder",
            sys::user()
        ),
        _ => message,
    }
}

#[cfg(test)]
mod tests;

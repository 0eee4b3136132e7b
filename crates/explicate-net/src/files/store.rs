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
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use super::message::{Offer, Refusal};
use super::part::Part;
use crate::error::{Error, Result};
use crate::hex::hex;
#[cfg(feature = "simulated")]
use crate::simulated::faults::{Fault, is_back};
use crate::sys;

/// Name of the folder of parts, within that of the files.
pub const PARTS: &str = ".explicate-parts";
/// Suffix of the name of a part.
const ENDING: &str = ".part";
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

/// A folder for received files.
pub struct Store {
    settings: Settings,
    folder: Arc<File>,
    /// Permissions that are removed (the umask).
    mask: u32,
    /// The program ends: verifications are aborted.
    stopped: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The folder of parts, open while there are transfers.
    parts: Option<Arc<File>>,
    /// Open transfers, by their serial numbers.
    claims: BTreeMap<u64, Claim>,
    serial: u64,
    /// The folder's size at the last count.
    counted: Option<Counted>,
}

/// The resources of an open transfer.
struct Claim {
    part: String,
    name: String,
    size: u64,
    written: Arc<AtomicU64>,
}

impl Claim {
    /// Bytes not written yet.
    fn left(&self) -> u64 {
        self.size.saturating_sub(self.written.load(Ordering::Relaxed))
    }
}

/// What a transfer holds of its store until it is dropped.
pub(super) struct Claimed {
    store: Arc<Store>,
    serial: u64,
}

impl Claimed {
    pub(super) fn is_stopped(&self) -> bool {
        self.store.stopped.load(Ordering::Relaxed)
    }
}

impl Drop for Claimed {
    fn drop(&mut self) {
        let mut state = self.store.state();
        state.claims.remove(&self.serial);
        state.counted = None;
        self.store.tidy(&mut state);
    }
}

struct Counted {
    /// When, ns of the monotonic clock.
    at: u64,
    files: u64,
    parts: BTreeMap<String, u64>,
}

impl Store {
    /// Opens a folder, which this process has to be permitted to write into.
    pub fn open(settings: Settings) -> Result<Arc<Store>> {
        let path = settings.folder.clone();
        let fail = |reason: io::Error| Error::Failed(unwritable(&path, &reason));
        let folder = Arc::new(File::open(&settings.folder).map_err(fail)?);
        make_parts(&folder).map_err(fail)?;
        let (stopped, state) = Default::default();
        let store = Arc::new(Store { settings, folder, mask: mask(), stopped, state });
        store.sweep();
        Ok(store)
    }
    /// Aborts verifications; their parts are kept.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a part for a file that `peer` offers, or returns why it is refused. Existing files are not changed.
    pub fn take(self: &Arc<Store>, peer: impl Display, offer: &Offer) -> std::result::Result<Part, Refusal> {
        let mut state = self.state();
        let part = format!("{peer}-{}{ENDING}", hex(&offer.digest));
        let (folder, name) = self.find_folder(&offer.name)?;
        self.is_free(&state, &part, offer, (&folder, name))?;
        let parts = self.open_parts(&state)?;
        let there = held(&parts, &part).map_err(|error| self.unusable(&error))?;
        let held = match &there {
            Some((file, _)) if file.try_lock().is_err() => return Err(Refusal::Busy),
            Some((_, length)) if *length <= offer.size => *length,
            _ => 0,
        };
        #[cfg(feature = "simulated")]
        let held = if is_back(Fault::FromTheFirst) { 0 } else { held };
        if let Err(refusal) = self.has_room(&mut state, &part, offer, held) {
            self.tidy(&mut state);
            return Err(refusal);
        }
        // Another receiver of this folder may have removed it before it was locked.
        let there = there.filter(|(file, _)| file.metadata().is_ok_and(|meta| meta.nlink() == 1));
        let held = if there.is_some() { held } else { 0 };
        let file = self.open_part(&mut state, &parts, &part, there.map(|(file, _)| file), held)?;
        state.parts = Some(parts.clone());
        state.serial += 1;
        let (serial, written, size) = (state.serial, Arc::new(AtomicU64::new(held)), offer.size);
        let claim = Claim { part: part.clone(), name: offer.name.clone(), size, written: written.clone() };
        state.claims.insert(serial, claim);
        let claimed = Claimed { store: self.clone(), serial };
        let offer = Offer { mode: offer.mode & 0o777 & !self.mask, ..offer.clone() };
        let replace = self.settings.replace;
        Ok(Part { file, parts, folder, part, offer, replace, held, written, settled: false, claimed })
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
    fn is_free(
        &self,
        state: &State,
        part: &str,
        offer: &Offer,
        (folder, name): (&File, &str),
    ) -> std::result::Result<(), Refusal> {
        match sys::find_at(folder, name).map_err(|error| self.unusable(&error))? {
            Some(is_folder) if is_folder || !self.settings.replace => return Err(Refusal::NameExists),
            _ => {}
        }
        if state.claims.values().any(|claim| claim.part == part) {
            return Err(Refusal::Busy);
        }
        if state.claims.values().any(|claim| claim.name == offer.name) {
            return Err(Refusal::NameTaken);
        }
        Ok(())
    }
    /// The folder of the parts.
    fn open_parts(&self, state: &State) -> std::result::Result<Arc<File>, Refusal> {
        match &state.parts {
            Some(parts) => Ok(parts.clone()),
            None => make_parts(&self.folder).map(Arc::new).map_err(|error| self.unusable(&error)),
        }
    }
    /// The file of a part, locked: the one that is there and holds so much, or a new one.
    fn open_part(
        &self,
        state: &mut State,
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
                state.parts = None;
                Refusal::Busy
            }
            _ => self.unusable(&error),
        })?;
        // One that was there is locked already.
        if file.try_lock().is_err() { Err(Refusal::Busy) } else { Ok(file) }
    }

    /// Whether what is still to come of a file may come.
    fn has_room(&self, state: &mut State, part: &str, offer: &Offer, held: u64) -> std::result::Result<(), Refusal> {
        let (free, all) = sys::space(&self.folder).map_err(|_| Refusal::NotWritable)?;
        let spared = (all / SPARED.0).min(SPARED.1);
        let promised: u64 = state.claims.values().map(Claim::left).fold(0, u64::saturating_add);
        let wanted = (offer.size - held).saturating_add(promised).saturating_add(spared);
        if offer.size > i64::MAX as u64 || wanted > free {
            return Err(Refusal::NoSpace);
        }
        let Some(quota) = self.settings.quota else { return Ok(()) };
        let fits = self.used(state, part, offer).saturating_add(offer.size) <= quota;
        if fits { Ok(()) } else { Err(Refusal::Quota) }
    }
    /// Bytes of the folder's files and parts, those that are promised included, without what this offer takes the place of.
    fn used(&self, state: &mut State, own: &str, offer: &Offer) -> u64 {
        if state.counted.as_ref().is_none_or(|counted| since(counted.at) > COUNT_EVERY) {
            let files = bytes_in(&self.folder);
            let parts = sys::open_folder_at(&self.folder, PARTS).map(|parts| listing(&parts)).unwrap_or_default();
            state.counted = Some(Counted { at: sys::monotonic(), files, parts: parts.into_iter().collect() });
        }
        let Some(counted) = &state.counted else { return 0 };
        let claimed = |part: &str| part == own || state.claims.values().any(|claim| claim.part == part);
        let kept: u64 = counted.parts.iter().filter(|(part, _)| !claimed(part)).map(|(_, length)| length).sum();
        let promised = state.claims.values().map(|claim| claim.size).fold(0, u64::saturating_add);
        let replaced = std::fs::symlink_metadata(self.settings.folder.join(&offer.name)).map_or(0, |meta| meta.len());
        counted.files.saturating_sub(replaced).saturating_add(kept).saturating_add(promised)
    }

    /// Removes parts that have not changed for long and that no transfer has open.
    pub fn sweep(&self) {
        let Ok(parts) = sys::open_folder_at(&self.folder, PARTS) else { return };
        let now = Duration::from_nanos(sys::monotonic() + sys::wall_ahead());
        for (name, _) in listing(&parts) {
            let Ok(file) = sys::open_file_at(&parts, &name) else { continue };
            let old = |meta: std::fs::Metadata| {
                let age = now.checked_sub(meta.modified().ok()?.duration_since(SystemTime::UNIX_EPOCH).ok()?)?;
                (meta.is_file() && meta.nlink() > 0 && age > self.settings.keep_parts).then_some(())
            };
            if name.ends_with(ENDING) && file.metadata().ok().and_then(old).is_some() && file.try_lock().is_ok() {
                tracing::info!(part = name, "removed an abandoned part");
                let _ = sys::remove_at(&parts, &name, false);
            }
        }
        self.tidy(&mut self.state());
    }
    /// Removes the folder of the parts if it is empty.
    fn tidy(&self, state: &mut State) {
        if state.claims.is_empty() {
            state.parts = None;
            let _ = sys::remove_at(&self.folder, PARTS, true);
        }
    }
    /// Where files go.
    pub fn folder(&self) -> &Path {
        &self.settings.folder
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

/// The names in an open folder, and the lengths of regular files.
fn listing(folder: &File) -> Vec<(String, u64)> {
    let Ok(entries) = std::fs::read_dir(format!("/proc/self/fd/{}", folder.as_raw_fd())) else { return Vec::new() };
    let length =
        |entry: &std::fs::DirEntry| entry.metadata().ok().filter(|meta| meta.is_file()).map_or(0, |meta| meta.len());
    entries.flatten().map(|entry| (entry.file_name().to_string_lossy().into_owned(), length(&entry))).collect()
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
    // Another receiver of this folder has removed it since.
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

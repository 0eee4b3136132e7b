//! The folder that files arrive in, and what of them is there already.
//!
//! A file is written as a *part*, in a folder within that of the files which only its owner may look into. A part is named after the
//! address of whoever sends it and the file's SHA-256, so that nobody else can meet it, and is locked by the one transfer that
//! writes it. What a transfer leaves behind is where the next one of the same file from the same address goes on. Only what has been
//! written, synced, read back and found the same gets the file's name.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use super::disk::{Desk, Disk, ENDING, Outcome, PARTS, Work, listing};
use crate::endpoint::auth::hex;
use crate::endpoint::hello::SHA;
use crate::endpoint::message::{Refusal, Verdict};
use crate::error::{Error, Result};
use crate::sys;

/// Between two looks for parts that nobody came for.
const SWEEP_EVERY: Duration = Duration::from_secs(600);
/// What the folder holds is counted anew after so long.
const COUNT_EVERY: Duration = Duration::from_secs(1);
/// The last of a disk that files from elsewhere do not take: this share, and no more than so many bytes.
const SPARED: (u64, u64) = (20, 1 << 30);

/// How files are taken.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where they go.
    pub folder: PathBuf,
    /// A file may take the place of one that has its name.
    pub replace: bool,
    /// Most bytes that the folder's files and parts may have together.
    pub quota: Option<u64>,
    /// A part that has not changed for so long is removed.
    pub keep_parts: Duration,
}

impl Settings {
    /// The defaults for this folder.
    pub fn new(folder: impl Into<PathBuf>) -> Settings {
        Settings { folder: folder.into(), replace: false, quota: None, keep_parts: Duration::from_secs(86_400) }
    }
}

/// A file that somebody wants to send.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Offer {
    /// Its name, without folders.
    pub name: String,
    /// Its length, bytes.
    pub size: u64,
    /// Its SHA-256.
    pub digest: [u8; SHA],
    /// Its permissions; those beyond reading, writing and executing are not taken.
    pub mode: u32,
    /// When it was changed last, seconds since 1970, if that is said.
    pub modified: Option<u64>,
}

/// A folder that takes files.
pub struct Store {
    settings: Settings,
    folder: Arc<File>,
    disk: Disk,
    /// Transfers under way, by the serial number of their parts.
    claims: BTreeMap<u64, Arc<Claim>>,
    serial: u64,
    /// When it was last looked for old parts, ns of the monotonic clock.
    swept: u64,
    /// What the folder held when it was counted last.
    counted: Option<Counted>,
    /// Permissions that files do not get.
    mask: u32,
}

/// What a transfer under way has to itself.
struct Claim {
    part: String,
    name: String,
    size: u64,
    work: std::sync::Weak<Work>,
}

impl Claim {
    /// Bytes that are not written yet.
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
    /// Bytes that were there already, all from the first.
    pub fn held(&self) -> u64 {
        self.held
    }
    /// What [`Store::poll`] calls it.
    pub fn serial(&self) -> u64 {
        self.work.serial
    }
    /// Writes these bytes behind those before; gives them back if the disk does not keep up.
    pub(super) fn write(&self, bytes: Vec<u8>) -> std::result::Result<(), Vec<u8>> {
        self.desk.write(&self.work, bytes)
    }
    /// Writes these bytes behind those before, and no more.
    pub(super) fn write_last(&self, bytes: Vec<u8>) {
        self.desk.write_last(&self.work, bytes);
    }
    /// All is there: [`Store::poll`] will say how it went.
    pub(super) fn finish(&self) {
        self.desk.finish(&self.work);
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.desk.leave(&self.work);
    }
}

impl Store {
    /// Opens a folder for files, which this process has to be able to write into as it is now.
    pub fn open(settings: Settings) -> Result<Store> {
        let path = settings.folder.clone();
        let fail = |reason: io::Error| Error::Failed(unwritable(&path, &reason));
        let folder = Arc::new(File::open(&settings.folder).map_err(fail)?);
        make_parts(&folder).map_err(fail)?;
        let disk = Disk::start().map_err(fail)?;
        disk.sweep(&folder, settings.keep_parts);
        let (claims, swept) = (BTreeMap::new(), sys::monotonic());
        Ok(Store { settings, folder, disk, claims, serial: 0, swept, counted: None, mask: mask() })
    }

    /// Takes a part for a file that `peer` offers, or says why not. Nothing that was there is touched.
    pub fn take(&mut self, peer: Ipv4Addr, offer: &Offer) -> std::result::Result<Part, Refusal> {
        let path = self.settings.folder.clone();
        let unwritable = |error: io::Error| {
            tracing::error!(folder = %path.display(), %error, "cannot take a file");
            Refusal::NotWritable
        };
        match sys::find_at(&self.folder, &offer.name).map_err(unwritable)? {
            Some(is_folder) if is_folder || !self.settings.replace => return Err(Refusal::NameExists),
            _ => {}
        }
        let part = format!("{peer}-{}{ENDING}", hex(&offer.digest));
        if self.claims.values().any(|claim| claim.part == part) {
            return Err(Refusal::Busy);
        }
        if self.claims.values().any(|claim| claim.name == offer.name) {
            return Err(Refusal::NameTaken);
        }
        let parts = make_parts(&self.folder).map_err(unwritable)?;
        let there = held(&parts, &part).map_err(unwritable)?;
        let held = match &there {
            Some((file, _)) if file.try_lock().is_err() => return Err(Refusal::Busy),
            Some((_, length)) if *length <= offer.size => *length,
            _ => 0,
        };
        if let Err(refusal) = self.has_room(&part, offer, held) {
            self.tidy();
            return Err(refusal);
        }
        let file = match there {
            Some((file, length)) => {
                if length > offer.size {
                    file.set_len(0).map_err(unwritable)?;
                }
                file
            }
            None => {
                let file = sys::create_at(&parts, &part).map_err(unwritable)?;
                if file.try_lock().is_err() {
                    return Err(Refusal::Busy);
                }
                file
            }
        };
        self.serial += 1;
        let work = Arc::new(Work {
            serial: self.serial,
            file,
            parts,
            folder: self.folder.clone(),
            part: part.clone(),
            name: offer.name.clone(),
            size: offer.size,
            digest: offer.digest,
            mode: offer.mode & 0o777 & !self.mask,
            modified: offer.modified,
            replace: self.settings.replace,
            written: AtomicU64::new(held),
            settled: AtomicBool::new(false),
        });
        let (name, size, desk) = (offer.name.clone(), offer.size, self.disk.desk());
        self.claims.insert(self.serial, Arc::new(Claim { part, name, size, work: Arc::downgrade(&work) }));
        Ok(Part { work, desk, held })
    }

    /// Whether what is still to come of a file may come.
    fn has_room(&mut self, part: &str, offer: &Offer, held: u64) -> std::result::Result<(), Refusal> {
        let (free, all) = sys::space(&self.folder).map_err(|_| Refusal::NotWritable)?;
        let spared = (all / SPARED.0).min(SPARED.1);
        let promised: u64 = self.claims.values().map(|claim| claim.left()).fold(0, u64::saturating_add);
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
            let files = listing(&self.folder).into_iter().map(|(_, length)| length).sum();
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

    /// What happened to parts since this was asked last, by their serial numbers: how those ended that did.
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
    fn tidy(&self) {
        if self.claims.is_empty() {
            let _ = sys::remove_at(&self.folder, PARTS, true);
        }
    }
    /// Where files go.
    pub fn folder(&self) -> &Path {
        &self.settings.folder
    }
}

impl AsFd for Store {
    /// Has something to read when [`Store::poll`] has something to say.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.disk.awake.as_fd()
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
    let file = match sys::open_file_at(parts, name) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if sys::is_link(&error) => return sys::remove_at(parts, name, false).map(|()| None),
        Err(error) => return Err(error),
    };
    let meta = file.metadata()?;
    if !meta.is_file() || meta.nlink() != 1 || meta.uid() != sys::user() {
        return sys::remove_at(parts, name, false).map(|()| None);
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
    let said = format!("cannot write into {}: {reason}", folder.display());
    let owner = folder.metadata().map(|meta| meta.uid());
    match owner {
        Ok(owner) if reason.kind() == io::ErrorKind::PermissionDenied && owner != sys::user() => format!(
            "{said}. It belongs to user {owner}, and this is user {}, who gives up all capabilities before anything is received: \
             run as user {owner}, or name another folder",
            sys::user()
        ),
        _ => said,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use sha2::{Digest, Sha256};

    use super::super::Stock;
    use super::*;

    const PEER: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);
    const OTHER: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 2);

    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Scratch {
            let folder = std::env::temp_dir().join(format!("explicate-store-{name}-{}", std::process::id()));
            fs::create_dir_all(&folder).unwrap();
            Scratch(folder)
        }
        fn store(&self, change: impl FnOnce(&mut Settings)) -> Store {
            let mut settings = Settings::new(&self.0);
            change(&mut settings);
            Store::open(settings).unwrap()
        }
        fn names(&self) -> Vec<String> {
            let mut names: Vec<String> =
                fs::read_dir(&self.0).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
            names.sort();
            names
        }
    }
    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn offer(name: &str, content: &[u8]) -> Offer {
        let digest = Sha256::digest(content).into();
        Offer {
            name: name.to_string(),
            size: content.len() as u64,
            digest,
            mode: 0o4640,
            modified: Some(1_000_000_000),
        }
    }
    fn content(bytes: usize) -> Vec<u8> {
        (0..bytes as u64).map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u8).collect()
    }
    /// Waits for what a store says.
    fn wait(store: &mut Store, mut so: impl FnMut(&mut Store, &[(u64, Verdict)]) -> bool) {
        for _ in 0..10_000 {
            let told = store.poll();
            if so(store, &told) {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        panic!("nothing is told");
    }
    /// Writes all that is missing of a file in segments of 1000 bytes; how it ended.
    fn fill(store: &mut Store, peer: Ipv4Addr, offer: &Offer, content: &[u8]) -> Verdict {
        let part = store.take(peer, offer).unwrap();
        let held = part.held() as usize;
        let mut stock = Stock::file(part, store.folder(), offer);
        let segments: Vec<&[u8]> = content[held..].chunks(1000).collect();
        for (i, payload) in segments.iter().enumerate() {
            while !stock.has_room() {
                std::thread::sleep(Duration::from_millis(1));
            }
            stock.take(i as u32, payload, i + 1 == segments.len());
        }
        assert_eq!(stock.conclude(), Verdict::Checking);
        let mut verdict = None;
        wait(store, |_, told| {
            verdict = verdict.or(told.first().map(|(_, verdict)| *verdict));
            verdict.is_some()
        });
        stock.settle(verdict.unwrap());
        drop(stock);
        wait(store, |store, _| store.claims.is_empty());
        verdict.unwrap()
    }

    #[test]
    fn a_file_gets_its_name_when_it_is_whole() {
        let scratch = Scratch::new("whole");
        let mut store = scratch.store(|_| {});
        let bytes = content(300_001);
        let offer = offer("a", &bytes);
        assert_eq!(fill(&mut store, PEER, &offer, &bytes), Verdict::Same);
        assert!(fs::read(scratch.0.join("a")).unwrap() == bytes);
        let meta = fs::metadata(scratch.0.join("a")).unwrap();
        assert_eq!((meta.permissions().mode() & 0o7777, meta.mtime()), (0o640 & !mask(), 1_000_000_000));
        assert_eq!(store.take(PEER, &offer).err(), Some(Refusal::NameExists));
        assert_eq!(scratch.names(), ["a"]);
        // Nothing has to come of an empty one.
        let empty = Offer { name: "empty".to_string(), ..super::tests::offer("x", &[]) };
        assert_eq!(fill(&mut store, PEER, &empty, &[]), Verdict::Same);
        assert_eq!(fs::metadata(scratch.0.join("empty")).unwrap().len(), 0);
    }

    #[test]
    fn what_differs_is_removed_and_what_exists_is_not_touched() {
        let scratch = Scratch::new("differs");
        let mut store = scratch.store(|_| {});
        let (bytes, mut other) = (content(5000), content(5000));
        other[4321] ^= 1;
        assert_eq!(fill(&mut store, PEER, &offer("a", &bytes), &other), Verdict::Differs);
        assert_eq!(scratch.names(), [""; 0]);
        let part = store.take(PEER, &offer("a", &bytes)).unwrap();
        fs::write(scratch.0.join("a"), b"mine").unwrap();
        part.write_last(bytes.clone());
        part.finish();
        let serial = part.serial();
        wait(&mut store, |_, told| told.contains(&(serial, Verdict::NameExists)));
        drop(part);
        wait(&mut store, |store, _| store.claims.is_empty());
        assert_eq!(fs::read(scratch.0.join("a")).unwrap(), b"mine");
        // The part is still there, whole.
        fs::remove_file(scratch.0.join("a")).unwrap();
        let part = store.take(PEER, &offer("a", &bytes)).unwrap();
        assert_eq!(part.held(), 5000);
    }

    #[test]
    fn a_part_is_one_transfer_s_and_goes_on_where_it_ended() {
        let scratch = Scratch::new("resume");
        let mut store = scratch.store(|_| {});
        let bytes = content(200_000);
        let (a, b) = (offer("a", &bytes), offer("b", &bytes));
        let part = store.take(PEER, &a).unwrap();
        assert_eq!(store.take(PEER, &a).err(), Some(Refusal::Busy), "the same again");
        assert_eq!(store.take(OTHER, &a).err(), Some(Refusal::NameTaken), "the name");
        assert_eq!(store.take(PEER, &b).err(), Some(Refusal::Busy), "the part");
        // A second receiver of this folder cannot have it either.
        let mut second = scratch.store(|_| {});
        assert_eq!(second.take(PEER, &a).err(), Some(Refusal::Busy));
        part.write_last(bytes[..120_000].to_vec());
        drop(part);
        wait(&mut store, |store, _| store.claims.is_empty());
        let part = store.take(OTHER, &a).unwrap();
        assert_eq!(part.held(), 0, "another's");
        drop(part);
        wait(&mut store, |store, _| store.claims.is_empty());
        // It may be called otherwise meanwhile, and the process may be another.
        drop((store, second));
        let mut store = scratch.store(|_| {});
        assert_eq!(store.take(PEER, &b).map(|part| part.held()), Ok(120_000));
        wait(&mut store, |store, _| store.claims.is_empty());
        assert_eq!(fill(&mut store, PEER, &b, &bytes), Verdict::Same);
        assert!(fs::read(scratch.0.join("b")).unwrap() == bytes);
        assert_eq!(scratch.names(), ["b"], "and nothing else is left");
    }

    #[test]
    fn a_damaged_part_is_found_out_and_removed() {
        let scratch = Scratch::new("damaged");
        let mut store = scratch.store(|_| {});
        let bytes = content(50_000);
        let a = offer("a", &bytes);
        let part = store.take(PEER, &a).unwrap();
        part.write_last(bytes[..30_000].to_vec());
        drop(part);
        wait(&mut store, |store, _| store.claims.is_empty());
        let path = scratch.0.join(PARTS).join(format!("{PEER}-{}{ENDING}", hex(&a.digest)));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let mut damaged = bytes[..30_000].to_vec();
        damaged[777] ^= 4;
        fs::write(&path, damaged).unwrap();
        assert_eq!(fill(&mut store, PEER, &a, &bytes), Verdict::Differs);
        assert_eq!(scratch.names(), [""; 0]);
        assert_eq!(fill(&mut store, PEER, &a, &bytes), Verdict::Same);
    }

    #[test]
    fn parts_are_not_followed_elsewhere() {
        let scratch = Scratch::new("links");
        let mut store = scratch.store(|_| {});
        let bytes = content(5000);
        let a = offer("a", &bytes);
        let (parts, elsewhere) = (scratch.0.join(PARTS), scratch.0.join("elsewhere"));
        let part = parts.join(format!("{PEER}-{}{ENDING}", hex(&a.digest)));
        fs::write(&elsewhere, b"mine").unwrap();
        fs::set_permissions(&elsewhere, fs::Permissions::from_mode(0o600)).unwrap();
        for hard in [false, true] {
            fs::create_dir_all(&parts).unwrap();
            fs::set_permissions(&parts, fs::Permissions::from_mode(0o700)).unwrap();
            if hard { fs::hard_link(&elsewhere, &part) } else { std::os::unix::fs::symlink(&elsewhere, &part) }
                .unwrap();
            assert_eq!(fill(&mut store, PEER, &a, &bytes), Verdict::Same, "{hard}");
            assert_eq!(fs::read(&elsewhere).unwrap(), b"mine");
            fs::remove_file(scratch.0.join("a")).unwrap();
        }
        // Nor is their folder, and nobody else writes into it.
        std::os::unix::fs::symlink(std::env::temp_dir(), &parts).unwrap();
        assert_eq!(store.take(PEER, &a).err(), Some(Refusal::NotWritable));
        fs::remove_file(&parts).unwrap();
        fs::create_dir(&parts).unwrap();
        fs::set_permissions(&parts, fs::Permissions::from_mode(0o777)).unwrap();
        assert_eq!(store.take(PEER, &a).err(), Some(Refusal::NotWritable));
    }

    #[test]
    fn sizes_that_do_not_fit_are_refused_before_anything_is_made() {
        let scratch = Scratch::new("sizes");
        let mut store = scratch.store(|settings| settings.quota = Some(10_000));
        let bytes = content(100);
        let sized = |size| Offer { size, ..offer("a", &bytes) };
        for size in [u64::MAX, 1 << 63, i64::MAX as u64, 1 << 50] {
            assert_eq!(store.take(PEER, &sized(size)).err(), Some(Refusal::NoSpace), "{size}");
        }
        assert_eq!(store.take(PEER, &sized(10_001)).err(), Some(Refusal::Quota));
        drop(store);
        assert_eq!(scratch.names(), [""; 0]);
        let mut store = scratch.store(|settings| settings.quota = Some(10_000));
        // What is there counts, and what is promised to others.
        fs::write(scratch.0.join("there"), [1; 4000]).unwrap();
        let part = store.take(PEER, &sized(5000)).unwrap();
        let b = Offer { name: "b".to_string(), ..offer("b", b"b") };
        assert_eq!(store.take(OTHER, &Offer { size: 1001, ..b.clone() }).err(), Some(Refusal::Quota));
        assert!(store.take(OTHER, &Offer { size: 1000, ..b }).is_ok());
        drop(part);
    }

    #[test]
    fn old_parts_go_and_young_ones_and_those_in_use_stay() {
        let scratch = Scratch::new("old");
        let mut store = scratch.store(|_| {});
        let offers = [offer("a", &content(9000)), offer("b", &content(9001)), offer("c", &content(9002))];
        let parts: Vec<Part> = offers.iter().map(|offer| store.take(PEER, offer).unwrap()).collect();
        for part in &parts {
            part.write_last(content(5000));
        }
        let path = |i: usize| scratch.0.join(PARTS).join(format!("{PEER}-{}{ENDING}", hex(&offers[i].digest)));
        let mut parts = parts.into_iter();
        let used = parts.next().unwrap();
        drop(parts);
        wait(&mut store, |store, _| store.claims.len() == 1);
        let old = std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        for i in [0, 1] {
            File::options().write(true).open(path(i)).unwrap().set_modified(old).unwrap();
        }
        drop(scratch.store(|settings| settings.keep_parts = Duration::from_secs(3600)));
        assert_eq!([0, 1, 2].map(|i| path(i).exists()), [true, false, true]);
        drop(used);
    }

    #[test]
    fn the_check_of_a_long_file_holds_up_no_other() {
        let scratch = Scratch::new("long");
        let mut store = scratch.store(|_| {});
        // All of it is held, and has to be read before that can be said: for some seconds.
        let long = Offer { size: 4 << 30, ..offer("long", b"another") };
        let part = store.take(PEER, &long).unwrap();
        part.work.file.set_len(long.size).unwrap();
        part.work.written.store(long.size, Ordering::Relaxed);
        part.finish();
        let bytes = content(300_000);
        for i in 0..5 {
            let offer = offer(&format!("short{i}"), &bytes);
            let part = store.take(OTHER, &offer).unwrap();
            part.write_last(bytes.clone());
            part.finish();
            let serial = part.serial();
            wait(&mut store, |_, told| {
                assert!(told.iter().all(|(of, verdict)| (*of, *verdict) == (serial, Verdict::Same)), "{told:?}");
                !told.is_empty()
            });
            drop(part);
            wait(&mut store, |store, _| store.claims.len() == 1);
        }
        // And it is given up when the program ends.
        drop((part, store));
        assert!(!scratch.0.join("long").exists());
    }

    #[test]
    fn a_full_disk_is_told_at_once() {
        let scratch = Scratch::new("full");
        let mut store = scratch.store(|_| {});
        // In place of a part, a device that is always full.
        let work = Arc::new(Work {
            serial: 7,
            file: File::options().write(true).open("/dev/full").unwrap(),
            parts: make_parts(&store.folder).unwrap(),
            folder: store.folder.clone(),
            part: "none.part".to_string(),
            name: "a".to_string(),
            size: 5000,
            digest: [0; SHA],
            mode: 0o600,
            modified: None,
            replace: false,
            written: AtomicU64::new(0),
            settled: AtomicBool::new(false),
        });
        let part = Part { work, desk: store.disk.desk(), held: 0 };
        for _ in 0..3 {
            part.write_last(content(100));
        }
        let mut all = Vec::new();
        wait(&mut store, |_, told| {
            all.extend_from_slice(told);
            !all.is_empty()
        });
        assert_eq!(all, [(7, Verdict::Full)], "and once");
        drop((part, store));
        assert_eq!(scratch.names(), [""; 0]);
    }
}

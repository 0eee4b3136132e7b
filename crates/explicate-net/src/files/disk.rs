//! Writes, syncs and verifies received files on separate threads, so that a slow disk delays no packet.
//!
//! One thread writes, in the order of the jobs. Others verify complete files, so that a long file does not delay
//! writing.

use std::fs::{File, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime};

use super::message::Verdict;
use crate::digest::{self, LEN as SHA};
use crate::sys;

/// Name of the folder of parts, within that of the files.
pub(super) const PARTS: &str = ".explicate-parts";
/// Suffix of the name of a part.
pub(super) const ENDING: &str = ".part";
/// Maximum number of bytes queued for writing, all parts together.
const MOST_QUEUED: usize = 32 << 20;
/// Number of files verified at a time.
const CHECKERS: usize = 4;

/// A part of a file, open and locked.
pub(super) struct Work {
    pub(super) serial: u64,
    pub(super) file: File,
    /// The folders of the part and of the complete file.
    pub(super) parts: Arc<File>,
    pub(super) folder: Arc<File>,
    pub(super) part: String,
    pub(super) name: String,
    pub(super) size: u64,
    pub(super) digest: [u8; SHA],
    /// Permissions of the complete file.
    pub(super) mode: u32,
    /// Time of its last modification, seconds since 1970, if known.
    pub(super) modified: Option<u64>,
    pub(super) replace: bool,
    /// Number of bytes written, all from the first.
    pub(super) written: AtomicU64,
    /// It has ended.
    pub(super) settled: AtomicBool,
}

/// The outcome of a part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Outcome {
    /// It has ended with this verdict.
    Ended(Verdict),
    /// It is closed and available to another transfer. Without a part: old parts have been removed.
    Left,
}

enum Job {
    Write(Arc<Work>, Vec<u8>),
    Finish(Arc<Work>),
    Leave(Arc<Work>),
    Sweep(Arc<File>, Duration),
    Stop,
}

/// The threads.
pub(super) struct Disk {
    jobs: Sender<Job>,
    queued: Arc<AtomicUsize>,
    done: Receiver<(u64, Outcome)>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

/// Takes outcomes from a thread.
type Reporter = Sender<(u64, Outcome)>;

/// At the end the other side may be closed.
fn report(reporter: &Reporter, serial: u64, outcome: Outcome) {
    let _ = reporter.send((serial, outcome));
}

/// The writing side of a part.
#[derive(Clone)]
pub(super) struct Desk {
    jobs: Sender<Job>,
    queued: Arc<AtomicUsize>,
}

impl Desk {
    /// Appends these bytes. Returns them if too many are queued.
    pub(super) fn write(&self, work: &Arc<Work>, bytes: Vec<u8>) -> Result<(), Vec<u8>> {
        if self.queued.load(Ordering::Relaxed) >= MOST_QUEUED {
            return Err(bytes);
        }
        self.write_last(work, bytes);
        Ok(())
    }
    /// Appends these bytes, however many are queued.
    pub(super) fn write_last(&self, work: &Arc<Work>, bytes: Vec<u8>) {
        self.queued.fetch_add(bytes.len(), Ordering::Relaxed);
        let _ = self.jobs.send(Job::Write(work.clone(), bytes));
    }
    /// Ends the part: syncs it, verifies it, and gives it its name.
    pub(super) fn finish(&self, work: &Arc<Work>) {
        let _ = self.jobs.send(Job::Finish(work.clone()));
    }
    /// Abandons the part, which is kept unless it is empty.
    pub(super) fn leave(&self, work: &Arc<Work>) {
        let _ = self.jobs.send(Job::Leave(work.clone()));
    }
}

impl Disk {
    pub(super) fn start() -> io::Result<Disk> {
        let (jobs, todo) = channel();
        let (reporter, outcomes) = channel();
        let (queued, stop) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let (whole, checks) = channel();
        let checks = Arc::new(Mutex::new(checks));
        let mut threads = Vec::new();
        for _ in 0..CHECKERS {
            let (checks, reporter, stop) = (checks.clone(), reporter.clone(), stop.clone());
            threads.push(named("check", move || check_all(&checks, &reporter, &stop))?);
        }
        let waiting = queued.clone();
        threads.push(named("write", move || write_all(&todo, &whole, &reporter, &waiting))?);
        Ok(Disk { jobs, queued, done: outcomes, stop, threads })
    }
    /// The writing side of a new part.
    pub(super) fn desk(&self) -> Desk {
        Desk { jobs: self.jobs.clone(), queued: self.queued.clone() }
    }
    /// Removes parts that have not changed for this time.
    pub(super) fn sweep(&self, folder: &Arc<File>, keep: Duration) {
        let _ = self.jobs.send(Job::Sweep(folder.clone(), keep));
    }
    /// Outcomes since the last call.
    pub(super) fn poll(&self) -> Vec<(u64, Outcome)> {
        self.done.try_iter().collect()
    }
    /// Waits until everything is written; a verification in progress is aborted, and its part is kept.
    pub(super) fn stop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.jobs.send(Job::Stop);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn named(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    thread::Builder::new().name(name.to_string()).stack_size(1 << 18).spawn(run)
}

/// The writing thread.
fn write_all(jobs: &Receiver<Job>, whole: &Sender<Arc<Work>>, reporter: &Reporter, queued: &AtomicUsize) {
    for job in jobs {
        match job {
            Job::Write(work, bytes) => {
                write(&work, &bytes, reporter);
                queued.fetch_sub(bytes.len(), Ordering::Relaxed);
            }
            Job::Finish(work) if work.settled.load(Ordering::Relaxed) => {}
            Job::Finish(work) => drop(whole.send(work)),
            Job::Leave(work) => {
                let serial = work.serial;
                leave(&work);
                drop(work);
                report(reporter, serial, Outcome::Left);
            }
            Job::Sweep(folder, keep) => {
                sweep(&folder, keep);
                report(reporter, 0, Outcome::Left);
            }
            Job::Stop => return,
        }
    }
}

fn write(work: &Work, bytes: &[u8], reporter: &Reporter) {
    // After an error the part is lost, and reported once.
    if work.settled.load(Ordering::Relaxed) {
        return;
    }
    let at = work.written.load(Ordering::Relaxed);
    match work.file.write_all_at(bytes, at) {
        Ok(()) => work.written.store(at + bytes.len() as u64, Ordering::Relaxed),
        Err(error) => {
            work.settled.store(true, Ordering::Relaxed);
            remove(work);
            report(reporter, work.serial, Outcome::Ended(failed(work, &error)));
        }
    }
}

fn failed(work: &Work, error: &io::Error) -> Verdict {
    tracing::error!(name = work.name, %error, "cannot write");
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Verdict::Full,
        _ => Verdict::NotWritten,
    }
}

fn remove(work: &Work) {
    let _ = sys::remove_at(&work.parts, &work.part, false);
}

fn leave(work: &Work) {
    let written = work.written.load(Ordering::Relaxed);
    // Complete files go to another thread.
    if written == work.size || work.settled.swap(true, Ordering::Relaxed) {
        return;
    }
    match written {
        0 => remove(work),
        _ => drop(work.file.set_len(written)),
    }
}

/// A verifying thread.
fn check_all(checks: &Mutex<Receiver<Arc<Work>>>, reporter: &Reporter, stop: &AtomicBool) {
    loop {
        let next = checks.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(work) = next else { return };
        let serial = work.serial;
        let verdict = match check(&work, stop) {
            Ok(Some(verdict)) => verdict,
            Ok(None) => continue,
            Err(error) => failed(&work, &error),
        };
        if matches!(verdict, Verdict::Differs | Verdict::NotWritten | Verdict::Full) {
            remove(&work);
        }
        work.settled.store(true, Ordering::Relaxed);
        drop(work);
        report(reporter, serial, Outcome::Ended(verdict));
    }
}

/// Verifies a file on disk and gives it its name. `None` if `stop` is set.
fn check(work: &Work, stop: &AtomicBool) -> io::Result<Option<Verdict>> {
    work.file.sync_all()?;
    sys::forget_cached(&work.file);
    let stopped = || stop.load(Ordering::Relaxed);
    let Some((digest, _)) = digest::of_file(&work.file, work.size, stopped)? else { return Ok(None) };
    if digest != work.digest || work.file.metadata()?.len() != work.size {
        return Ok(Some(Verdict::Differs));
    }
    match sys::move_at((&work.parts, &work.part), (&work.folder, &work.name), work.replace) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(Some(Verdict::NameExists)),
        moved => moved?,
    }
    work.file.set_permissions(Permissions::from_mode(work.mode))?;
    if let Some(seconds) = work.modified
        && let Some(time) = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds))
    {
        // A time that the file system cannot store is not fatal.
        let _ = work.file.set_modified(time);
    }
    work.file.sync_all()?;
    work.folder.sync_all()?;
    Ok(Some(Verdict::Same))
}

/// Removes parts that have not changed for `keep` and that no transfer has open.
fn sweep(folder: &File, keep: Duration) {
    let Ok(parts) = sys::open_folder_at(folder, PARTS) else { return };
    let now = Duration::from_nanos(sys::monotonic() + sys::wall_ahead());
    for (name, _) in listing(&parts) {
        let Ok(file) = sys::open_file_at(&parts, &name) else { continue };
        let old = |meta: std::fs::Metadata| {
            let age = now.checked_sub(meta.modified().ok()?.duration_since(SystemTime::UNIX_EPOCH).ok()?)?;
            (meta.is_file() && meta.nlink() > 0 && age > keep).then_some(())
        };
        if name.ends_with(ENDING) && file.metadata().ok().and_then(old).is_some() && file.try_lock().is_ok() {
            tracing::info!(part = name, "removed an abandoned part");
            let _ = sys::remove_at(&parts, &name, false);
        }
    }
}

/// The names in an open folder, and the lengths of regular files.
pub(super) fn listing(folder: &File) -> Vec<(String, u64)> {
    let Ok(entries) = std::fs::read_dir(format!("/proc/self/fd/{}", folder.as_raw_fd())) else { return Vec::new() };
    let length =
        |entry: &std::fs::DirEntry| entry.metadata().ok().filter(|meta| meta.is_file()).map_or(0, |meta| meta.len());
    entries.flatten().map(|entry| (entry.file_name().to_string_lossy().into_owned(), length(&entry))).collect()
}

//! Clocks, timers, and waiting for descriptors.

use std::io;
use std::mem::zeroed;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

use super::check;

fn clock(id: libc::clockid_t) -> u64 {
    // SAFETY: a timespec is plain data, and the kernel fills it.
    let mut t: libc::timespec = unsafe { zeroed() };
    unsafe { libc::clock_gettime(id, &mut t) };
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

/// Nanoseconds of the monotonic clock.
pub fn monotonic() -> u64 {
    clock(libc::CLOCK_MONOTONIC)
}

/// How far the wall clock is ahead of the monotonic one, nanoseconds. It may be set at any time.
pub fn wall_ahead() -> u64 {
    clock(libc::CLOCK_REALTIME).saturating_sub(monotonic())
}

/// CPU time of this thread, nanoseconds.
pub fn thread_cpu() -> u64 {
    clock(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Sleeps until this time of the monotonic clock, nanoseconds, or until a signal comes.
pub fn sleep_until(at: u64) {
    let time = libc::timespec { tv_sec: (at / 1_000_000_000) as i64, tv_nsec: (at % 1_000_000_000) as i64 };
    // SAFETY: plain data, read while it lives.
    unsafe { libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &time, ptr::null_mut()) };
}

/// Timers of this thread expire when they are due, not some microseconds later.
pub fn sharpen_timers() {
    // SAFETY: PR_SET_TIMERSLACK takes a number.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1usize) };
}

/// A timer as a descriptor.
pub fn timer() -> io::Result<OwnedFd> {
    // SAFETY: a new descriptor, owned by nobody else.
    unsafe {
        let fd = check(libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_NONBLOCK | libc::TFD_CLOEXEC))?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// The timer expires at this time of the monotonic clock, nanoseconds.
pub fn set_timer(timer: BorrowedFd<'_>, at: u64) -> io::Result<()> {
    // SAFETY: plain data, read while it lives. An all-zero time would disarm.
    unsafe {
        let mut spec: libc::itimerspec = zeroed();
        spec.it_value.tv_sec = (at / 1_000_000_000) as i64;
        spec.it_value.tv_nsec = (at % 1_000_000_000).max(1) as i64;
        check(libc::timerfd_settime(timer.as_raw_fd(), libc::TFD_TIMER_ABSTIME, &spec, ptr::null_mut())).map(drop)
    }
}

/// Descriptors to wait for.
#[derive(Default)]
pub struct Polled(Vec<libc::pollfd>);

impl Polled {
    /// Waits until one of the descriptors, or `last`, can be read, at most so many nanoseconds.
    pub fn wait(&mut self, fds: &[impl AsFd], last: Option<&OwnedFd>, nanoseconds: u64) -> io::Result<()> {
        self.0.clear();
        let polled = |fd: RawFd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        self.0.extend(fds.iter().map(|fd| polled(fd.as_fd().as_raw_fd())));
        self.0.extend(last.map(|fd| polled(fd.as_raw_fd())));
        let limit = libc::timespec {
            tv_sec: (nanoseconds / 1_000_000_000) as i64,
            tv_nsec: (nanoseconds % 1_000_000_000) as i64,
        };
        let (all, count) = (self.0.as_mut_ptr(), self.0.len() as libc::nfds_t);
        // SAFETY: the vector outlives the call and has the length that it says.
        match check(unsafe { libc::ppoll(all, count, &limit, ptr::null()) }) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {
                self.0.clear();
                Ok(())
            }
            result => result.map(drop),
        }
    }
    /// Whether the descriptor of this number had something when the last wait ended.
    pub fn is_readable(&self, index: usize) -> bool {
        self.0.get(index).is_some_and(|p| p.revents != 0)
    }
}

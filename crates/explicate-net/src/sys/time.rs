//! Clocks, timers, and waiting for descriptors.

use std::io;
use std::num::NonZeroU64;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, retry_on_intr};
use rustix::thread::{clock_nanosleep_absolute, set_current_timer_slack};
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime, timerfd_create,
    timerfd_settime,
};

const SECOND: u64 = 1_000_000_000;

fn timespec(nanoseconds: u64) -> Timespec {
    Timespec { tv_sec: (nanoseconds / SECOND) as i64, tv_nsec: (nanoseconds % SECOND) as _ }
}

fn clock(id: ClockId) -> u64 {
    let now = clock_gettime(id);
    now.tv_sec as u64 * SECOND + now.tv_nsec as u64
}

/// Nanoseconds of the monotonic clock.
pub fn monotonic() -> u64 {
    #[cfg(feature = "simulated")]
    if let Some(now) = crate::simulated::clock::now() {
        return now;
    }
    clock(ClockId::Monotonic)
}

/// Offset of the wall clock from the monotonic one, nanoseconds. It may be changed at any time.
pub fn wall_ahead() -> u64 {
    #[cfg(feature = "simulated")]
    if let Some(ahead) = crate::simulated::clock::wall_ahead() {
        return ahead;
    }
    clock(ClockId::Realtime).saturating_sub(monotonic())
}

/// CPU time of this thread, nanoseconds.
pub fn thread_cpu() -> u64 {
    clock(ClockId::ThreadCPUTime)
}

/// Sleeps until this time of the monotonic clock, nanoseconds, or until a signal arrives.
pub fn sleep_until(at: u64) {
    let _ = clock_nanosleep_absolute(ClockId::Monotonic, &timespec(at));
}

/// Makes timers of this thread expire on time, without the default slack of 50 us.
pub fn sharpen_timers() {
    let _ = set_current_timer_slack(NonZeroU64::new(1));
}

/// A timer as a descriptor.
pub fn timer() -> io::Result<OwnedFd> {
    Ok(timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?)
}

/// Sets a timer to expire at this time of the monotonic clock, nanoseconds.
pub fn set_timer(timer: BorrowedFd<'_>, at: u64) -> io::Result<()> {
    // Zero would disarm it.
    let spec = Itimerspec { it_interval: timespec(0), it_value: timespec(at.max(1)) };
    timerfd_settime(timer, TimerfdTimerFlags::ABSTIME, &spec)?;
    Ok(())
}

/// Waits until a descriptor takes output, or a write to it fails, at most this many nanoseconds. Returns false
/// if neither happened.
pub fn takes_output(fd: BorrowedFd<'_>, nanoseconds: u64) -> io::Result<bool> {
    let mut polled = [PollFd::from_borrowed_fd(fd, PollFlags::OUT)];
    Ok(retry_on_intr(|| poll(&mut polled, Some(&timespec(nanoseconds))))? > 0)
}

/// Which descriptors had events at the end of the last wait.
#[derive(Default)]
pub struct Polled(Vec<bool>);

impl Polled {
    /// Waits until one of the descriptors, or `last`, is readable, at most this many nanoseconds.
    pub fn wait(&mut self, fds: &[impl AsFd], last: Option<&OwnedFd>, nanoseconds: u64) -> io::Result<()> {
        self.0.clear();
        let all = fds.iter().map(AsFd::as_fd).chain(last.map(AsFd::as_fd));
        let mut polled: Vec<PollFd<'_>> = all.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        match poll(&mut polled, Some(&timespec(nanoseconds))) {
            Err(Errno::INTR) => Ok(()),
            result => {
                self.0.extend(polled.iter().map(|fd| !fd.revents().is_empty()));
                Ok(result.map(drop)?)
            }
        }
    }
    /// Whether the descriptor of this index had an event at the end of the last wait.
    pub fn is_readable(&self, index: usize) -> bool {
        self.0.get(index).is_some_and(|&readable| readable)
    }
}

//! Real time in the core's units, and waits.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use explicate_core::units::Time;

use crate::sys::{self, Polled};

/// A clock that counts nanoseconds from its own epoch.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    epoch: u64,
}

impl Clock {
    /// A clock whose epoch is now.
    pub fn start() -> Clock {
        Clock { epoch: sys::monotonic() }
    }
    /// A clock whose epoch is this far ahead; it reads zero until then.
    pub fn start_in(span: Time) -> Clock {
        Clock { epoch: sys::monotonic() + span.0 }
    }
    /// Converts a time of the monotonic clock.
    pub fn of(&self, monotonic: u64) -> Time {
        Time(monotonic.saturating_sub(self.epoch))
    }
    /// The current time.
    pub fn now(&self) -> Time {
        Time(sys::monotonic().saturating_sub(self.epoch))
    }
    /// How long ago its epoch was.
    pub fn elapsed(&self) -> Duration {
        Duration::from_nanos(self.now().0)
    }
    /// Sleeps until its epoch, or until a signal arrives.
    pub fn wait_for_start(&self) {
        sys::sleep_until(self.epoch);
    }
    /// Sleeps until this time, or until a signal arrives.
    pub fn sleep_until(&self, time: Time) {
        if self.now() < time {
            sys::sleep_until(self.at(time));
        }
    }
}

/// Longest wait, after which a loop checks whether to stop.
const LONGEST: Time = Time::millis(100);

/// Waits for packets and for points in time.
pub struct Waiter {
    clock: Clock,
    /// Without a timer each wait has its own limit, which is cheaper where most waits end with a packet.
    timer: Option<OwnedFd>,
    set: Time,
    polled: Polled,
}

impl Waiter {
    /// Waits by the limit of the call itself, which is as exact as a timer once the thread's timer slack is minimal.
    pub fn new(clock: Clock) -> Waiter {
        sys::sharpen_timers();
        Waiter { clock, timer: None, set: Time::NEVER, polled: Polled::default() }
    }
    /// Waits by a timer of its own, for pacing.
    pub fn with_timer(clock: Clock) -> io::Result<Waiter> {
        Ok(Waiter { timer: Some(sys::timer()?), ..Waiter::new(clock) })
    }
    /// Waits until one of `sockets` is readable or until `until`, at most a tenth of a second.
    pub fn wait(&mut self, sockets: &[impl AsFd], until: Time) -> io::Result<()> {
        let now = self.clock.now();
        let until = until.min(now + LONGEST);
        let left = until.since(now).0;
        let Some(timer) = self.timer.as_ref().filter(|_| left > 0) else {
            return self.polled.wait(sockets, None, left);
        };
        // A timer set for an earlier time may stay: it only ends this wait early.
        if self.set <= now || self.set > until {
            sys::set_timer(timer.as_fd(), self.clock.at(until))?;
            self.set = until;
        }
        self.polled.wait(sockets, Some(timer), LONGEST.0)
    }
    /// Whether the socket of this index was readable at the end of the last wait.
    pub fn is_readable(&self, index: usize) -> bool {
        self.polled.is_readable(index)
    }
}

impl Clock {
    /// Converts to the system's monotonic clock, nanoseconds.
    fn at(&self, time: Time) -> u64 {
        self.epoch + time.0
    }
}

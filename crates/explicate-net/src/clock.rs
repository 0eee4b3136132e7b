//! Real time as the core counts it, and waiting for it.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use explicate_core::units::Time;

use crate::sys::{self, Polled};

/// Counts nanoseconds from an epoch of its own.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    epoch: u64,
}

impl Clock {
    /// Its epoch is now.
    pub fn start() -> Clock {
        Clock { epoch: sys::monotonic() }
    }
    /// Its epoch lies so far ahead: until then it says zero.
    pub fn start_in(span: Time) -> Clock {
        Clock { epoch: sys::monotonic() + span.0 }
    }
    /// What it says when the monotonic clock says so.
    pub fn of(&self, monotonic: u64) -> Time {
        Time(monotonic.saturating_sub(self.epoch))
    }
    /// The present.
    pub fn now(&self) -> Time {
        Time(sys::monotonic().saturating_sub(self.epoch))
    }
    /// Sleeps until its epoch, before which it says zero too, or until a signal comes.
    pub fn wait_for_start(&self) {
        sys::sleep_until(self.epoch);
    }
    /// Sleeps until it says so, or a signal comes.
    pub fn sleep_until(&self, time: Time) {
        if self.now() < time {
            sys::sleep_until(self.at(time));
        }
    }
}

/// Longest wait: after it a loop looks whether it was told to stop.
const LONGEST: Time = Time::millis(100);

/// Waits for packets and for points in time.
pub struct Waiter {
    clock: Clock,
    /// Where a packet a wait is the rule, a timer that needs not be set anew each time saves nothing.
    timer: Option<OwnedFd>,
    set: Time,
    polled: Polled,
}

impl Waiter {
    /// Waits by the limit of the call itself, which is as sharp as a timer once the thread's timers are.
    pub fn new(clock: Clock) -> Waiter {
        sys::sharpen_timers();
        Waiter { clock, timer: None, set: Time::NEVER, polled: Polled::default() }
    }
    /// Waits by a timer of its own, which paces what is sent.
    pub fn with_timer(clock: Clock) -> io::Result<Waiter> {
        Ok(Waiter { timer: Some(sys::timer()?), ..Waiter::new(clock) })
    }
    /// Waits until one of `sockets` has something to read, or `until`, or a while.
    pub fn wait(&mut self, sockets: &[impl AsFd], until: Time) -> io::Result<()> {
        let now = self.clock.now();
        let until = until.min(now + LONGEST);
        let left = until.since(now).0;
        let Some(timer) = self.timer.as_ref().filter(|_| left > 0) else {
            return self.polled.wait(sockets, None, left);
        };
        // One that is set for an earlier time comes first, and then there is nothing to do yet.
        if self.set <= now || self.set > until {
            sys::set_timer(timer.as_fd(), self.clock.at(until))?;
            self.set = until;
        }
        self.polled.wait(sockets, Some(timer), LONGEST.0)
    }
    /// Whether the socket of this number had something to read when the last wait ended.
    pub fn is_readable(&self, index: usize) -> bool {
        self.polled.is_readable(index)
    }
}

impl Clock {
    /// A time by the system's clock, nanoseconds.
    fn at(&self, time: Time) -> u64 {
        self.epoch + time.0
    }
}

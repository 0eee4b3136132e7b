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

/// How long a loop stood still in a span of time: it was due, and the machine did not run it.
#[derive(Clone, Copy, Default, Debug)]
pub struct Stalls {
    /// The span; without one nothing counts.
    span: (Time, Time),
    /// When it ran last.
    ran: Time,
    /// The sum of stalls longer than the longest wait.
    pub lost: Time,
}

impl Stalls {
    /// Counts from one time to another.
    pub fn within(from: Time, until: Time) -> Stalls {
        Stalls { span: (from, until), ..Stalls::default() }
    }
    /// The loop runs at `now`, and was due at `due`, or when it ran last if that was later.
    pub fn run(&mut self, due: Time, now: Time) {
        let due = due.max(self.ran);
        self.ran = now;
        if now.since(due) > LONGEST {
            self.lost += now.min(self.span.1).since(due.max(self.span.0));
        }
    }
    /// When a loop is due that waits until `until` with a [`Waiter`].
    pub fn waits(&self, until: Time) -> Time {
        until.min(self.ran + LONGEST)
    }
    /// The span's length.
    pub fn span(&self) -> Time {
        self.span.1.since(self.span.0)
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    /// What is lost of the span from 2 to 12 s by a loop that is due every 100 ms and stands still from one second to another.
    fn lost(from: u64, until: u64) -> Time {
        let mut stalls = Stalls::within(Time::secs(2), Time::secs(12));
        for tick in (1..150).filter(|tick| !(10 * from < *tick && *tick < 10 * until)) {
            let now = Time::millis(100 * tick);
            stalls.run(stalls.waits(Time::secs(15)), now);
        }
        stalls.lost
    }

    /// A stall begins when the wait before it should have ended.
    #[test]
    fn what_a_loop_misses_of_the_span_counts() {
        assert_eq!(lost(0, 0), Time::ZERO);
        assert_eq!(lost(4, 7), Time::millis(2_900));
        assert_eq!(lost(0, 3), Time::secs(1), "before the span");
        assert_eq!(lost(11, 14), Time::millis(900), "after it");
        assert_eq!(lost(1, 13), Time::secs(10));
        assert_eq!(Stalls::within(Time::secs(2), Time::secs(12)).span(), Time::secs(10));
        let mut late = Stalls::within(Time::ZERO, Time::secs(10));
        late.run(Time::ZERO, Time::secs(9));
        assert_eq!(late.lost, Time::secs(9), "it ran for the first time");
        let mut waits = Stalls::within(Time::ZERO, Time::secs(10));
        waits.run(Time::secs(9), Time::secs(9));
        assert_eq!(waits.lost, Time::ZERO, "it was not due");
    }
}

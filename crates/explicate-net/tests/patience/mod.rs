//! How long the tests of this crate wait for what has to come. One limit for all, far beyond what a busy machine needs: it ends a test
//! whose event never comes, and judges no speed.

use std::io::{self, ErrorKind};
use std::process::{Child, ExitStatus};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The limit of every wait for an event.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// Waits until something is so.
#[expect(clippy::disallowed_methods, reason = "no result depends on this clock: it ends a wait that is in vain")]
pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "in vain: {what}");
        sleep(Duration::from_millis(2));
    }
}

/// Does it again for as long as it is interrupted: a process that was stopped and goes on finds a call that waits on a socket with a
/// limit interrupted, signal(7).
pub(crate) fn uninterrupted<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

/// Waits for the end of a program, which is killed if it does not come.
pub(crate) fn ended(child: &mut Child) -> ExitStatus {
    let end = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let mut status = None;
        eventually("the program ends", || {
            status = child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }));
    end.unwrap_or_else(|panic| {
        let _ = child.kill();
        let _ = child.wait();
        std::panic::resume_unwind(panic)
    })
}

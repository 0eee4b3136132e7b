//! Output to the user. A closed pipe or a full disk behind it is an error like others.

use std::fmt::Display;
use std::io::{Write, stderr, stdout};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, channel, sync_channel};
use std::thread;
use std::time::Duration;

use explicate_core::units::Time;

use crate::clock::Clock;
use crate::error::{Context, Error, Result};

/// How long the end of a program waits for its last report to be read.
const PATIENCE: Time = Time::secs(1);

/// Writes lines to standard output.
pub(super) fn say(text: impl Display) -> Result<()> {
    write_line(&mut stdout().lock(), text)
}

fn write_line(out: &mut impl Write, text: impl Display) -> Result<()> {
    writeln!(out, "{text}").and_then(|()| out.flush()).or_fail(|| "write to standard output".to_string())
}

/// Writes a line to standard error; errors of that are ignored.
pub(super) fn complain(text: impl Display) {
    let _ = writeln!(stderr(), "explicated: {text}");
}

/// Writes reports in a thread of its own, so that forwarding goes on when they are not read.
pub(super) struct Reporter {
    /// Room for one report beside the one that is being written.
    reports: SyncSender<String>,
    written: Receiver<Result<()>>,
    /// Reports are being dropped, which the log says once.
    drops: bool,
}

impl Reporter {
    /// To standard output.
    pub(super) fn start() -> Reporter {
        Reporter::to(stdout())
    }
    fn to(mut out: impl Write + Send + 'static) -> Reporter {
        let (reports, texts) = sync_channel::<String>(1);
        let (results, written) = channel();
        thread::spawn(move || {
            for text in texts {
                if results.send(write_line(&mut out, text)).is_err() {
                    return;
                }
            }
        });
        Reporter { reports, written, drops: false }
    }
    /// Writes a report, or drops it while two others have not been read. Errors go to the log.
    pub(super) fn report(&mut self, text: String) {
        while let Ok(result) = self.written.try_recv() {
            if let Err(error) = result {
                tracing::warn!(%error, "cannot write a report");
            }
        }
        let full = matches!(self.reports.try_send(text), Err(TrySendError::Full(_)));
        if full && !self.drops {
            tracing::warn!("standard output is not read: reports are dropped, and forwarding goes on");
        }
        self.drops = full;
    }
    /// Writes the last report, and waits for it, but not for a reader that has stopped.
    pub(super) fn finish(self, text: String) -> Result<()> {
        let Reporter { reports, written, .. } = self;
        let unread = || Error::Failed("cannot write the last report: standard output is not read".to_string());
        let clock = Clock::start();
        let mut left = Some(text);
        while let Some(text) = left.take() {
            match reports.try_send(text) {
                Err(TrySendError::Full(_)) if clock.now() >= PATIENCE => return Err(unread()),
                Err(TrySendError::Full(text)) => {
                    left = Some(text);
                    thread::sleep(Duration::from_millis(10));
                }
                Ok(()) | Err(TrySendError::Disconnected(_)) => (),
            }
        }
        drop(reports);
        let mut last = Ok(());
        loop {
            match written.recv_timeout(Duration::from_nanos(PATIENCE.since(clock.now()).0)) {
                Ok(result) => last = result,
                Err(RecvTimeoutError::Disconnected) => return last,
                Err(RecvTimeoutError::Timeout) => return Err(unread()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use super::*;

    /// Keeps what is written.
    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn the_last_report_is_written_before_the_end() {
        let out = Kept::default();
        let mut reporter = Reporter::to(out.clone());
        reporter.report("first".to_string());
        reporter.finish("last".to_string()).unwrap();
        assert_eq!(*out.0.lock().unwrap(), b"first\nlast\n");
    }

    /// The reader of a pipe has stopped: reports cost no time, and the end comes.
    #[test]
    fn a_reader_that_has_stopped_stops_nothing() {
        let (unread, out) = io::pipe().unwrap();
        let mut reporter = Reporter::to(out);
        let clock = Clock::start();
        // 400 kB, where a pipe holds 64.
        for _ in 0..100 {
            reporter.report("x".repeat(4096));
            thread::sleep(Duration::from_millis(1));
        }
        assert!(clock.now() < PATIENCE, "{:?}", clock.now());
        let error = reporter.finish("last".to_string()).unwrap_err();
        assert!(error.to_string().contains("is not read"), "{error}");
        assert!(clock.now() < Time::secs(4));
        drop(unread);
    }

    #[test]
    fn an_error_of_the_last_report_is_returned() {
        let (unread, out) = io::pipe().unwrap();
        drop(unread);
        let error = Reporter::to(out).finish("last".to_string()).unwrap_err();
        assert!(error.to_string().contains("write to standard output"), "{error}");
    }
}

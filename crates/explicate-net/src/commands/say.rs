//! Output to the user. A closed pipe or a full disk behind it is an error like others.

use std::fmt::Display;
use std::io::{self, Stdout, Write, stderr, stdout};
use std::os::fd::AsFd;

use explicate_core::units::Time;

use crate::clock::Clock;
use crate::error::{Context, Error, Result};
use crate::sys;

/// Bytes that a pipe with room takes without blocking (`PIPE_BUF`).
const BLOCK: usize = 4096;
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

/// Writes reports as far as they are read, so that forwarding goes on when they are not.
///
/// It writes only what the output takes at once. The output stays blocking, because other processes may share it.
pub(super) struct Reporter<W> {
    out: W,
    /// The rest of a report.
    left: Vec<u8>,
    /// Reports are being dropped, which the log says once.
    drops: bool,
}

impl Reporter<Stdout> {
    pub(super) fn to_stdout() -> Self {
        Reporter::to(stdout())
    }
}

impl<W: AsFd> Reporter<W> {
    fn to(out: W) -> Self {
        Reporter { out, left: Vec::new(), drops: false }
    }
    /// Begins to write a report, or drops it while the one before has not been read. Errors go to the log.
    pub(super) fn report(&mut self, text: impl Display) {
        self.go_on();
        let full = !self.left.is_empty();
        if full && !self.drops {
            tracing::warn!("standard output is not read: reports are dropped, and forwarding goes on");
        }
        self.drops = full;
        if !full {
            self.left = format!("{text}\n").into_bytes();
            self.go_on();
        }
    }
    /// Writes the rest of the last report as far as the output takes it. Errors go to the log.
    pub(super) fn go_on(&mut self) {
        if let Err(error) = self.write_for(Time::ZERO) {
            tracing::warn!(%error, "cannot write a report");
            self.left.clear();
        }
    }
    /// Writes the last report, and waits for its reader, but not for one that has stopped.
    pub(super) fn finish(mut self, text: impl Display) -> Result<()> {
        self.left.extend(format!("{text}\n").into_bytes());
        self.write_for(PATIENCE).or_fail(|| "write to standard output".to_string())?;
        if self.left.is_empty() {
            return Ok(());
        }
        Err(Error::Failed("cannot write the last report: standard output is not read".to_string()))
    }
    /// Writes what is left, and waits no longer than this for the output to take it.
    fn write_for(&mut self, patience: Time) -> io::Result<()> {
        let clock = Clock::start();
        while !self.left.is_empty() && sys::takes_output(self.out.as_fd(), patience.since(clock.now()).0)? {
            let block = &self.left[..self.left.len().min(BLOCK)];
            let written = rustix::io::retry_on_intr(|| rustix::io::write(&self.out, block))?;
            self.left.drain(..written);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::thread;
    use std::time::Duration;

    use super::*;

    /// What has been read in part arrives whole, and those dropped leave nothing.
    #[test]
    fn a_slow_reader_gets_whole_reports() {
        let (mut reads, out) = io::pipe().unwrap();
        let mut reporter = Reporter::to(out);
        for digit in 0..10 {
            reporter.report(digit.to_string().repeat(50_000));
        }
        let mut text = vec![0; 50_000];
        reads.read_exact(&mut text).unwrap();
        reporter.go_on();
        let reader = thread::spawn(move || {
            let mut text = String::new();
            reads.read_to_string(&mut text).map(|_| text)
        });
        reporter.finish("last").unwrap();
        let rest = format!("\n{}\nlast\n", "1".repeat(50_000));
        assert_eq!(reader.join().unwrap().unwrap(), rest);
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
        let error = reporter.finish("last").unwrap_err();
        assert!(error.to_string().contains("is not read"), "{error}");
        assert!(clock.now() < Time::secs(4));
        drop(unread);
    }

    #[test]
    fn an_error_of_the_last_report_is_returned() {
        let (unread, out) = io::pipe().unwrap();
        drop(unread);
        let error = Reporter::to(out).finish("last").unwrap_err();
        assert!(error.to_string().contains("write to standard output"), "{error}");
    }
}

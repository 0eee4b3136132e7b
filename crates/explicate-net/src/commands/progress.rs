//! Progress of a file on a terminal: a line on standard error that is overwritten.

use std::io::{IsTerminal, Write, stderr, stdout};

use explicate_core::units::Time;

/// Interval between two lines.
const EVERY: Time = Time::millis(250);
/// Time constant of the mean rate behind the remaining time.
const MEAN: Time = Time::secs(5);

/// The line of one file.
pub(super) struct Progress {
    name: String,
    size: u64,
    due: Time,
    /// Time, bytes and rate at the last count.
    before: Option<(Time, u64, f64)>,
    /// Whether standard output is a terminal too, where lines of progress would interfere.
    pub(super) alone: bool,
}

impl Progress {
    /// For so many bytes, if standard error is a terminal.
    pub(super) fn new(name: String, size: u64, json: bool) -> Option<Progress> {
        let line = !json && stderr().is_terminal();
        line.then(|| Progress { name, size, due: EVERY, before: None, alone: stdout().is_terminal() })
    }
    /// Writes the line for this many bytes if it is due; without a number the other end checks them.
    pub(super) fn show(&mut self, now: Time, done: Option<u64>) {
        if self.due > now {
            return;
        }
        self.due = now + EVERY;
        let line = match done {
            None => format!("{}: 100 %, the other end verifies it", self.name),
            Some(done) => self.line(now, done.min(self.size)),
        };
        let _ = write!(stderr(), "\r{line}\x1b[K");
    }
    /// The line for this many bytes.
    fn line(&mut self, now: Time, done: u64) -> String {
        let rate = match self.before {
            Some((then, before, rate)) => {
                let span = now.since(then).as_secs_f64().max(1e-3);
                let latest = done.saturating_sub(before) as f64 / span;
                let weight = if rate > 0.0 { (span / MEAN.as_secs_f64()).min(1.0) } else { 1.0 };
                rate + weight * (latest - rate)
            }
            None => 0.0,
        };
        self.before = Some((now, done, rate));
        let percent = done.saturating_mul(100).checked_div(self.size).unwrap_or(100);
        let mut line = format!("{}: {percent:3} %, {} of {}", self.name, amount(done), amount(self.size));
        if rate > 0.0 {
            let left = (self.size - done) as f64 / rate;
            line += &format!(", {:.1} Mbit/s, {} left", 8e-6 * rate, span(left));
        }
        line
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        let _ = write!(stderr(), "\r\x1b[K");
    }
}

/// A number of bytes with a unit.
fn amount(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} B"),
        10_000..10_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        10_000_000..10_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}

/// A duration with units.
fn span(seconds: f64) -> String {
    let seconds = seconds.min(1e9).ceil() as u64;
    match seconds {
        0..100 => format!("{seconds} s"),
        100..6000 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        _ => format!("{} h {:02} min", seconds / 3600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_has_the_share_and_the_remaining_time() {
        let (name, due, before) = ("a.iso".to_string(), Time::ZERO, None);
        let mut progress = Progress { name, size: 30_000_000, due, before, alone: false };
        assert_eq!(progress.line(Time::secs(1), 3_000_000), "a.iso:  10 %, 3000.0 kB of 30.0 MB");
        let second = progress.line(Time::secs(2), 6_000_000);
        assert_eq!(second, "a.iso:  20 %, 6000.0 kB of 30.0 MB, 24.0 Mbit/s, 8 s left");
        // The rate halves; the remaining time follows a mean.
        let third = progress.line(Time::secs(3), 7_500_000);
        assert_eq!(third, "a.iso:  25 %, 7500.0 kB of 30.0 MB, 21.6 Mbit/s, 9 s left");
        let last = progress.line(Time::secs(13), 30_000_000);
        assert!(last.starts_with("a.iso: 100 %, 30.0 MB of 30.0 MB") && last.ends_with(" 0 s left"), "{last}");
        // Nothing is acknowledged for a while: the remaining time is unknown.
        let (name, before) = ("b".to_string(), Some((Time::ZERO, 5, 0.0)));
        let mut progress = Progress { name, size: 10, due, before, alone: false };
        assert_eq!(progress.line(Time::secs(1), 5), "b:  50 %, 5 B of 10 B");
        progress.size = 0;
        assert_eq!(progress.line(Time::secs(1), 0), "b: 100 %, 0 B of 0 B");
        assert_eq!([99.2, 100.5, 7322.0].map(span), ["1 min 40 s", "1 min 41 s", "2 h 02 min"]);
    }
}

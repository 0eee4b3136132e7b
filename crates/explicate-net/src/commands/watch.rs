//! `explicated gateway status --watch`.

use std::io::{IsTerminal, Write, stdout};
use std::path::Path;
use std::thread;
use std::time::Duration;

use rustix::termios::tcgetwinsize;

use crate::error::{Context, Result};
use crate::gateway::{screen, status};
use crate::sys;

/// How often a signal is looked for.
const TURN: Duration = Duration::from_millis(50);
/// A terminal that does not tell its size.
const SIZE: (usize, usize) = (24, 80);

/// The second screen of a terminal, until it is dropped: the first one comes back as it was, with its cursor.
struct Screen;

impl Screen {
    fn open() -> Result<Screen> {
        print("\x1b[?1049h\x1b[?25l")?;
        Ok(Screen)
    }
    /// Replaces what is shown, line by line and at once: nothing is empty in between.
    fn show(&self, lines: &[String]) -> Result<()> {
        let lines = lines.iter().map(|line| format!("{line}\x1b[K")).collect::<Vec<_>>().join("\r\n");
        print(&format!("\x1b[H{lines}\x1b[J"))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // A terminal that is gone needs nothing.
        let _ = print("\x1b[?25h\x1b[?1049l");
    }
}

fn print(text: &str) -> Result<()> {
    let mut out = stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).or_fail(|| "write to standard output".to_string())
}

/// Rows and columns.
fn size() -> (usize, usize) {
    let told = tcgetwinsize(stdout()).ok().map(|size| (size.ws_row as usize, size.ws_col as usize));
    told.filter(|(rows, columns)| *rows > 0 && *columns > 0).unwrap_or(SIZE)
}

/// Shows the state again and again, until a signal; as plain lines where there is no terminal.
pub(super) fn run(path: &Path, every: Duration) -> Result<()> {
    // Without a gateway there is nothing to watch. One that stops meanwhile may come back.
    let mut report = Ok(status::ask(path)?);
    let terminal = stdout().is_terminal().then(Screen::open).transpose()?;
    let mut before = None;
    while !sys::stopped() {
        let (rows, columns) = if terminal.is_some() { size() } else { (usize::MAX, usize::MAX) };
        let lines = match &report {
            Ok(report) => screen::lines(report, before.as_ref(), (rows, columns)),
            Err(error) => vec![screen::cut(&format!("{error}"), columns)],
        };
        match (&terminal, &report) {
            (Some(terminal), _) => terminal.show(&lines)?,
            (None, Ok(_)) => print(&format!("{}\n\n", lines.join("\n")))?,
            (None, Err(_)) => return report.map(drop),
        }
        before = report.ok();
        let next = sys::monotonic() + every.as_nanos() as u64;
        while !sys::stopped() && sys::monotonic() < next {
            thread::sleep(TURN.min(every));
        }
        report = status::ask(path);
    }
    Ok(())
}

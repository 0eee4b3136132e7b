//! `send --series`: variables over time, as CSV.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use explicate_core::units::Time;

use crate::error::{Context, Result};

/// How often the series has lines.
const EVERY: Time = Time::millis(50);

/// A file of flows' variables over time.
pub(super) struct Series {
    out: Option<BufWriter<File>>,
    due: Time,
}

impl Series {
    /// Writes into this file; without one, nothing.
    pub(super) fn open(path: Option<&Path>) -> Result<Series> {
        let Some(path) = path else { return Ok(Series { out: None, due: Time::NEVER }) };
        let made = File::create(path).and_then(|file| {
            let mut out = BufWriter::new(file);
            writeln!(out, "time_s,flow,variable,value")?;
            Ok(out)
        });
        let out = made.or_fail(|| format!("write {}", path.display()))?;
        Ok(Series { out: Some(out), due: EVERY })
    }
    /// Writes the variables of all flows if they are due; `probe` is given what writes one, for the number of a flow.
    pub(super) fn write(
        &mut self,
        now: Time,
        probe: impl FnOnce(&mut dyn FnMut(u32, &'static str, f64)),
    ) -> Result<()> {
        let Some(out) = self.out.as_mut().filter(|_| self.due <= now) else { return Ok(()) };
        self.due = now + EVERY;
        let mut text = String::new();
        probe(&mut |flow, variable, value| {
            let value = if value.is_nan() { String::new() } else { value.to_string() };
            text += &format!("{:.6},{flow},{variable},{value}\n", now.as_secs_f64());
        });
        out.write_all(text.as_bytes()).and_then(|()| out.flush()).or_fail(|| "write the series".to_string())
    }
}

//! Files of recorded capacity in the mahimahi format: one whole number per line, the millisecond of a delivery
//! opportunity, never less than the line before.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::limits;

/// Latest time in a trace, milliseconds.
const LATEST: u64 = (limits::SECONDS * 1e3) as u64;

/// Reads a trace relative to `base`; the error is a sentence that names file, line and remedy.
pub(crate) fn load(base: &Path, name: &str) -> Result<Vec<u64>, String> {
    let path = base.join(name);
    let open = |e: std::io::Error| format!("cannot read `{name}` (paths are relative to the scenario's folder): {e}");
    let file = File::open(&path).map_err(open)?;
    let meta = file.metadata().map_err(open)?;
    if !meta.is_file() {
        return Err(format!("`{name}` is not a file"));
    }
    let mut text = String::new();
    let read = file.take(limits::TRACE_BYTES + 1).read_to_string(&mut text);
    read.map_err(|_| format!("`{name}` is not text; a trace has one whole number of milliseconds per line"))?;
    if text.len() as u64 > limits::TRACE_BYTES {
        return Err(format!("`{name}` has more than {} MiB; cut it into shorter traces", limits::TRACE_BYTES >> 20));
    }
    parse(name, &text)
}

/// The same from files in memory. Folders in the name are ignored.
pub(crate) fn find(files: &BTreeMap<String, String>, name: &str) -> Result<Vec<u64>, String> {
    let last = name.rsplit(['/', '\\']).next().unwrap_or(name);
    let text = files.get(last).ok_or_else(|| format!("`{name}` is missing; add this file to the scenario"))?;
    parse(name, text)
}

/// Parses the text of a trace.
pub(crate) fn parse(name: &str, text: &str) -> Result<Vec<u64>, String> {
    let mut millis: Vec<u64> = Vec::new();
    for (i, line) in text.lines().enumerate() {
        let wrong = |what: String| format!("{name}:{}:1: {what}", i + 1);
        let shown: String = line.chars().take(40).collect();
        let digits = line.trim_end();
        if digits.is_empty() {
            return Err(wrong("an empty line; remove it, every line is one millisecond".to_string()));
        }
        let value: u64 = match digits.parse() {
            Ok(value) if value <= LATEST => value,
            _ if digits.bytes().all(|b| b.is_ascii_digit()) => {
                return Err(wrong(format!(
                    "`{shown}` is too large; a trace has at most {LATEST} milliseconds (three years)"
                )));
            }
            _ if digits.starts_with('#') => {
                return Err(wrong("a trace has no comments; remove the line".to_string()));
            }
            _ => return Err(wrong(format!("`{shown}` is not a whole number of milliseconds"))),
        };
        if let Some(&last) = millis.last().filter(|&&last| last > value) {
            return Err(wrong(format!("{value} comes after {last}; sort the lines, times never go back")));
        }
        millis.push(value);
    }
    match millis.last() {
        None => Err(format!("`{name}` is empty; a trace needs at least one line")),
        Some(0) => Err(format!("`{name}` ends at 0 ms and so has no length; its last line must be greater than 0")),
        Some(_) => Ok(millis),
    }
}

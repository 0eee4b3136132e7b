//! Output to the user. A closed pipe or a full disk behind it is an error like others.

use std::fmt::Display;
use std::io::{Write, stderr, stdout};

use crate::error::{Context, Result};

/// Writes lines to standard output.
pub(super) fn say(text: impl Display) -> Result<()> {
    let mut out = stdout().lock();
    writeln!(out, "{text}").and_then(|()| out.flush()).or_fail(|| "write to standard output".to_string())
}

/// Writes a line to standard error; errors of that are ignored.
pub(super) fn complain(text: impl Display) {
    let _ = writeln!(stderr(), "explicated: {text}");
}

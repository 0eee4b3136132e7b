//! Talking to the user. Whoever reads may have gone, the disk behind it may be full: that is an error like others.

use std::fmt::Display;
use std::io::{Write, stderr, stdout};

use crate::error::{Context, Result};

/// A line, or some, on standard output.
pub(super) fn say(text: impl Display) -> Result<()> {
    let mut out = stdout().lock();
    writeln!(out, "{text}").and_then(|()| out.flush()).or_fail(|| "write to standard output".to_string())
}

/// A line on standard error; where that is gone nobody can be told.
pub(super) fn complain(text: impl Display) {
    let _ = writeln!(stderr(), "explicated: {text}");
}

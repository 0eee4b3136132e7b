//! `explicated keygen`.

use super::say::say;
use crate::cli::Keygen;
use crate::endpoint::auth::Key;
use crate::error::Result;

pub(super) fn run(args: &Keygen) -> Result<()> {
    Key::random()?.save(&args.file)?;
    say(format!("{}: a new key; copy it to the other end over a confidential channel", args.file.display()))
}

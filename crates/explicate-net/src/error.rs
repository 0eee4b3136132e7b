//! What goes wrong, in words for whoever typed the command.

use std::fmt;
use std::io;

/// An error of a command.
#[derive(Debug)]
pub enum Error {
    /// What was asked for makes no sense; says what would. Exit status 2.
    Input(String),
    /// It was carried out and failed. Exit status 1.
    Failed(String),
}

/// What commands return.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// The exit status of a command that ends so.
    pub fn status(&self) -> u8 {
        match self {
            Error::Input(_) => 2,
            Error::Failed(_) => 1,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Error::Input(message) | Error::Failed(message)) = self;
        f.write_str(message)
    }
}

impl std::error::Error for Error {}

/// Says what could not be done when the system refuses.
pub trait Context<T> {
    /// The error says `what` could not be done, and the system's reason.
    fn or_fail(self, what: impl FnOnce() -> String) -> Result<T>;
}

impl<T> Context<T> for io::Result<T> {
    fn or_fail(self, what: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|reason| {
            let hint = match reason.kind() {
                io::ErrorKind::PermissionDenied => " (needs CAP_NET_RAW and CAP_NET_ADMIN; run as root)",
                _ => "",
            };
            Error::Failed(format!("cannot {}: {reason}{hint}", what()))
        })
    }
}

//! Errors of commands, and their exit status.

use std::io;

/// An error of a command.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Invalid arguments or input; the message says what is valid. Exit status 2.
    #[error("{0}")]
    Input(String),
    /// The command failed. Exit status 1.
    #[error("{0}")]
    Failed(String),
}

/// The result of a command.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// The exit status of a command that ends with this error.
    pub fn status(&self) -> u8 {
        match self {
            Error::Input(_) => 2,
            Error::Failed(_) => 1,
        }
    }
}

/// Adds context to an error of the system.
pub trait Context<T> {
    /// Converts into an error that names the failed action, `what`, and the system's reason.
    fn or_fail(self, what: impl FnOnce() -> String) -> Result<T>;
}

impl<T> Context<T> for io::Result<T> {
    fn or_fail(self, what: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|reason| {
            // The mode of a file gives EACCES.
            let hint = match reason.raw_os_error() {
                Some(libc::EPERM) => " (needs CAP_NET_RAW and CAP_NET_ADMIN; run as root)",
                _ => "",
            };
            Error::Failed(format!("cannot {}: {reason}{hint}", what()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_may_not_be_read_needs_no_capabilities() {
        let said = |errno| {
            let error: io::Result<()> = Err(io::Error::from_raw_os_error(errno));
            error.or_fail(|| "read x".to_string()).unwrap_err().to_string()
        };
        assert!(said(libc::EPERM).contains("CAP_NET_RAW") && !said(libc::EACCES).contains("CAP_"));
    }
}

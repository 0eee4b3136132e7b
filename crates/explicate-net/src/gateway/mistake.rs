//! Mistakes in `gateway.toml`: where they stand, and what to write.

use explicate_scenario::problem::Problem;
use explicate_scenario::{locate, locate_bytes};

/// What is wrong with a part of the file.
pub type Checked = Result<(), Mistake>;

/// A mistake.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mistake {
    /// Paths of keys (`wan.rate`, `peer.hub.address`): it stands at the first one that is written.
    keys: Vec<String>,
    message: String,
}

impl Mistake {
    /// A mistake at this path of keys.
    pub fn at(key: impl Into<String>, message: impl Into<String>) -> Mistake {
        Mistake { keys: vec![key.into()], message: message.into() }
    }
    /// If its keys are not written, it stands at this one.
    pub fn or_at(mut self, key: impl Into<String>) -> Mistake {
        self.keys.push(key.into());
        self
    }
    /// The message begins with what it is about.
    pub fn of(self, what: &str) -> Mistake {
        Mistake { message: format!("{what}: {}", self.message), ..self }
    }
    /// The mistake behind file, line and column, and above the line of the file.
    pub fn located(self, text: &str, origin: &str) -> String {
        Problem { site: locate(text, origin, &[], &self.keys), message: self.message }.with_excerpt()
    }
}

/// The same of what the parser refuses.
pub fn of_toml(error: &toml::de::Error, text: &str, origin: &str) -> String {
    let site = locate_bytes(text, origin, error.span().unwrap_or_default());
    Problem { site, message: error.message().to_string() }.with_excerpt()
}

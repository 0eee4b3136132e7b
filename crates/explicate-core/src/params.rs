//! Parameters of protocols, recoveries, queues and channels, declared once beside the code that reads them. Scenario
//! keys, error messages, tables and documentation derive from the declaration.
//!
//! [`parameters!`] declares them as the fields of a struct, [`choices!`] an enum of words:
//!
//! ```
//! use explicate_core::params::{Auto, Fraction, Seconds, Values, choices, parameters};
//!
//! choices! {
//!     /// What a loss does to the window.
//!     enum OnLoss { Halve = "halve", Keep = "keep" }
//! }
//! parameters! {
//!     /// What a scenario can set.
//!     struct Settings {
//!         /// What a loss leaves of the window.
//!         keep: Fraction = 0.5, in 0.0..=1.0, "RFC 5681";
//!         /// What a loss does.
//!         on_loss: OnLoss = OnLoss::Halve, "RFC 5681";
//!         /// Time between two packets; auto: the smoothed round-trip time over the window.
//!         gap: Auto<Seconds> = None, "ours";
//!     }
//! }
//! let mut values = Values::default();
//! values.set(&Settings::PARAMS[0], 0.7);
//! let settings = Settings::of(&values);
//! assert_eq!((settings.keep, settings.on_loss, settings.gap), (0.7, OnLoss::Halve, None));
//! ```

pub use crate::{choices, parameters};

pub use self::kinds::*;

mod kinds;

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::units::{Rate, Time};

/// What the number of a parameter means, and how a scenario writes it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Unit {
    /// Seconds; written `"80ms"`.
    Seconds,
    /// Bits per second; written `"54Mbit/s"`.
    BitsPerSecond,
    /// Bytes; written `"1500B"`, `"64kB"`.
    Bytes,
    /// Packets or segments; written as a number or `"50pkt"`.
    Packets,
    /// A length of a queue, kept in bytes; written `"100kB"`, `"50pkt"` or `"1.0bdp"`.
    QueueLength,
    /// A dimensionless number.
    Number,
    /// A distance; written `"250m"`.
    Metres,
    /// A probability or ratio; written as a number or `"1%"`.
    Fraction,
    /// `true` or `false`, kept as 1 or 0.
    Flag,
    /// One of these words, stored as its index.
    Choice(&'static [&'static str]),
    /// Decibels; written as a number or `"20dB"`.
    Decibels,
    /// Rates over time, passed to the builder separately from the numbers (see [`Values::steps`]); written `[{ at =
    /// "0s", rate = "5Mbit/s" }]`.
    Steps,
    /// The name of a file, passed to the builder separately from the numbers (see [`Values::file`]).
    File,
}

/// A parameter: name, default, bounds and source.
#[derive(Clone, Copy, Debug)]
pub struct Param {
    /// The key in a scenario.
    pub name: &'static str,
    /// What the number means.
    pub unit: Unit,
    /// Default in the base unit; infinity is "unlimited", NaN is "auto" (the documentation gives its meaning).
    pub default: f64,
    /// Least accepted value.
    pub min: f64,
    /// Greatest accepted value.
    pub max: f64,
    /// Paper or RFC section.
    pub source: &'static str,
    /// One sentence.
    pub doc: &'static str,
}

impl Param {
    /// A parameter without bounds other than "not negative".
    pub const fn new(name: &'static str, unit: Unit, default: f64, source: &'static str, doc: &'static str) -> Param {
        Param { name, unit, default, min: 0.0, max: f64::INFINITY, source, doc }
    }
    /// Sets the bounds, both included.
    pub const fn within(mut self, min: f64, max: f64) -> Param {
        self.min = min;
        self.max = max;
        self
    }
}

/// The description of an entry of a registry. Scenario keys, tables and documentation derive from it.
pub struct Info {
    /// The name in scenarios and tables.
    pub name: &'static str,
    /// One sentence.
    pub summary: &'static str,
    /// Paper, RFC or standard.
    pub source: &'static str,
    /// Parameters.
    pub params: &'static [Param],
}

/// A parameter that is useless because of another one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Conflict {
    /// The useless parameter, and the other one.
    pub params: [&'static str; 2],
    /// What follows: the beginning of a sentence for the user.
    pub what: String,
    /// What to write: its end.
    pub write: String,
    /// The values contradict each other: other programs refuse them, and so does the scenario.
    pub refused: bool,
}

impl Conflict {
    /// A warning.
    pub fn new(params: [&'static str; 2], what: String, write: impl Into<String>) -> Conflict {
        Conflict { params, what, write: write.into(), refused: false }
    }
}

/// Values for a list of [`Param`]s: those that the scenario gives, and defaults for the rest.
#[derive(Clone, Debug, Default)]
pub struct Values {
    given: Vec<(&'static str, f64)>,
    /// Contents of the file that a [`Unit::File`] parameter names, parsed by the scenario: for traces the
    /// milliseconds of the delivery opportunities.
    pub file: Option<Arc<[u64]>>,
    /// The value of a [`Unit::Steps`] parameter: times and the rates that start at them, in order of time.
    pub steps: Option<Arc<[(Time, Rate)]>>,
}

impl Values {
    /// Sets a value, replacing an earlier one.
    pub fn set(&mut self, param: &Param, value: f64) {
        self.given.retain(|(name, _)| *name != param.name);
        self.given.push((param.name, value));
    }
    /// The value given for `name`, else the default that `params` declares, for code that receives the name at run
    /// time.
    ///
    /// # Panics
    /// If `params` does not declare the name: a mistake in the calling file, found by its first test.
    pub fn get(&self, params: &[Param], name: &str) -> f64 {
        self.number(name).unwrap_or_else(|| match params.iter().find(|p| p.name == name) {
            Some(p) => p.default,
            None => panic!("parameter `{name}` is read but not declared"),
        })
    }
    /// The value given for `name`.
    pub fn number(&self, name: &str) -> Option<f64> {
        self.given.iter().find(|(given, _)| *given == name).map(|(_, value)| *value)
    }
    /// The given values, in order.
    pub fn given(&self) -> &[(&'static str, f64)] {
        &self.given
    }
}

//! Shared media: air that several nodes use together. To add one, write its file and add its line here.
//!
//! A medium's file declares its parameters and computes what can be computed without knowing who sends when (durations,
//! error rates). The stations' state machines belong to the driver that owns the air; a simulator has them, and on a real
//! network the radio does.

use crate::params::{Param, Values};
use crate::units::Rate;

macro_rules! media {
    ($($module:ident::$unit:ident,)*) => {
        $(pub mod $module;)*
        /// Every medium, in the order of this list.
        pub static MEDIA: &[&dyn MediumKind] = &[$(&$module::$unit),*];
    };
}

media! {
    dcf::Dcf,
}

/// A shared medium: one file, registered by one line in `medium/mod.rs`.
pub trait MediumKind: Sync {
    /// The name in scenarios and tables.
    fn name(&self) -> &'static str;
    /// One sentence.
    fn summary(&self) -> &'static str;
    /// Standard or paper.
    fn source(&self) -> &'static str;
    /// Parameters.
    fn params(&self) -> &'static [Param];
    /// Nominal rate between two stations.
    fn rate(&self, values: &Values) -> Rate;
    /// Whether two stations may use this rate.
    fn has_rate(&self, rate: Rate) -> bool;
    /// Longest link, metres.
    fn reach(&self, values: &Values) -> f64;
}

//! Wireless media, which several nodes share. To add one, write its file and add its line here.
//!
//! A medium's file declares its parameters and computes durations and error rates, which do not depend on the
//! traffic; the folder of its name has the state machines of its stations. On a real network the radio has these.

use crate::params::{Conflict, Info, Values};
use crate::units::{Rate, Time};

macro_rules! media {
    ($($module:ident::$unit:ident,)*) => {
        $(pub mod $module;)*
        /// Every medium, in the order of this list.
        pub static MEDIA: &[&AnyMediumKind] = &[$(&$module::$unit),*];
    };
}

media! {
    dcf::Dcf,
}

/// An interferer, with the power of a station.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Interferer {
    /// Its position, metres.
    pub at: (f64, f64),
    /// Length of a burst, mean if random.
    pub on: Time,
    /// Pause between bursts, mean if random.
    pub off: Time,
    /// Lengths are exponential rather than fixed.
    pub random: bool,
}

/// A wireless medium: one file, registered by one line in `medium/mod.rs`.
pub trait MediumKind: Sync {
    /// Name, summary, source and parameters.
    const INFO: Info;
    /// Nominal rate between two stations.
    fn rate(&self, values: &Values) -> Rate;
    /// Whether two stations may use this rate.
    fn has_rate(&self, rate: Rate) -> bool;
    /// Maximum length of a link, metres.
    fn reach(&self, values: &Values) -> f64;
    /// The longest IP packet that a frame carries, bytes.
    fn longest_packet(&self) -> u16;
    /// Parameters that contradict each other.
    fn conflict(&self, values: &Values) -> Option<Conflict> {
        let _ = values;
        None
    }
    /// Why hardly a frame with an IP packet of `bytes` arrives between two stations that are this many metres apart.
    fn obstacle(&self, values: &Values, distance: f64, rate: Rate, bytes: u16) -> Option<Obstacle> {
        let _ = (values, distance, rate, bytes);
        None
    }
}

/// Why no frame arrives.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Obstacle {
    /// The stations are further apart than this, metres.
    Distance(f64),
    /// Noise destroys the frames at this rate.
    Noise,
}

/// Any [`MediumKind`].
pub type AnyMediumKind = dyn MediumKindObject;

mod object {
    use super::*;
    use crate::api::object::described;

    /// A [`MediumKind`] as an object; other crates cannot name it.
    pub trait MediumKindObject: Sync {
        described!();
        fn rate(&self, values: &Values) -> Rate;
        fn has_rate(&self, rate: Rate) -> bool;
        fn reach(&self, values: &Values) -> f64;
        fn longest_packet(&self) -> u16;
        fn conflict(&self, values: &Values) -> Option<Conflict>;
        fn obstacle(&self, values: &Values, distance: f64, rate: Rate, bytes: u16) -> Option<Obstacle>;
    }
    impl<K: MediumKind> MediumKindObject for K {
        fn info(&self) -> &'static Info {
            &K::INFO
        }
        fn rate(&self, values: &Values) -> Rate {
            MediumKind::rate(self, values)
        }
        fn has_rate(&self, rate: Rate) -> bool {
            MediumKind::has_rate(self, rate)
        }
        fn reach(&self, values: &Values) -> f64 {
            MediumKind::reach(self, values)
        }
        fn longest_packet(&self) -> u16 {
            MediumKind::longest_packet(self)
        }
        fn conflict(&self, values: &Values) -> Option<Conflict> {
            MediumKind::conflict(self, values)
        }
        fn obstacle(&self, values: &Values, distance: f64, rate: Rate, bytes: u16) -> Option<Obstacle> {
            MediumKind::obstacle(self, values, distance, rate, bytes)
        }
    }
}
use object::MediumKindObject;

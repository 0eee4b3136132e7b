//! Estimators of the available bandwidth of a path of plain routers. To add one, write its file and add its line
//! here. The capacity of a router's own hop is measured by `hop_capacity.rs`.
//!
//! An estimator is at one end of the path. It may send probes to the other end, which returns an echo of each with
//! its time of arrival; or it queries a [`PathOracle`], if the driver has one.

use alloc::boxed::Box;

use crate::agent::{Address, PathOracle};
use crate::params::{Auto, BitsPerSecond, Bytes, Info, Number, Values, choices, parameters};
use crate::rng::Rng;
use crate::units::Time;

pub mod hop_capacity;
mod search;

macro_rules! estimators {
    ($($module:ident::$unit:ident = $word:literal,)*) => {
        $(pub mod $module;)*
        /// Every estimator, in the order of this list.
        pub static ESTIMATORS: &[&AnyEstimatorKind] = &[$(&$module::$unit),*];
        choices! {
            /// One of [`ESTIMATORS`].
            pub enum Which { $($unit = $word),* }
        }
    };
}

estimators! {
    oracle::Oracle = "oracle",
    delay_trend::DelayTrend = "delay_trend",
    packet_train::PacketTrain = "packet_train",
    spruce::Spruce = "spruce",
}

impl Which {
    /// The estimator itself.
    pub fn kind(self) -> &'static AnyEstimatorKind {
        ESTIMATORS[self as usize]
    }
}

parameters! {
    /// Chooses an estimator.
    pub struct Choice {
        /// Estimator of the available bandwidth of a cloud of plain routers.
        estimator: Which = Which::Oracle, "paper I section III-A.3";
    }
}

parameters! {
    /// Parameters of the estimators that send probes.
    pub struct Probing {
        /// Maximum rate of probes on a path.
        probe_rate: BitsPerSecond = 3e5, in 1e3..=1e10, "Ribeiro et al., PAM 2003";
        /// IP length of a probe; auto: 300, Spruce 1500.
        probe_bytes: Auto<Bytes> = None, in 56.0..=9000.0, "Jain, Dovrolis 2002";
        /// Probes of a stream; auto: 40, Spruce 10 pairs.
        probes: Auto<Number> = None, in 4.0..=1000.0, "Jain, Dovrolis 2002";
        /// Rate of the first stream of a search.
        first_rate: BitsPerSecond = 2e6, in 1e3..=1e11, "ours";
    }
}

/// A kind of estimator: one file, registered by one line.
pub trait EstimatorKind: Sync {
    /// Name, summary, source and parameters.
    const INFO: Info;
    /// An estimator for one path.
    fn build(&self, init: EstimatorInit<'_>) -> Box<dyn Estimator>;
}

/// Any [`EstimatorKind`].
pub type AnyEstimatorKind = dyn EstimatorKindObject;

mod object {
    use super::*;
    use crate::api::object::described;

    /// A [`EstimatorKind`] as an object; other crates cannot name it.
    pub trait EstimatorKindObject: Sync {
        described!();
        fn build(&self, init: EstimatorInit<'_>) -> Box<dyn Estimator>;
    }
    impl<K: EstimatorKind> EstimatorKindObject for K {
        fn info(&self) -> &'static Info {
            &K::INFO
        }
        fn build(&self, init: EstimatorInit<'_>) -> Box<dyn Estimator> {
            EstimatorKind::build(self, init)
        }
    }
}
use object::EstimatorKindObject;

/// Arguments for making an estimator.
pub struct EstimatorInit<'a> {
    /// Values of the parameters of [`EstimatorKind::INFO`].
    pub values: &'a Values,
    /// This end of the path.
    pub own: Address,
    /// Its other end.
    pub peer: Address,
    /// Interval between estimates.
    pub period: Time,
    /// The random stream of the estimator.
    pub rng: Rng,
    /// Now.
    pub now: Time,
}

/// A probe to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProbePacket {
    /// Returned by its echo.
    pub index: u16,
    /// IP length, bytes.
    pub ip_len: u16,
}

/// Measures one path continually. When its timer expires, the agent first requests an estimate and then probes.
pub trait Estimator: Send {
    /// Sets the interval between estimates.
    fn set_period(&mut self, now: Time, period: Time);
    /// When something is due: a probe, a query of the oracle, or an estimate.
    fn poll_timeout(&self) -> Time;
    /// The oracle may be queried now.
    fn consult(&mut self, now: Time, oracle: &mut dyn PathOracle) {
        let _ = (now, oracle);
    }
    /// The next probe that is due.
    fn poll_probe(&mut self, now: Time) -> Option<ProbePacket> {
        let _ = now;
        None
    }
    /// An echo of a probe: when the probe was sent, and when it arrived by the other end's clock.
    fn handle_echo(&mut self, now: Time, index: u16, sent: Time, came: Time) {
        let _ = (now, index, sent, came);
    }
    /// A new estimate of the available bandwidth, bytes/s, once. Negative if the load exceeds the capacity of the
    /// path.
    fn poll_estimate(&mut self, now: Time) -> Option<f64>;
    /// Capacity of the link to which the last estimate applies, bytes/s, if the method measures it.
    fn capacity(&self) -> Option<f64> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::Unit;

    #[test]
    fn words_are_the_names_of_estimators() {
        let Unit::Choice(words) = Choice::PARAMS[0].unit else { panic!("a choice") };
        assert!(words.iter().copied().eq(ESTIMATORS.iter().map(|e| e.name())));
    }
}

//! Estimators of the bandwidth that a path of plain routers has left. To add one, write its file and add its line here.
//!
//! An estimator stands at one end of the path. It may send probes to the other end, which returns for each an echo with the
//! time at which it came; or it asks a [`PathOracle`], if the driver has one.

use alloc::boxed::Box;

use crate::agent::{Address, PathOracle};
use crate::params::{Auto, BitsPerSecond, Bytes, Info, Number, Values, choices, parameters};
use crate::rng::Rng;
use crate::units::Time;

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
        /// What measures the bandwidth that a cloud of plain routers has left.
        estimator: Which = Which::Oracle, "paper I section III-A.3";
    }
}

parameters! {
    /// Parameters of the estimators that send probes.
    pub struct Probing {
        /// Most that probes load a path with.
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

/// What an estimator is made from.
pub struct EstimatorInit<'a> {
    /// Values of the parameters of [`EstimatorKind::INFO`].
    pub values: &'a Values,
    /// This end of the path.
    pub own: Address,
    /// Its other end.
    pub peer: Address,
    /// How often an estimate is wanted.
    pub period: Time,
    /// The estimator's own stream.
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

/// Measures one path, again and again. When its time has come, it is asked for an estimate first and then for probes.
pub trait Estimator: Send {
    /// An estimate is wanted this often from now on.
    fn set_period(&mut self, now: Time, period: Time);
    /// When something is to be done: a probe is due, the oracle to be asked, an estimate ready.
    fn poll_timeout(&self) -> Time;
    /// The oracle may be asked now.
    fn consult(&mut self, now: Time, oracle: &mut dyn PathOracle) {
        let _ = (now, oracle);
    }
    /// The next probe that is due.
    fn poll_probe(&mut self, now: Time) -> Option<ProbePacket> {
        let _ = now;
        None
    }
    /// A probe has reached the other end: when it was sent, and when it came by the other end's clock.
    fn handle_echo(&mut self, now: Time, index: u16, sent: Time, came: Time) {
        let _ = (now, index, sent, came);
    }
    /// A new estimate of the available bandwidth, bytes/s, once. Negative: the path is loaded beyond what it can carry.
    fn poll_estimate(&mut self, now: Time) -> Option<f64>;
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

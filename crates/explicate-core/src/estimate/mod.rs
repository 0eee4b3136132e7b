//! Estimators of the bandwidth that a path of plain routers has left. To add one, write its file, add its line here and its
//! word to the parameter [`CHOICE`].
//!
//! An estimator stands at one end of the path. It may send probes to the other end, which returns for each an echo with the
//! time at which it came; or it asks a [`PathOracle`], if the driver has one.

use alloc::boxed::Box;

use crate::agent::{Address, PathOracle};
use crate::params::{Info, Param, Unit, Values};
use crate::rng::Rng;
use crate::units::Time;

mod search;

macro_rules! estimators {
    ($($module:ident::$unit:ident,)*) => {
        $(pub mod $module;)*
        /// Every estimator, in the order of this list.
        pub static ESTIMATORS: &[&AnyEstimatorKind] = &[$(&$module::$unit),*];
    };
}

estimators! {
    oracle::Oracle,
    delay_trend::DelayTrend,
    packet_train::PacketTrain,
    spruce::Spruce,
}

/// Chooses among [`ESTIMATORS`], by index.
pub const CHOICE: Param = Param::new(
    "estimator",
    Unit::Choice(&["oracle", "delay_trend", "packet_train", "spruce"]),
    0.0,
    "paper I section III-A.3",
    "What measures the bandwidth that a cloud of plain routers has left.",
);

/// Parameters of the estimators that send probes.
pub const PROBING: [Param; 4] = [
    Param::new(
        "probe_rate",
        Unit::BitsPerSecond,
        3e5,
        "Ribeiro et al., PAM 2003",
        "Most that probes load a path with.",
    )
    .within(1e3, 1e10),
    Param::new(
        "probe_bytes",
        Unit::Bytes,
        f64::NAN,
        "Jain, Dovrolis 2002",
        "IP length of a probe; auto: 300, Spruce 1500.",
    )
    .within(56.0, 9000.0),
    Param::new(
        "probes",
        Unit::Number,
        f64::NAN,
        "Jain, Dovrolis 2002",
        "Probes of a stream; auto: 40, Spruce 10 pairs.",
    )
    .within(4.0, 1000.0),
    Param::new("first_rate", Unit::BitsPerSecond, 2e6, "ours", "Rate of the first stream of a search.")
        .within(1e3, 1e11),
];

/// The value given of one of [`PROBING`], or what `auto` means.
fn probing(values: &Values, name: &str, auto: f64) -> f64 {
    let value = values.get(&PROBING, name);
    if value.is_nan() { auto } else { value }
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
    use crate::object::described;

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

    #[test]
    fn words_are_the_names_of_estimators() {
        let Unit::Choice(words) = CHOICE.unit else { panic!("a choice") };
        assert!(words.iter().copied().eq(ESTIMATORS.iter().map(|e| e.name())));
    }
}

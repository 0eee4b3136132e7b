//! Estimators of the bandwidth that a path of plain routers has left. To add one, write its file, add its line here and its
//! word to the parameter [`CHOICE`].
//!
//! An estimator stands at one end of the path. It may send probes to the other end, which returns for each an echo with the
//! time at which it came; or it asks a [`PathOracle`], if the driver has one.

use alloc::boxed::Box;

use crate::params::{Param, Unit, Values};
use crate::protocol::{Address, PathOracle};
use crate::rng::Rng;
use crate::units::Time;

macro_rules! estimators {
    ($($module:ident::$unit:ident,)*) => {
        $(pub mod $module;)*
        /// Every estimator, in the order of this list.
        pub static ESTIMATORS: &[&dyn EstimatorKind] = &[$(&$module::$unit),*];
    };
}

estimators! {
    oracle::Oracle,
}

/// Chooses among [`ESTIMATORS`], by index.
pub const CHOICE: Param = Param::new(
    "estimator",
    Unit::Choice(&["oracle"]),
    0.0,
    "paper 001 section III-A.3",
    "What measures the bandwidth that a cloud of plain routers has left.",
);

/// A kind of estimator: one file, registered by one line.
pub trait EstimatorKind: Sync {
    /// The name in scenarios and tables.
    fn name(&self) -> &'static str;
    /// One sentence.
    fn summary(&self) -> &'static str;
    /// Paper.
    fn source(&self) -> &'static str;
    /// Parameters, which are the router's too.
    fn params(&self) -> &'static [Param];
    /// An estimator for one path.
    fn build(&self, init: EstimatorInit<'_>) -> Box<dyn Estimator>;
}

/// What an estimator is made from.
pub struct EstimatorInit<'a> {
    /// Values of [`EstimatorKind::params`].
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

/// Measures one path, again and again.
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

//! Why a run as a fluid has no results.

use explicate_build::paths::NoPath;
use thiserror::Error;

/// Maximum number of places in the rings of all classes: 4 GiB.
pub(crate) const MOST_PLACES: u64 = 1 << 27;

/// Why a run has no results.
#[derive(Clone, PartialEq, Debug, Error)]
#[non_exhaustive]
pub enum RunError {
    /// The scenario has no routes.
    #[error("there are no routes")]
    NoRoutes,
    /// The ends of a flow are not connected.
    #[error(transparent)]
    NoPath(#[from] NoPath),
    /// A protocol that [`check`](crate::check::check) refuses.
    #[error("`{0}` has no fluid model")]
    NoModel(&'static str),
    /// The delays do not fit in memory.
    #[error(
        "the delays of all classes are {places:.1e} steps of {step_us:.3} us, the maximum is {MOST_PLACES}: the shortest \
         round trip makes the steps; lengthen it, or take fewer ways and starts"
    )]
    DelaysTooLong {
        /// Steps of all delays.
        places: f64,
        /// Length of a step, microseconds.
        step_us: f64,
    },
    /// The run would take too long.
    #[error(
        "a run would take about {updates:.0e} steps of hops, {step_us:.3} us each: shorten `duration` or lengthen the \
         shortest round trip"
    )]
    RunTooLong {
        /// Steps times hops.
        updates: f64,
        /// Length of a step, microseconds.
        step_us: f64,
    },
    /// The caller ended the run.
    #[error("interrupted")]
    Interrupted,
    /// Bytes came from nowhere or vanished.
    #[error("fluid is not conserved, which is a defect of the model: {0}")]
    NotConserved(#[from] Imbalance),
}

/// Where bytes are not conserved.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum Imbalance {
    /// In a class.
    #[error("class {class} counts {in_flight} bytes in flight, but its rings and queues hold {found}")]
    Class {
        /// Its number.
        class: usize,
        /// Bytes that it takes to be in flight.
        in_flight: f64,
        /// Bytes in rings and queues.
        found: f64,
    },
    /// At a link.
    #[error("the queue of link {link} holds {queue} bytes, but its classes count {found} there")]
    Link {
        /// Its number.
        link: usize,
        /// Bytes in its queue.
        queue: f64,
        /// Bytes that classes have there.
        found: f64,
    },
}

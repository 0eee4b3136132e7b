//! Why a run has no results.

use explicate_build::paths::NoPath;
use explicate_scenario::problem::Problems;
use thiserror::Error;

/// Why a run has no results. A scenario that was checked causes none of these but [`RunError::Interrupted`],
/// [`RunError::Exhausted`] and [`RunError::Allowance`].
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum RunError {
    /// A scenario that the simulator brings along is wrong.
    #[error(transparent)]
    Scenario(#[from] Problems),
    /// The ends of a flow are not connected.
    #[error(transparent)]
    NoPath(#[from] NoPath),
    /// The registry does not know the protocol that a flow falls back to; its message says what there is.
    #[error("{0}")]
    Fallback(String),
    /// A sender of another crate's protocol has an allowance with which it cannot send.
    #[error("`{protocol}` left flow {flow} with {what}")]
    Allowance {
        /// The flow's name.
        flow: String,
        /// The name of its protocol.
        protocol: &'static str,
        /// The window or rate, and what it must be.
        what: String,
    },
    /// A flow had more to send than segments have numbers.
    #[error(
        "flow {flow} has sent 2^32 - 2 segments, all that have numbers, and stopped: shorten the run, or let several flows or \
         longer packets carry the load"
    )]
    Exhausted {
        /// The flow's name.
        flow: String,
    },
    /// The caller ended the run.
    #[error("interrupted")]
    Interrupted,
    /// The counters of links do not agree with the packets that are there.
    #[error("packets are not conserved, which is a defect of the simulator: {0}")]
    NotConserved(#[from] Imbalance),
}

/// Where packets are not conserved.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum Imbalance {
    /// On a link.
    #[error("link {link}: {counts}")]
    Link {
        /// Its number.
        link: usize,
        /// What was counted.
        counts: Counts,
    },
    /// At an interface of a shared medium.
    #[error("links {links:?}: {counts}")]
    Interface {
        /// The numbers of its links.
        links: Vec<u32>,
        /// What was counted on all of them.
        counts: Counts,
    },
    /// In the arena.
    #[error("{used} slots are in use, {accounted} accounted for")]
    Slots {
        /// Slots that hold something.
        used: u64,
        /// Packets and timers that were found.
        accounted: u64,
    },
}

/// Packets of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("{came} packets came, but {delivered} were delivered, {dropped} dropped and {inside} are there")]
pub struct Counts {
    /// Packets that came, and copies that its channels made.
    pub came: u64,
    /// Packets that reached its end.
    pub delivered: u64,
    /// Packets that were dropped or lost.
    pub dropped: u64,
    /// Packets in its port or on the line.
    pub inside: u64,
}

impl Counts {
    /// Whether every packet is accounted for.
    pub(crate) fn balance(&self) -> bool {
        self.came == self.delivered + self.dropped + self.inside
    }
}

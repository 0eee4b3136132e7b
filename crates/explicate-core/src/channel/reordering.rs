//! Reordering: now and then a packet takes a detour, and those behind it overtake.
//!
//! A share of the packets, drawn by runs, arrives later by a fixed time. Packets that left the link within that time after such a
//! packet arrives before it. Nothing is lost, and the line spends no time on it.
//!
//! Deviations:
//! 1. netem's `reorder` sends a share of the packets ahead of a delay that the others suffer. The order of arrivals is the
//!    same with the roles of the shares exchanged; here the link's own delay stays as it is.

use super::placing::{Selection, Sometimes, disturbing};
use crate::channel::{ChannelInit, ChannelKind, ChannelStages, Disturbance, Disturbed};
use crate::params::{Fraction, Info, Seconds, parameters};
use crate::units::Time;
use crate::wire::Packet;

/// Reordering.
pub struct Reordering;

parameters! {
    /// What a scenario can set.
    struct Params {
        /// Share of the packets that is held back.
        rate: Fraction = 0.0, in 0.0..=1.0, "netem";
        /// How much later they arrive.
        by: Seconds = 0.01, in 0.0..=1e6, "netem";
        /// Which packets it affects.
        selection: Selection = Selection::DEFAULT;
    }
}

impl ChannelKind for Reordering {
    const INFO: Info = Info {
        name: "reordering",
        summary: "Holds a share of the packets back, so that others overtake them",
        source: "netem `reorder`",
        params: Params::PARAMS,
    };

    fn build(&self, init: ChannelInit<'_>) -> ChannelStages {
        let params = Params::of(init.values);
        let (by, when) = (Time::from_secs_f64(params.by), Sometimes::new(params.rate, init.rng));
        disturbing(params.selection, HoldBack { by, when })
    }
}

struct HoldBack {
    by: Time,
    when: Sometimes,
}

impl Disturbance for HoldBack {
    fn disturb(&mut self, _at: Time, _packet: &Packet) -> Disturbed {
        if !self.when.happens() {
            return Disturbed::default();
        }
        Disturbed { late: self.by, ..Disturbed::default() }
    }
}

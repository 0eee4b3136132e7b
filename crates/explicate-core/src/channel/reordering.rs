//! Reordering: some packets are delayed, and later ones overtake them.
//!
//! A random share of the packets arrives later by a fixed time. Packets that leave the link within that time after
//! such a packet arrive before it. Nothing is lost, and the line spends no time on it.
//!
//! Deviations:
//! 1. netem's `reorder` sends a share of the packets ahead of the others, which are delayed. The order of arrivals is
//!    the same with the shares exchanged; here the link's own delay does not change.

use super::common::placing::{Selection, Sometimes, disturbing};
use crate::channel::{ChannelInit, ChannelKind, ChannelStages, Disturbance, Disturbed};
use crate::params::{Fraction, Info, Seconds, parameters};
use crate::units::Time;
use crate::wire::Packet;

/// Reordering.
pub struct Reordering;

parameters! {
    /// What a scenario can set.
    struct Params {
        /// Share of the packets that is delayed.
        rate: Fraction = 0.0, in 0.0..=1.0, "netem";
        /// Additional delay.
        by: Seconds = 0.01, in 0.0..=1e6, "netem";
        /// Affected packets.
        selection: Selection = Selection::DEFAULT;
    }
}

impl ChannelKind for Reordering {
    const INFO: Info = Info {
        name: "reordering",
        summary: "Delays a share of the packets, so that others overtake them",
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

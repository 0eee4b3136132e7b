//! Duplication: a share of the packets arrives twice, as when a link's acknowledgement is lost and the frame is sent
//! again.
//!
//! The copy is made when the packet leaves, with the feedback that it then has, and arrives with it or later.
//!
//! Deviations:
//! 1. The copy takes no time on the line; netem's `duplicate` makes it before the queue. For copies that use
//!    capacity, lower the rate.

use super::common::placing::{Selection, Sometimes, disturbing};
use crate::channel::{ChannelInit, ChannelKind, ChannelStages, Disturbance, Disturbed};
use crate::params::{Fraction, Info, Seconds, parameters};
use crate::units::Time;
use crate::wire::Packet;

/// Duplication.
pub struct Duplication;

parameters! {
    /// What a scenario can set.
    struct Params {
        /// Share of the packets that arrives twice.
        rate: Fraction = 0.0, in 0.0..=1.0, "netem";
        /// Additional delay of the copy.
        after: Seconds = 0.0, in 0.0..=1e6, "netem";
        /// Affected packets.
        selection: Selection = Selection::DEFAULT;
    }
}

impl ChannelKind for Duplication {
    const INFO: Info = Info {
        name: "duplication",
        summary: "Delivers a share of the packets twice",
        source: "netem `duplicate`",
        params: Params::PARAMS,
    };

    fn build(&self, init: ChannelInit<'_>) -> ChannelStages {
        let params = Params::of(init.values);
        let (after, when) = (Time::from_secs_f64(params.after), Sometimes::new(params.rate, init.rng));
        disturbing(params.selection, Doubling { after, when })
    }
}

struct Doubling {
    after: Time,
    when: Sometimes,
}

impl Disturbance for Doubling {
    fn disturb(&mut self, _at: Time, _packet: &Packet) -> Disturbed {
        if !self.when.happens() {
            return Disturbed::default();
        }
        Disturbed { copy: Some(self.after), ..Disturbed::default() }
    }
}

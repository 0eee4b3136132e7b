//! Duplication: a share of the packets arrives twice, as when the answer to a link's frame is lost and the frame sent again.
//!
//! The copy is made when the packet leaves, with the feedback that it then carries, and arrives with it or a while later.
//!
//! Deviations:
//! 1. The copy takes no time of the line; netem's `duplicate` makes it before the queue. For copies that use capacity, lower
//!    the rate.

use super::placing::{OF, Sometimes, disturbing};
use crate::params::{Param, Unit};
use crate::channel::{ChannelInit, ChannelKind, ChannelStages, Disturbance, Disturbed};
use crate::units::Time;
use crate::wire::Packet;

/// Duplication.
pub struct Duplication;

const PARAMS: &[Param] = &[
    Param::new("rate", Unit::Fraction, 0.0, "netem", "Share of the packets that arrives twice.").within(0.0, 1.0),
    Param::new("after", Unit::Seconds, 0.0, "netem", "How much later the copy arrives.").within(0.0, 1e6),
    OF,
];

impl ChannelKind for Duplication {
    fn name(&self) -> &'static str {
        "duplication"
    }
    fn summary(&self) -> &'static str {
        "Delivers a share of the packets twice"
    }
    fn source(&self) -> &'static str {
        "netem `duplicate`"
    }
    fn params(&self) -> &'static [Param] {
        PARAMS
    }
    fn build(&self, init: ChannelInit<'_>) -> ChannelStages {
        let after = Time::from_secs_f64(init.values.get(PARAMS, "after"));
        let when = Sometimes::new(init.values.get(PARAMS, "rate"), init.rng);
        disturbing(init.values, Doubling { after, when })
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

//! A line that alternates between service and outages: packets wait during an outage.
//!
//! Periods are fixed or exponential. The line begins in service. A packet in service when an outage begins continues
//! when the outage ends. For losses during an outage use another channel: `gilbert_elliott` by the clock of time.
//!
//! Deviations: none. (Examples: terrain and foliage in a line of sight, a satellite behind a building, a slotted
//! medium.)

use alloc::boxed::Box;
use alloc::vec;

use super::common::pieces::{More, Piece, Pieces};
use crate::channel::{ChannelInit, ChannelKind, ChannelStages};
use crate::params::{Flag, Info, Seconds, parameters};
use crate::units::{Rate, Time};

/// A line that alternates between service and outages.
pub struct Outages;

const SECTION: &str = "paper Y section II-A (blocked and non-blocked channels)";
parameters! {
    /// What a scenario can set.
    struct Params {
        /// Duration of service, the mean if random.
        up: Seconds = 10.0, in 1e-3..=1e8, SECTION;
        /// Duration of an outage, the mean if random.
        down: Seconds = 1.0, in 1e-3..=1e8, SECTION;
        /// Periods are exponential rather than fixed.
        random: Flag = false, SECTION;
    }
}

impl ChannelKind for Outages {
    const INFO: Info = Info {
        name: "outages",
        summary: "A line that alternates between service and outages; packets wait",
        source: "paper Y section II-A",
        params: Params::PARAMS,
    };

    fn build(&self, init: ChannelInit<'_>) -> ChannelStages {
        let params = Params::of(init.values);
        let (up, down, rate) = (params.up, params.down, init.rate);
        let first = Piece { from: Time::ZERO, rate };
        let pieces = if params.random {
            let more = More::Drawn { up, down, rate, rng: init.rng };
            Pieces::new(vec![first], more, rate.bytes_per_sec())
        } else {
            let stops = Time::from_secs_f64(up).max(Time(1));
            let period = stops + Time::from_secs_f64(down);
            let list = vec![first, Piece { from: stops, rate: Rate(0) }];
            Pieces::new(list, More::Again(period), rate.bytes_per_sec())
        };
        ChannelStages { service: Some(Box::new(pieces)), ..ChannelStages::default() }
    }
}

//! A line that works and rests by turns: packets wait while it rests.
//!
//! Periods are fixed or exponential. The line begins working. A packet in service when the line stops goes on where it was
//! when it works again. Losses during an outage are another channel: `gilbert_elliott` by the clock of time.
//!
//! Deviations: none. (Terrain and foliage before a line of sight, a satellite behind a building, a slotted medium.)

use alloc::boxed::Box;
use alloc::vec;

use super::pieces::{More, Piece, Pieces};
use crate::channel::{ChannelInit, ChannelKind, ChannelStages};
use crate::params::{Flag, Info, Seconds, parameters};
use crate::units::{Rate, Time};

/// A line that works and rests by turns.
pub struct Outages;

const SECTION: &str = "paper Y section II-A (blocked and non-blocked channels)";
parameters! {
    /// What a scenario can set.
    struct Params {
        /// How long the line works, the mean if random.
        up: Seconds = 10.0, in 1e-3..=1e8, SECTION;
        /// How long it rests, the mean if random.
        down: Seconds = 1.0, in 1e-3..=1e8, SECTION;
        /// Periods are exponential rather than fixed.
        random: Flag = false, SECTION;
    }
}

impl ChannelKind for Outages {
    const INFO: Info = Info {
        name: "outages",
        summary: "A line that works and rests by turns; packets wait",
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

//! A line whose rate changes at given times, once or periodically.
//!
//! A packet in service when the rate changes continues at the new rate. A rate of zero is a pause, in which packets
//! wait. The configured capacity of routers does not change, unless `capacity` changes too.
//!
//! Deviations: none. (Examples: handovers, modes of a modem, a day of a satellite's beam.)

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};

use super::common::pieces::{More, Piece, Pieces};
use crate::channel::{ChannelInit, ChannelKind, ChannelStages};
use crate::params::{Info, Seconds, Steps, Values, parameters};
use crate::units::Time;

/// A rate that changes at given times.
pub struct RateSteps;

parameters! {
    /// What a scenario can set.
    struct Params {
        /// Rates and their start times, the first at `0s`.
        steps: Steps = (), "ours";
        /// The steps repeat with this period; unlimited: the last one continues.
        period: Seconds = f64::INFINITY, "ours";
    }
}

impl ChannelKind for RateSteps {
    const INFO: Info = Info {
        name: "rate_steps",
        summary: "A rate that changes at given times, once or periodically",
        source: "folklore",
        params: Params::PARAMS,
    };

    fn check(&self, values: &Values) -> Result<(), String> {
        // An earlier check makes sure that the list exists.
        let Some(steps) = values.steps.as_deref() else { return Ok(()) };
        let (Some(first), Some(last)) = (steps.first(), steps.last()) else { return Ok(()) };
        let period = Params::of(values).period;
        if first.0 != Time::ZERO {
            return Err("the first of `steps` has to be at \"0s\"".to_string());
        }
        if period.is_finite() && Time::from_secs_f64(period) <= last.0 {
            return Err(format!(
                "`period` has to be longer than the time of the last step, {}s",
                last.0.0 as f64 / 1e9
            ));
        }
        if period.is_infinite() && last.1.0 == 0 || steps.iter().all(|step| step.1.0 == 0) {
            return Err("the line would never send again; end with a rate above zero, or give a `period`".to_string());
        }
        Ok(())
    }
    fn build(&self, init: ChannelInit<'_>) -> ChannelStages {
        let Some(steps) = init.values.steps.as_deref().filter(|_| self.check(init.values).is_ok()) else {
            return ChannelStages::default();
        };
        let list = steps.iter().map(|&(from, rate)| Piece { from, rate }).collect();
        let period = Params::of(init.values).period;
        let pieces = if period.is_finite() {
            let period = Time::from_secs_f64(period);
            let ends = steps.iter().skip(1).map(|step| step.0).chain([period]);
            let bits: f64 = steps.iter().zip(ends).map(|(s, end)| s.1.0 as f64 * end.since(s.0).as_secs_f64()).sum();
            Pieces::new(list, More::Again(period), bits / 8.0 / period.as_secs_f64())
        } else {
            // The capacity that was configured when the line was set up.
            let first = steps.iter().find(|step| step.1.0 > 0).map_or(0.0, |step| step.1.bytes_per_sec());
            Pieces::new(list, More::Last, first)
        };
        ChannelStages { service: Some(Box::new(pieces)), ..ChannelStages::default() }
    }
}

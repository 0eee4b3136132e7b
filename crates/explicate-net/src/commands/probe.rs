//! `explicated probe`.

use explicate_core::params::Values;
use explicate_core::units::Time;
use serde_json::json;

use super::say::say;
use super::send::peer;
use crate::cli::Probe;
use crate::endpoint::auth::{Key, random};
use crate::endpoint::probe::{Prober, median};
use crate::error::Result;
use crate::sys;

pub(super) fn run(args: &Probe) -> Result<()> {
    let key = args.key.as_deref().map(Key::load).transpose()?;
    let mut prober = Prober::open(peer(&args.peer)?, u64::from_be_bytes(random()?), key)?;
    let length = Time::from_secs_f64(args.time);
    let found = prober.run(&args.estimator, &Values::default(), length, &sys::stopped)?;
    // An estimator that searches needs some time to converge.
    let settled = &found.available[found.available.len() / 3..];
    let (available, capacity) = (median(settled), median(&found.capacity));
    if args.json {
        let report = json!({
            "peer": args.peer,
            "estimator": args.estimator,
            "available_bps": available,
            "capacity_bps": capacity,
            "estimates": found.available,
            "probes_sent": found.probes.0,
            "probes_answered": found.probes.1,
        });
        return say(report);
    }
    let show = |value: Option<f64>| value.map_or("unknown".to_string(), |v| format!("{:.2} Mbit/s", v / 1e6));
    say(format!("capacity   {} (median of {} pairs)", show(capacity), found.capacity.len()))?;
    say(format!("available  {} (median of {} estimates by {})", show(available), settled.len(), args.estimator))?;
    say(format!("probes     {} sent, {} answered", found.probes.0, found.probes.1))
}

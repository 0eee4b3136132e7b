//! `explicated probe`.

use std::net::{SocketAddr, SocketAddrV4, ToSocketAddrs};

use explicate_core::params::Values;
use explicate_core::units::Time;
use explicate_core::wire::UDP_PORT;
use serde_json::json;

use super::say::say;
use crate::address::split;
use crate::cli::Probe;
use crate::endpoint::auth::random;
use crate::endpoint::probe::{Prober, median};
use crate::error::{Error, Result};
use crate::sys;

/// The address of `host` or `host:port`, where the host is a name or an IPv4 address.
pub(super) fn peer(text: &str) -> Result<SocketAddrV4> {
    let Some((host, port)) = split(text).filter(|(host, _)| !host.contains(':')) else {
        return Err(Error::Input(format!(
            "the receiver is a name or an IPv4 address, like gw.example.org or 10.0.0.2:{UDP_PORT}, not `{text}`"
        )));
    };
    let found = (host, port.unwrap_or(UDP_PORT))
        .to_socket_addrs()
        .map_err(|why| Error::Failed(format!("cannot find `{host}`: {why}")))?;
    let v4 = found.into_iter().find_map(|address| if let SocketAddr::V4(v4) = address { Some(v4) } else { None });
    v4.ok_or_else(|| Error::Failed(format!("`{host}` has no IPv4 address")))
}

pub(super) fn run(args: &Probe) -> Result<()> {
    let mut prober = Prober::open(peer(&args.peer)?, u64::from_be_bytes(random()?), None)?;
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

//! `explicated probe`, and the connection by which it and `advise` measure a path.

use std::net::{SocketAddr, SocketAddrV4, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use explicate_core::guard::AIR_LOSS;
use explicate_core::presets::DEFAULT_TCP;
use explicate_core::units::{Rate, Time};
use explicate_core::wire::UDP_PORT;
use serde_json::json;

use super::far::Far;
use super::say::say;
use crate::address::split;
use crate::cli::{Keys, Probe};
use crate::error::{Context, Error, Result};
use crate::files::prober::{Prober, estimator, median};
use crate::files::sending::Failure;
use crate::files::socket::{self, Close};
use crate::gateway::shim;

/// Longest wait for the connection.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The address of `host` or `host:port`, where the host is a name or an IPv4 address.
fn peer(text: &str) -> Result<SocketAddrV4> {
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

/// Measures the path to a receiver that this end is paired with, and the IP length of the longest packet that QUIC has found to pass.
pub(super) fn measured<T: Send + 'static>(
    name: &str,
    keys: &Keys,
    measure: impl FnOnce(&mut Prober) -> Result<T> + Send + 'static,
) -> Result<(T, usize)> {
    let address = peer(name)?;
    let mut far = Far::find((name, address.into()), keys)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.or_fail(|| "start a runtime".to_string())?.block_on(async {
        let (endpoint, transport) = far.open(socket::controller_config(DEFAULT_TCP, AIR_LOSS)?, Rate::mbps(1000))?;
        let connected = tokio::time::timeout(TIMEOUT, far.connect((&endpoint, &transport), Arc::default())).await;
        let silent = || Failure::Final(format!("{name} does not answer; is `explicated recv` running there?"));
        let asked = async {
            let sending = connected.unwrap_or_else(|_| Err(silent()))?;
            far.pair(&sending).await?;
            let (permit, stream) = sending.ask_for_probes().await?;
            Ok((sending, permit, stream))
        };
        let (sending, permit, _stream) = asked.await.map_err(|failure: Failure| Error::Failed(failure.to_string()))?;
        // Its clock and its waits are its own: QUIC's packets go on meanwhile.
        let probing = tokio::task::spawn_blocking(move || measure(&mut Prober::open(address, permit)?));
        let found = probing.await.map_err(|_| Error::Failed("the measurement panicked".to_string()))?;
        let packet =
            sending.connection.stats().path.current_mtu as usize + shim::ip_headers(address.into()) + shim::LEN;
        socket::close(&endpoint, Close::Done).await;
        Ok((found?, packet))
    })
}

pub(super) fn run(args: &Probe) -> Result<()> {
    let (kind, length) = (estimator(&args.estimator)?, Time::from_secs_f64(args.time));
    let measure = move |prober: &mut Prober| prober.run(kind, length);
    let (found, _) = measured(&args.peer, &args.keys, measure)?;
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

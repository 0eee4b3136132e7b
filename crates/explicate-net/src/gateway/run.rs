//! `explicated gateway run`.

use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use explicate_core::units::Rate;
use quinn::{Endpoint, EndpointConfig, Runtime, TokioRuntime};
use quinn_proto::HashedConnectionIdGenerator;
use tokio::net::TcpListener;

use super::capacity::Capacity;
use super::config::Config;
use super::identity::Identity;
use super::intercept;
use super::kernel;
use super::peers::Gateway;
use super::plain::Plain;
use super::port::Port;
use super::service::Service;
use super::socket::{Socket, Tunnels};
use super::status;
use super::system::System;
use super::tcp::Tcp;
use super::transport::Transport;
use crate::address;
use crate::clock::Clock;
use crate::error::{Context, Error, Result};
use crate::metrics::Metrics;
use crate::sys;

/// The most that senders ask for where the line has no rate.
const UNSHAPED: Rate = Rate::mbps(100_000);
/// Bytes of the tunnel's socket buffers.
const BUFFERS: usize = 8 << 20;
/// Nanoseconds between two updates of the metrics.
const METRICS: u64 = 1_000_000_000;
/// How often the signal to stop is looked for.
const TURN: Duration = Duration::from_millis(50);

/// Runs a gateway with the configuration in this file until a signal. SIGHUP has the file read again.
pub fn run(path: &Path) -> Result<()> {
    let config = Config::load(path)?;
    sys::catch_reload();
    let files = sys::open_many_files().or_fail(|| "raise the limit of open files".to_string())?;
    let connections = config.limits.connections as u64;
    if let Some(files) = files.filter(|&files| files <= connections) {
        tracing::warn!(files, connections, "the limit of open files is below `limits.connections`");
    }
    if config.log_connections && !tracing::enabled!(tracing::Level::INFO) {
        tracing::warn!("`log_connections` needs `--verbose`: at this level no connection is logged");
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.or_fail(|| "start a runtime".to_string())?.block_on(serve(config, path))
}

async fn serve(config: Config, path: &Path) -> Result<()> {
    let identity = Identity::load(&config.key)?;
    config.check_own_key(identity.public)?;
    let clock = Clock::start();
    let controller =
        config.wan.controller_config().ok_or_else(|| Error::Input("wan: unknown `protocol`".to_string()))?;
    let rate = config.wan.rate.map_or(UNSHAPED, |rate| rate.0);
    let tunnels = Arc::new(Tunnels::moving(HashedConnectionIdGenerator::from_key(identity.cid_key)));
    let transport = Transport::new(config.limits, controller, rate, clock, tunnels.clone()).moving();
    // Without a rate there is no port, and no parity.
    let repairs = config.wan.parity && config.wan.rate.is_some();
    let transport = if repairs { transport.repaired() } else { transport };
    let (endpoint, port) = endpoint(&config, &identity, (&transport, tunnels), clock)?;
    let listeners = listeners(&config)?;
    let status = status::listen(&config.status)?;
    let metrics = config.metrics.map(Metrics::serve).transpose()?;
    let system = System::kernel();
    // All sockets are open. Connections with addresses of other hosts need this one.
    sys::keep_only_raw().or_fail(|| "drop privileges".to_string())?;
    let capacity = port.clone().map(Capacity::follow).transpose()?;
    let gateway = Gateway::new(config, identity, (endpoint.clone(), port, capacity), (transport, system));
    gateway.apply();
    tokio::spawn(gateway.clone().answer_calls());
    tokio::spawn(gateway.clone().follow_addresses());
    tokio::spawn(status::serve(gateway.clone(), status));
    for listener in listeners {
        tokio::spawn(accept(gateway.clone(), listener));
    }
    let mut service = Service::ready();
    let (mut served, mut freed) = (0, Freed::default());
    while !sys::stopped() {
        tokio::time::sleep(TURN).await;
        service.alive();
        if freed.is_due(gateway.counters.open.load(Ordering::Relaxed), sys::monotonic()) {
            sys::release_memory();
        }
        if sys::take_reload() {
            service.reloads();
            reload(&gateway, path);
            service.is_ready();
        }
        if let Some(metrics) = &metrics
            && sys::monotonic() - served >= METRICS
        {
            served = sys::monotonic();
            metrics.set(status::metrics(&status::report(&gateway)));
        }
    }
    service.stops();
    endpoint.close(0u32.into(), b"stopped");
    let _ = tokio::time::timeout(Duration::from_secs(1), endpoint.wait_idle()).await;
    Ok(())
}

/// When memory of connections that have ended is returned to the kernel. A connection has blocks of 32 KiB, and glibc keeps them.
#[derive(Default)]
struct Freed {
    /// The most that were open since the last time.
    most: u32,
    next: u64,
}

/// So many have to have ended.
const ENDED: u32 = 256;
/// Between two times, ns.
const SELDOM: u64 = 10_000_000_000;

impl Freed {
    /// Whether it is time.
    fn is_due(&mut self, open: u32, now: u64) -> bool {
        self.most = self.most.max(open);
        let due = now >= self.next && self.most - open >= ENDED;
        if due {
            (self.most, self.next) = (open, now + SELDOM);
        }
        due
    }
}

/// Reads the configuration and the key again. A mistake in one of them changes nothing, and what needs a restart stays as it was.
fn reload(gateway: &Arc<Gateway>, path: &Path) {
    let read = Config::load(path).and_then(|config| {
        let identity = Identity::load(&config.key)?;
        config.check_own_key(identity.public)?;
        Ok(gateway.reload(config, identity))
    });
    match read {
        Ok(ignored) if ignored.is_empty() => tracing::info!("the configuration was read again"),
        Ok(ignored) => {
            tracing::warn!(keys = ignored.join(", "), "the configuration was read again; these keys need a restart");
        }
        Err(error) => tracing::error!(%error, "the configuration stays as it was"),
    }
}

/// The configuration of the endpoint of a gateway with this key.
pub(crate) fn endpoint_config(identity: &Identity) -> EndpointConfig {
    let mut own = EndpointConfig::new(Arc::new(identity.reset_key.clone()));
    let cid_key = identity.cid_key;
    own.cid_generator(move || Box::new(HashedConnectionIdGenerator::from_key(cid_key)));
    own
}

fn endpoint(
    config: &Config,
    identity: &Identity,
    (transport, tunnels): (&Transport, Arc<Tunnels>),
    clock: Clock,
) -> Result<(Endpoint, Option<Arc<Port>>)> {
    let what = || format!("open the tunnel's socket at {}", config.listen);
    let socket = address::listen(config.listen).or_fail(what)?;
    sys::grow_buffers(socket.as_fd(), BUFFERS).or_fail(what)?;
    let port = match (config.wan.rate, config.wan.controller_config()) {
        (Some(rate), Some(controller)) => {
            let shared = config.wan.shares().filter(|_| !config.site.interfaces.is_empty());
            let plain = shared.map(|_| Plain::open(kernel::TUN, rate.0)).transpose()?;
            let copy = socket.try_clone().or_fail(what)?;
            Some(Port::start(controller.protocol, rate.0, (copy, plain), clock, config.wan.parity)?)
        }
        _ => None,
    };
    let peers = config.peers.iter().flat_map(super::config::Peer::public_keys).collect();
    let (server, tunnel) = transport.server(identity.server(peers)?, config.listen);
    // Each connection gets a configuration of its own.
    transport.forget(&tunnel);
    let server = Arc::unwrap_or_clone(server);
    let own = endpoint_config(identity);
    let inner = TokioRuntime.wrap_udp_socket(socket).or_fail(what)?;
    let socket = Arc::new(Socket::new(inner, port.clone(), tunnels));
    let endpoint = Endpoint::new_with_abstract_socket(own, Some(server), socket, Arc::new(TokioRuntime));
    Ok((endpoint.or_fail(what)?, port))
}

/// Listeners of intercepted connections, of both families; of IPv4 alone where the kernel has no IPv6 and no network needs it.
fn listeners(config: &Config) -> Result<Vec<TcpListener>> {
    if config.site.interfaces.is_empty() {
        return Ok(Vec::new());
    }
    let port = config.site.intercept_port;
    let what = || format!("listen for intercepted connections at port {port}");
    let mut all = vec![intercept::listen(port, false).or_fail(what)?];
    match intercept::listen(port, true) {
        Err(reason) if !config.has_ipv6() => tracing::info!(%reason, "no connections of IPv6 are intercepted"),
        listener => all.push(listener.or_fail(what)?),
    }
    Ok(all)
}

/// Accepts intercepted connections, for ever.
async fn accept(gateway: Arc<Gateway>, listener: TcpListener) {
    loop {
        match listener.accept().await {
            // The local address of an intercepted connection is its destination.
            Ok((tcp, client)) => match tcp.local_addr() {
                Ok(destination) => drop(tokio::spawn(gateway.clone().intercepted(tcp.into(), client, destination))),
                Err(_) => Tcp::from(tcp).reset(),
            },
            Err(reason) => {
                tracing::warn!(%reason, "cannot accept a connection");
                tokio::time::sleep(TURN).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_returned_when_many_connections_have_ended_and_not_all_the_time() {
        let mut freed = Freed::default();
        let seconds = |s: u64| s * 1_000_000_000;
        let at = [(5000, 0), (4800, 1), (4744, 2), (4000, 3), (4000, 12), (4200, 22), (4100, 33), (0, 34), (0, 50)];
        let due = at.map(|(open, s)| freed.is_due(open, seconds(s)));
        assert_eq!(due, [false, false, true, false, true, false, false, true, false]);
    }
}

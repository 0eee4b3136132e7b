//! Parameters of the QUIC connections.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use explicate_core::units::Rate;
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{
    AckFrequencyConfig, ClientConfig, Connection, ConnectionError, IdleTimeout, Incoming, MtuDiscoveryConfig,
    ServerConfig, TransportConfig, VarInt,
};

use super::config::Limits;
use super::controller::{ACK_DELAY, ControllerConfig, PER_ACK};
use super::shim;
use super::socket::Tunnels;
use super::tunnel::Tunnel;
use crate::clock::Clock;
#[cfg(feature = "simulated")]
use crate::simulated::faults::{Fault, is_back};

/// A peer that is silent for so long is gone; an outage of 20 s and two more attempts fit.
const IDLE: Duration = Duration::from_secs(60);
/// An idle connection shows that it lives so often.
///
/// By this a peer whose NAT has taken another port is found, while all that is sent to it is lost: a pause of so long, and of some round
/// trips more. That is to be below 5 s.
const KEEP_ALIVE: Duration = Duration::from_secs(3);
/// Bytes of probes that wait to be read (see [`silence`](super::silence)): they are not read, and replace each other.
const PROBES: usize = 64;
/// A packet is lost when one is acknowledged that was sent so many later (RFC 9002 section 6.1.1); and where parity repairs losses, which
/// comes behind its block.
const REORDERED: u32 = 3;
const REPAIRED: u32 = 64;

/// The window of a connection is so many bandwidth-delay products: one for what is on the way, one for what waits behind a loss, and
/// some for updates that quinn sends when an eighth has been read.
const PRODUCTS: f64 = 2.5;
/// The least window of a connection that follows its path, bytes.
const LEAST_WINDOW: u32 = 1 << 20;
/// What a peer without a rate is taken to send at.
const UNKNOWN: Rate = Rate::mbps(100);
/// A path that needs so many times the window of its connections is called again.
const OUTGROWN: f64 = 1.25;
/// Most addresses whose windows are remembered.
const MOST_PATHS: usize = 4096;

/// Bytes before a QUIC packet: IP, UDP, and headers.
fn overhead(peer: SocketAddr) -> u16 {
    (shim::ip_headers(peer) + shim::LEN) as u16
}

/// Makes configurations of connections.
pub struct Transport {
    limits: Limits,
    /// The laws of their windows.
    controller: ControllerConfig,
    /// The line that they share.
    rate: Rate,
    clock: Clock,
    tunnels: Arc<Tunnels>,
    packet_threshold: u32,
    /// Peers that have called may move (see [`place`](super::place)).
    moving: bool,
    /// Number of the next tunnel.
    next: AtomicU32,
    /// Windows of connections that paths from addresses have needed, bytes.
    paths: Arc<Mutex<HashMap<IpAddr, u32>>>,
}

impl Transport {
    /// Connections with these limits, windows by these laws, over a line of this rate.
    pub fn new(
        limits: Limits,
        controller: ControllerConfig,
        rate: Rate,
        clock: Clock,
        tunnels: Arc<Tunnels>,
    ) -> Transport {
        let (next, paths, moving) = (AtomicU32::new(1), Arc::default(), false);
        Transport { limits, controller, rate, clock, tunnels, packet_threshold: REORDERED, moving, next, paths }
    }
    /// The same, whose peers may move, if the tunnels know their numbers.
    pub fn moving(self) -> Transport {
        Transport { moving: true, ..self }
    }
    /// The same, whose losses parity repairs.
    pub fn repaired(self) -> Transport {
        Transport { packet_threshold: REPAIRED, ..self }
    }

    fn paths(&self) -> MutexGuard<'_, HashMap<IpAddr, u32>> {
        self.paths.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// The window of connections with a peer at this address, bytes: as configured, or as the path has shown to need.
    pub fn window(&self, peer: IpAddr) -> u32 {
        let least = || LEAST_WINDOW.min(self.limits.most_window());
        self.limits
            .connection_bytes
            .unwrap_or_else(|| self.paths().get(&peer.to_canonical()).copied().unwrap_or_else(least))
    }
    /// The most bytes of long transfers that are kept for repetition.
    pub fn most_sent(&self) -> u64 {
        self.limits.peer_bytes as u64
    }
    /// Whether a path with this round trip, whose far end sends at this rate, needs more than the window that connections have. If so, the
    /// next connection with this address has it.
    pub fn outgrows(&self, peer: IpAddr, rate: Option<Rate>, round_trip: Duration) -> bool {
        let (window, most) = (self.window(peer), self.limits.most_window());
        let needed = PRODUCTS * rate.unwrap_or(UNKNOWN).bytes_per_sec() * round_trip.as_secs_f64();
        let needed = needed.min(most as f64) as u32;
        if self.limits.connection_bytes.is_some() || (needed as f64) < OUTGROWN * window as f64 {
            return false;
        }
        let mut paths = self.paths();
        if paths.len() >= MOST_PATHS {
            paths.clear();
        }
        // A socket of both families has IPv4 addresses as IPv6 ones.
        paths.insert(peer.to_canonical(), needed);
        true
    }

    fn config(&self, peer: SocketAddr, tunnel: &Arc<Tunnel>) -> Arc<TransportConfig> {
        let limits = self.limits;
        let mut ack = AckFrequencyConfig::default();
        ack.ack_eliciting_threshold(VarInt::from_u32(PER_ACK))
            .max_ack_delay(Some(Duration::from_nanos(ACK_DELAY.0)))
            .reordering_threshold(VarInt::from_u32(self.packet_threshold - 1));
        let mut mtu = MtuDiscoveryConfig::default();
        mtu.upper_bound(1500 - overhead(peer));
        let mut config = TransportConfig::default();
        config
            .max_concurrent_bidi_streams(VarInt::from_u32(limits.connections))
            // See `turns`.
            .max_concurrent_uni_streams(VarInt::from_u32(1))
            .stream_receive_window(VarInt::from_u32(self.window(peer.ip())))
            .receive_window(VarInt::from_u32(limits.peer_bytes))
            // Until the connection has its turns, which set it.
            .send_window(limits.peer_bytes as u64)
            .packet_threshold(self.packet_threshold)
            .max_idle_timeout(IdleTimeout::try_from(IDLE).ok())
            .keep_alive_interval(Some(KEEP_ALIVE))
            .datagram_receive_buffer_size(Some(PROBES))
            .mtu_discovery_config(Some(mtu))
            .congestion_controller_factory(Arc::new(tunnel.controller.clone()))
            .ack_frequency_config(Some(ack));
        Arc::new(config)
    }
    fn tunnel(&self) -> Arc<Tunnel> {
        Tunnel::new(self.next.fetch_add(1, Ordering::Relaxed), &self.controller, self.rate, self.clock)
    }
    /// What this end calls a peer with, and the tunnel of the connection.
    pub fn client(&self, tls: QuicClientConfig, to: SocketAddr) -> (ClientConfig, Arc<Tunnel>) {
        let tunnel = self.tunnel();
        self.tunnels.set(to, tunnel.clone());
        let mut config = ClientConfig::new(Arc::new(tls));
        config.transport_config(self.config(to, &tunnel));
        (config, tunnel)
    }
    /// What this end answers a peer with, and the tunnel of the connection.
    pub fn server(&self, tls: QuicServerConfig, from: SocketAddr) -> (Arc<ServerConfig>, Arc<Tunnel>) {
        let tunnel = self.tunnel();
        self.tunnels.add(from, tunnel.clone());
        let mut config = ServerConfig::with_crypto(Arc::new(tls));
        config.transport_config(self.config(from, &tunnel)).migration(self.moves());
        (Arc::new(config), tunnel)
    }
    /// Completes the handshake of a connection that arrives, and forgets its tunnel if that fails.
    pub async fn accept(
        &self,
        incoming: Incoming,
        config: Arc<ServerConfig>,
        tunnel: &Arc<Tunnel>,
    ) -> Result<Connection, ConnectionError> {
        let connected = match incoming.accept_with(config) {
            Ok(connecting) => connecting.await,
            Err(reason) => Err(reason),
        };
        connected.inspect_err(|_| self.forget(tunnel))
    }
    /// The peer at the other end of a tunnel has shown its key: no other connection from this address counts any more.
    pub fn confirm(&self, peer: SocketAddr, tunnel: &Arc<Tunnel>) {
        self.tunnels.set(peer, tunnel.clone());
    }
    fn moves(&self) -> bool {
        #[cfg(feature = "simulated")]
        if is_back(Fault::Moves) {
            return false;
        }
        self.moving
    }
    /// QUIC has validated the path to where the peer of a tunnel is now: the address that it had, if it has moved. The path needs the window
    /// that it needed before.
    pub fn moved(&self, to: SocketAddr, tunnel: &Arc<Tunnel>) -> Option<SocketAddr> {
        let before = self.tunnels.confirm(to, tunnel)?;
        let mut paths = self.paths();
        if let Some(&window) = paths.get(&before.ip()) {
            paths.entry(to.ip().to_canonical()).or_insert(window);
        }
        Some(before)
    }
    /// The connection of a tunnel has ended.
    pub fn forget(&self, tunnel: &Arc<Tunnel>) {
        self.tunnels.remove(tunnel);
    }
}

/// Returns a connection attempt whose host has shown that it receives at its address. Others are answered by a Retry and get no memory
/// here (RFC 9000 section 8.1.2).
///
/// A link-local address needs no proof: only a host of the same link can send from one, and it could receive there as well. Quinn's
/// tokens leave out the interface of such an address, so it would accept no proof.
pub fn validated(incoming: Incoming) -> Option<Incoming> {
    if incoming.remote_address_validated() || is_link_local(incoming.remote_address()) {
        return Some(incoming);
    }
    let _ = incoming.retry();
    None
}

fn is_link_local(address: SocketAddr) -> bool {
    matches!(address, SocketAddr::V6(address) if address.ip().is_unicast_link_local())
}

#[cfg(test)]
mod tests {
    use explicate_core::registry;

    use super::*;

    fn transport(limits: Limits) -> Transport {
        let config = ControllerConfig::new(registry::protocol("xcp").unwrap(), 0.0);
        Transport::new(limits, config, Rate::mbps(1), Clock::start(), Arc::default())
    }

    /// By hand: 20 Mbit/s and 0.6 s are 1.5 MB, and 2.5 times that 3.75 MB.
    #[test]
    fn the_window_of_a_connection_follows_its_path_up_to_an_eighth_of_the_peers() {
        let (transport, far) = (transport(Limits::default()), IpAddr::from([192, 0, 2, 2]));
        let outgrows = |rate, seconds| transport.outgrows(far, rate, Duration::from_secs_f64(seconds));
        assert_eq!(transport.window(far), 1 << 20);
        assert!(!outgrows(Some(Rate::mbps(20)), 0.1) && !outgrows(Some(Rate::mbps(2)), 0.6));
        assert!(outgrows(Some(Rate::mbps(20)), 0.6));
        assert_eq!(transport.window(far), 3_750_000);
        assert_eq!(transport.window("::ffff:192.0.2.2".parse().unwrap()), 3_750_000);
        assert!(!outgrows(Some(Rate::mbps(20)), 0.65), "a round trip that is a little longer");
        assert!(!outgrows(None, 0.01) && outgrows(None, 0.3), "a peer without a rate");
        assert!(outgrows(Some(Rate::mbps(250)), 0.6) && !outgrows(Some(Rate::mbps(1000)), 60.0));
        assert_eq!(transport.window(far), 32 << 20);
        assert_eq!(transport.window(IpAddr::from([192, 0, 2, 3])), 1 << 20, "another peer");
    }

    #[test]
    fn a_configured_window_stays() {
        let fixed = transport(Limits { connection_bytes: Some(65_536), ..Limits::default() });
        let far = IpAddr::from([192, 0, 2, 2]);
        assert!(!fixed.outgrows(far, Some(Rate::mbps(250)), Duration::from_secs(1)));
        assert_eq!(fixed.window(far), 65_536);
        let little = transport(Limits { peer_bytes: 1 << 20, ..Limits::default() });
        assert_eq!(little.window(far), 1 << 17, "an eighth of what the peer has");
    }
}

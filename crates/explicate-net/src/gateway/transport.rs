//! Parameters of the QUIC connections.

use std::net::SocketAddr;
use std::sync::Arc;
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

/// A peer that is silent for so long is gone; an outage of 20 s and two more attempts fit.
const IDLE: Duration = Duration::from_secs(60);
/// An idle connection shows that it lives so often.
const KEEP_ALIVE: Duration = Duration::from_secs(5);
/// Bytes of probes that wait to be read (see [`silence`](super::silence)): they are not read, and replace each other.
const PROBES: usize = 64;
/// A packet is lost when one is acknowledged that was sent so many later (RFC 9002 section 6.1.1); and where parity repairs losses, which
/// comes behind its block.
const REORDERED: u32 = 3;
const REPAIRED: u32 = 64;

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
        Transport { limits, controller, rate, clock, tunnels, packet_threshold: REORDERED }
    }
    /// The same, whose losses parity repairs.
    pub fn repaired(self) -> Transport {
        Transport { packet_threshold: REPAIRED, ..self }
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
            .stream_receive_window(VarInt::from_u32(limits.connection_bytes))
            .receive_window(VarInt::from_u32(limits.peer_bytes))
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
    /// What this end calls a peer with, and the tunnel of the connection.
    pub fn client(&self, tls: QuicClientConfig, to: SocketAddr) -> (ClientConfig, Arc<Tunnel>) {
        let tunnel = Tunnel::new(&self.controller, self.rate, self.clock);
        self.tunnels.set(to, tunnel.clone());
        let mut config = ClientConfig::new(Arc::new(tls));
        config.transport_config(self.config(to, &tunnel));
        (config, tunnel)
    }
    /// What this end answers a peer with, and the tunnel of the connection.
    pub fn server(&self, tls: QuicServerConfig, from: SocketAddr) -> (Arc<ServerConfig>, Arc<Tunnel>) {
        let tunnel = Tunnel::new(&self.controller, self.rate, self.clock);
        self.tunnels.add(from, tunnel.clone());
        let mut config = ServerConfig::with_crypto(Arc::new(tls));
        config.transport_config(self.config(from, &tunnel)).migration(false);
        (Arc::new(config), tunnel)
    }
    /// Completes the handshake of a connection that arrives, and forgets its tunnel if that fails.
    pub async fn accept(
        &self,
        incoming: Incoming,
        config: Arc<ServerConfig>,
        tunnel: &Arc<Tunnel>,
    ) -> Result<Connection, ConnectionError> {
        let from = incoming.remote_address();
        let connected = match incoming.accept_with(config) {
            Ok(connecting) => connecting.await,
            Err(reason) => Err(reason),
        };
        connected.inspect_err(|_| self.forget(from, tunnel))
    }
    /// The peer at the other end of a tunnel has shown its key: no other connection from this address counts any more.
    pub fn confirm(&self, peer: SocketAddr, tunnel: &Arc<Tunnel>) {
        self.tunnels.set(peer, tunnel.clone());
    }
    /// A connection with this peer has ended.
    pub fn forget(&self, peer: SocketAddr, tunnel: &Arc<Tunnel>) {
        self.tunnels.remove(peer, tunnel);
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

//! Parameters of the QUIC connections.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
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
/// Between two looks at where a peer is.
pub const FOLLOW: Duration = Duration::from_millis(200);
/// A packet is lost when one is acknowledged that was sent so many later (RFC 9002 section 6.1.1); and where parity repairs losses, which
/// comes behind its block.
const REORDERED: u32 = 3;
const REPAIRED: u32 = 64;

/// QUIC's windows of a tunnel whose streams have [credit](super::credit) are so much larger than the sum of all credit that they never
/// bind: quinn opens a window again when an eighth of it has been read; and prefaces and messages have no credit.
const UNBOUND: f64 = 1.25;
const WITHOUT_CREDIT: u64 = 1 << 20;

/// Streams that a peer may have open: the limit of connections and more, so that it is a refusal that those beyond it get, and not silence.
/// quinn keeps an eighth back when streams have ended, and messages have streams, too.
fn streams(limits: Limits) -> VarInt {
    VarInt::from_u64(limits.connections as u64 * 5 / 4 + 16).unwrap_or(VarInt::MAX)
}

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
    /// Streams have [credit](super::credit).
    credited: bool,
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
        let (packet_threshold, next) = (REORDERED, AtomicU32::new(1));
        let (moving, credited) = (false, false);
        Transport { limits, controller, rate, clock, tunnels, packet_threshold, moving, next, credited }
    }
    /// The same, whose peers may move, if the tunnels know their numbers.
    pub fn moving(self) -> Transport {
        Transport { moving: true, ..self }
    }
    /// The same, whose losses parity repairs.
    pub fn repaired(self) -> Transport {
        Transport { packet_threshold: REPAIRED, ..self }
    }

    /// The same, whose streams have credit: it bounds them, and not QUIC's windows.
    pub fn credited(self) -> Transport {
        Transport { credited: true, ..self }
    }
    /// Its limits.
    pub fn limits(&self) -> Limits {
        self.limits
    }
    /// QUIC's windows of a stream and of a connection, bytes.
    fn windows(&self) -> [VarInt; 2] {
        let Limits { connection_bytes, peer_bytes, .. } = self.limits;
        if !self.credited {
            return [connection_bytes.unwrap_or(self.limits.most_window()), peer_bytes].map(VarInt::from_u32);
        }
        let unbound = (UNBOUND * peer_bytes as f64) as u64 + WITHOUT_CREDIT;
        [VarInt::from_u64(unbound).unwrap_or(VarInt::MAX); 2]
    }

    fn config(&self, peer: SocketAddr, tunnel: &Arc<Tunnel>) -> Arc<TransportConfig> {
        let (limits, [stream, connection]) = (self.limits, self.windows());
        let mut ack = AckFrequencyConfig::default();
        ack.ack_eliciting_threshold(VarInt::from_u32(PER_ACK))
            .max_ack_delay(Some(Duration::from_nanos(ACK_DELAY.0)))
            .reordering_threshold(VarInt::from_u32(self.packet_threshold - 1));
        let mut mtu = MtuDiscoveryConfig::default();
        mtu.upper_bound(1500 - overhead(peer));
        let mut config = TransportConfig::default();
        config
            .max_concurrent_bidi_streams(streams(limits))
            // The records of `credit`.
            .max_concurrent_uni_streams(VarInt::from_u32(1))
            .stream_receive_window(stream)
            .receive_window(connection)
            // Until the connection has its `turns`, which set it.
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
    /// Where a peer was, and where it is, if it has moved for good by now (see [`place`](super::place)). To be called every [`FOLLOW`].
    pub fn moved(&self, connection: &Connection, tunnel: &Arc<Tunnel>) -> Option<[SocketAddr; 2]> {
        let to = connection.remote_address();
        Some([self.tunnels.confirm(to, tunnel)?, to])
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

    #[test]
    fn windows_of_quic_are_those_of_the_limits_or_never_bind() {
        let limits = Limits { connection_bytes: Some(1 << 16), peer_bytes: 1 << 20, ..Limits::default() };
        let of = |transport: Transport| transport.windows().map(VarInt::into_inner);
        assert_eq!(of(transport(limits)), [1 << 16, 1 << 20]);
        assert_eq!(of(transport(limits).credited()), [9 << 18; 2]);
        let large = of(transport(Limits { peer_bytes: u32::MAX, ..limits }).credited());
        assert!(large[0] > 5 << 30 && large[0] == large[1], "{large:?}");
    }
}

//! Parameters of the QUIC connections.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{AckFrequencyConfig, ClientConfig, IdleTimeout, ServerConfig, TransportConfig, VarInt};

use super::config::Limits;

/// A peer that is silent for so long is gone; an outage of 20 s and two more attempts fit.
const IDLE: Duration = Duration::from_secs(60);
/// An idle connection shows that it lives so often.
const KEEP_ALIVE: Duration = Duration::from_secs(5);
/// Acknowledgements wait for so many packets, or so long: narrow return paths carry them.
const PER_ACK: u32 = 16;
const ACK_DELAY: Duration = Duration::from_millis(20);

/// Makes configurations of connections.
pub struct Transport {
    limits: Limits,
}

impl Transport {
    /// Connections with these limits.
    pub fn new(limits: Limits) -> Transport {
        Transport { limits }
    }

    fn config(&self, _peer: SocketAddr) -> Arc<TransportConfig> {
        let limits = self.limits;
        let mut ack = AckFrequencyConfig::default();
        ack.ack_eliciting_threshold(VarInt::from_u32(PER_ACK)).max_ack_delay(Some(ACK_DELAY));
        let mut config = TransportConfig::default();
        config
            .max_concurrent_bidi_streams(VarInt::from_u32(limits.connections))
            .max_concurrent_uni_streams(VarInt::from_u32(0))
            .stream_receive_window(VarInt::from_u32(limits.connection_bytes))
            .receive_window(VarInt::from_u32(limits.peer_bytes))
            .send_window(limits.peer_bytes as u64)
            .max_idle_timeout(IdleTimeout::try_from(IDLE).ok())
            .keep_alive_interval(Some(KEEP_ALIVE))
            .datagram_receive_buffer_size(None)
            .ack_frequency_config(Some(ack));
        Arc::new(config)
    }
    /// What this end calls a peer with.
    pub fn client(&self, tls: QuicClientConfig, to: SocketAddr) -> ClientConfig {
        let mut config = ClientConfig::new(Arc::new(tls));
        config.transport_config(self.config(to));
        config
    }
    /// What this end answers a peer with.
    pub fn server(&self, tls: QuicServerConfig, from: SocketAddr) -> Arc<ServerConfig> {
        let mut config = ServerConfig::with_crypto(Arc::new(tls));
        config.transport_config(self.config(from)).migration(false);
        Arc::new(config)
    }
    /// A connection with this peer has ended.
    pub fn forget(&self, _peer: SocketAddr) {}
}

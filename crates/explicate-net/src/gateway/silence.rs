//! Probes of a path that has gone silent.
//!
//! QUIC doubles the time between its probes (RFC 9002 section 6.2.1): behind an outage it may wait as long again as that lasted.
//! While a peer is silent and has something to answer, each end sends a datagram (RFC 9221) every second instead. The first
//! acknowledgement ends the wait: what was sent before is lost by RFC 9002 section 6.1, and sent again.

use std::time::Duration;

use bytes::Bytes;
use quinn::Connection;

use super::tunnel::Tunnel;
#[cfg(feature = "simulated")]
use crate::simulated::faults::{Fault, is_back};

/// Between two probes.
const EVERY: Duration = Duration::from_secs(1);

/// What had arrived and left when something last arrived.
#[derive(Default)]
struct Silence {
    arrived: u64,
    left: u64,
}

impl Silence {
    /// Whether nothing has arrived since the last call, and something has left since the last arrival.
    fn lasts(&mut self, arrived: u64, left: u64) -> bool {
        if arrived != self.arrived {
            *self = Silence { arrived, left };
        }
        left > self.left
    }
}

/// Probes the path of a connection while it is silent, for ever.
pub async fn probe(connection: &Connection, tunnel: &Tunnel) {
    #[cfg(feature = "simulated")]
    if is_back(Fault::Silence) {
        return std::future::pending().await;
    }
    let mut silence = Silence::default();
    loop {
        tokio::time::sleep(EVERY).await;
        let stats = connection.stats();
        if silence.lasts(stats.udp_rx.datagrams, stats.udp_tx.datagrams) {
            tunnel.controller.lock().allow_probe();
            // A peer without datagrams is left to QUIC's probes.
            let _ = connection.send_datagram(Bytes::from_static(&[0]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_is_noticed_when_an_answer_is_due() {
        let mut silence = Silence::default();
        assert!(!silence.lasts(0, 0), "nothing was sent");
        assert!(silence.lasts(0, 3));
        assert!(!silence.lasts(1, 4), "something arrived");
        assert!(!silence.lasts(1, 4), "and nothing was sent since");
        assert!(silence.lasts(1, 5) && silence.lasts(1, 6));
    }
}

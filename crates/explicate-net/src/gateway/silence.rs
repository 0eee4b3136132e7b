//! Probes of a path that has gone silent.
//!
//! QUIC doubles the time between its probes (RFC 9002 section 6.2.1): behind an outage it may wait as long again as that lasted.
//! While a peer is silent and has something to answer, each end sends a datagram (RFC 9221) every second instead. The first
//! acknowledgement ends the wait: what was sent before is lost by RFC 9002 section 6.1, and sent again.
//!
//! quinn holds acknowledgements back, too, while its window is full and stream data waits. Two ends whose windows are full of what an outage
//! has lost would then hear each other's probes and acknowledge none. So an end that hears something and has sent nothing for a second probes, too.

use std::time::Duration;

use bytes::Bytes;
use quinn::Connection;

use super::tunnel::Tunnel;
#[cfg(feature = "simulated")]
use crate::simulated::faults::{Fault, is_back};

/// Between two probes.
const EVERY: Duration = Duration::from_secs(1);

/// What had arrived and left when something last arrived, and what had left at the last call.
#[derive(Default)]
struct Silence {
    arrived: u64,
    left: u64,
    before: u64,
}

impl Silence {
    /// Whether nothing has arrived since the last call and something has left since the last arrival, or the other way about.
    fn lasts(&mut self, arrived: u64, left: u64) -> bool {
        let mute = arrived != self.arrived && left == self.before;
        if arrived != self.arrived {
            (self.arrived, self.left) = (arrived, left);
        }
        self.before = left;
        mute || left > self.left
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
            tunnel.controller.lock().allow_probe(stats.path.current_mtu);
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
        assert!(!silence.lasts(2, 7), "an answer, and more has left");
        assert!(silence.lasts(3, 7), "what arrives is not answered");
        assert!(!silence.lasts(4, 8), "it is");
        assert!(!silence.lasts(4, 8));
    }
}

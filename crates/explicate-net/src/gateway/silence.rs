//! Probes of a path that has gone silent.
//!
//! QUIC doubles the time between its probes (RFC 9002 section 6.2.1): behind an outage it may wait as long again as that lasted.
//! While a peer is silent and has something to answer, each end sends a datagram (RFC 9221) every second instead. The first
//! acknowledgement ends the wait: what was sent before is lost by RFC 9002 section 6.1, and sent again.
//!
//! An end whose window is full of lost packets is silent itself when the path is back: quinn sends no acknowledgement either while
//! other frames wait for the window, so the peer's probes get no answer until QUIC's own probe is due. Such an end sends one, too: the
//! peer's arrive, and nothing leaves.

use std::time::Duration;

use bytes::Bytes;
use quinn::Connection;

use super::tunnel::Tunnel;
#[cfg(feature = "simulated")]
use crate::simulated::faults::{Fault, is_back};

/// Between two probes.
const EVERY: Duration = Duration::from_secs(1);

/// After so many calls in a row with arrivals between them and no departure an end is silent itself: one happens when an answer
/// leaves just behind a call.
const MUTE: u32 = 2;

/// What had arrived and left.
#[derive(Default)]
struct Silence {
    /// When something last arrived.
    arrived: u64,
    left: u64,
    /// At the last call.
    had_left: u64,
    /// Calls in a row between which something arrived and nothing left.
    mute: u32,
}

impl Silence {
    /// Whether nothing has arrived since the last call, and something has left since the last arrival; or whether what arrives
    /// gets no answer.
    fn lasts(&mut self, arrived: u64, left: u64) -> bool {
        let comes = arrived != self.arrived;
        self.mute = if left != self.had_left { 0 } else { self.mute + comes as u32 };
        self.had_left = left;
        if comes {
            (self.arrived, self.left) = (arrived, left);
        }
        left > self.left || self.mute >= MUTE
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

    /// The peer's probes arrive, and this end's window is full of lost packets.
    #[test]
    fn an_end_that_answers_nothing_is_silent_itself() {
        let mut silence = Silence::default();
        let calls = [(5, 9), (6, 9), (7, 9), (8, 10), (9, 10), (10, 11), (11, 11), (11, 11), (11, 11)];
        let lasts = calls.map(|(arrived, left)| silence.lasts(arrived, left));
        assert_eq!(lasts, [false, false, true, false, false, false, false, false, false]);
    }
}

//! Probes of a path that has gone silent.
//!
//! QUIC doubles the time between its probes (RFC 9002 section 6.2.1): behind an outage it may wait as long again as that lasted.
//! While a peer is silent and has something to answer, each end sends a datagram (RFC 9221) every second instead. The first
//! acknowledgement ends the wait: what was sent before is lost by RFC 9002 section 6.1, and sent again.
//!
//! quinn holds acknowledgements back, too, while its window is full and stream data waits. Two ends whose windows are full of what an outage
//! has lost would then hear each other's probes and acknowledge none. So an end that hears something and has sent nothing for a second probes, too.
//!
//! *Behind an outage.* The first acknowledgement may be one of a packet that had arrived before the outage: QUIC takes so long a round-trip
//! time for its estimate, and for a dozen round trips its timeout is seconds. So what was written and is not acknowledged within two of the least round
//! trips and a little more is probed, once for what has arrived meanwhile.

use std::time::Duration;

use bytes::Bytes;
use explicate_core::units::Time;
use quinn::Connection;

use super::controller::ACK_DELAY;
use super::tunnel::Tunnel;
#[cfg(feature = "simulated")]
use crate::simulated::faults::{Fault, is_back};

/// Between two probes of a silent path, so many looks.
const EVERY: u32 = 4;
/// Between two looks.
const LOOK: Duration = Duration::from_millis(250);
/// An acknowledgement is late after this time, beside two round trips and its delay.
const LATE: Time = Time::millis(250);

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

/// What was written and waits for an acknowledgement, and what had arrived at the last probe for it.
#[derive(Default)]
struct Unanswered {
    written: Time,
    arrived: u64,
}

impl Unanswered {
    /// Whether an acknowledgement is late that is due after this time, and something has arrived since that was noticed last.
    fn is_late(&mut self, [now, written, newest]: [Time; 3], due: Time, arrived: u64) -> bool {
        if newest >= self.written {
            self.written = written;
        }
        let late = newest < self.written && now.since(self.written) >= due && arrived != self.arrived;
        if late {
            self.arrived = arrived;
        }
        late
    }
}

/// Probes the path of a connection while it is silent, for ever.
pub async fn probe(connection: &Connection, tunnel: &Tunnel) {
    #[cfg(feature = "simulated")]
    if is_back(Fault::Silence) {
        return std::future::pending().await;
    }
    let (mut silence, mut unanswered) = (Silence::default(), Unanswered::default());
    for look in (1..=EVERY).cycle() {
        tokio::time::sleep(LOOK).await;
        let stats = connection.stats();
        let mut controller = tunnel.controller.lock();
        let due = Time(2 * controller.least_round_trip().0 + ACK_DELAY.0 + LATE.0);
        let is_late = unanswered.is_late(controller.waits(), due, stats.udp_rx.datagrams);
        let is_silent = look == EVERY && silence.lasts(stats.udp_rx.datagrams, stats.udp_tx.datagrams);
        if is_silent {
            controller.allow_probe(stats.path.current_mtu);
        }
        drop(controller);
        if is_silent || is_late {
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

    #[test]
    fn a_late_acknowledgement_is_probed_for_once_unless_something_arrives() {
        let mut unanswered = Unanswered::default();
        let mut look = |now, written, newest, arrived| {
            let times = [now, written, newest].map(Time::millis);
            unanswered.is_late(times, Time::millis(400), arrived)
        };
        assert!(!look(250, 0, 0, 1), "nothing was written");
        assert!(!look(500, 400, 0, 1), "it is not late");
        assert!(!look(750, 700, 410, 1), "it is acknowledged, and what is written since is not late");
        assert!(!look(1000, 700, 410, 1));
        assert!(look(1250, 1200, 410, 2), "the older one is");
        assert!(!look(1500, 1200, 410, 2), "nothing has arrived since");
        assert!(look(1750, 1200, 410, 3));
        assert!(!look(2000, 1200, 1760, 4), "the probe is acknowledged");
    }
}

//! Packets of a flow that its host still holds, below the transport: TCP small queues, as Linux 6.18 limits them
//! (`tcp_small_queue_check`). Without a limit a window fills the host's own queue, and measures that instead of the path.
//!
//! A flow may have two super-packets below it, or what it sends in a millisecond if that is more. A super-packet is what it
//! sends in a millisecond, two segments at least (`tcp_tso_autosize`). So the limit is four packets, or two milliseconds of
//! the pacing rate.
//!
//! Deviations:
//! 1. Without pacing, Linux takes 2 windows per round trip for its rate in slow start and 1.2 afterwards; here it is 1.2 always.
//! 2. On paths shorter than 5 ms Linux makes super-packets larger.

use alloc::collections::VecDeque;

use super::SenderEndpoint;
use crate::params::choices;
use crate::units::Time;

choices! {
    /// The queue of the sending host.
    pub enum HostQueue { None = "none", Fifo = "fifo" }
}

/// Windows per round trip of the rate of a flow that is not paced.
const UNPACED: f64 = 1.2;
const SPAN_S: f64 = 1e-3;
const LEAST_SUPER_PACKET: f64 = 2.0;

/// The times at which packets have left the host, in order.
#[derive(Default)]
pub(super) struct Below {
    until: VecDeque<Time>,
    /// Until when the host holds the flow back; zero if it never did.
    pub(super) holds_until: Time,
}

impl SenderEndpoint {
    /// The packet that was transmitted last will have left its host at `departs`: the flow waits while too many are below
    /// it. Departures must not decrease.
    pub fn queued_until(&mut self, now: Time, departs: Time) {
        let most = self.most_below();
        let below = &mut self.rare.get_or_insert_default().below;
        while below.until.front().is_some_and(|departed| *departed <= now) {
            below.until.pop_front();
        }
        below.until.push_back(departs);
        if let Some(excess) = below.until.len().checked_sub(most) {
            let room_at = below.until[excess];
            self.hold_back(room_at);
        }
    }
    /// The host's queue has no room before this time.
    pub fn hold_back(&mut self, until: Time) {
        if self.is_established() && until > self.wait_until {
            self.wait_until = until;
            self.rare.get_or_insert_default().below.holds_until = until;
        }
    }

    /// Most packets below the transport.
    fn most_below(&self) -> usize {
        let srtt = self.recovery.at().srtt.as_secs_f64();
        let packet = (self.full_payload + self.overhead as u16) as f64;
        let rate = match self.allowance.pacing {
            Some(rate) => rate.bytes_per_sec() / packet,
            None if srtt > 0.0 => UNPACED * self.allowance.cwnd / srtt,
            None => 0.0,
        };
        let in_span = rate * SPAN_S;
        (2.0 * in_span.max(LEAST_SUPER_PACKET)).min(1e6) as usize
    }
}

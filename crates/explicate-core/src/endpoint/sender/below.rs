//! Packets of a flow that its host still holds, below the transport: TCP small queues, as Linux 6.18 limits them
//! (`tcp_small_queue_check`). Without a limit a window fills the host's own queue, and measures that instead of the path.
//!
//! A flow may have below it the larger of two super-packets and what it sends in a millisecond. A super-packet is what it
//! sends in a millisecond, two segments at least and 64 kB at most (`tcp_tso_autosize`). Its rate is that of pacing; without
//! pacing, two windows per round trip while the window is below half of the threshold of slow start, then 1.2
//! (`tcp_update_pacing_rate`). So the limit is four packets, or two milliseconds of that rate up to 128 kB, or one.
//!
//! The queue `fq` has Linux pace all flows at this rate.
//!
//! Deviations:
//! 1. On paths shorter than 5 ms Linux makes super-packets larger.
//! 2. Packets that pacing delays wait in the transport, not in the queue, so they do not count.

use alloc::collections::VecDeque;

use super::{Params, SenderEndpoint};
use crate::params::choices;
use crate::recovery::Next;
use crate::units::Time;

choices! {
    /// The queue of the sending host.
    pub enum HostQueue { None = "none", Fifo = "fifo", FqCodel = "fq_codel", Fq = "fq" }
}

impl HostQueue {
    /// Whether the flows of a host send in turns; otherwise in order of arrival.
    pub fn takes_turns(self) -> bool {
        matches!(self, HostQueue::FqCodel | HostQueue::Fq)
    }
}

/// Who spaces packets if the congestion controller does not.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Paced {
    /// No one else.
    No,
    /// The parameter `paced`: a window over a round trip.
    Evenly,
    /// The host's queue.
    ByQueue,
}

impl Paced {
    pub(super) fn of(params: &Params) -> Paced {
        match params.host_queue {
            _ if params.paced => Paced::Evenly,
            HostQueue::Fq => Paced::ByQueue,
            _ => Paced::No,
        }
    }
}

/// Windows per round trip of a flow that does not say at which rate it sends: in slow start, and later.
const IN_SLOW_START: f64 = 2.0;
const LATER: f64 = 1.2;
const SPAN_S: f64 = 1e-3;
const LEAST_SUPER_PACKET: f64 = 2.0;
const LONGEST_SUPER_PACKET_BYTES: f64 = 65_536.0;

/// The times at which packets have left the host, in order.
#[derive(Default)]
pub(super) struct Below {
    until: VecDeque<Time>,
    /// Until when the host holds the flow back; zero if it never did.
    pub(super) holds_until: Time,
}

impl SenderEndpoint {
    /// IP length of a full data packet, bytes.
    pub fn packet_bytes(&self) -> u16 {
        self.full_payload + self.overhead as u16
    }
    /// Whether the application has the data of the segment that [`SenderEndpoint::poll_next`] returned.
    pub fn has_data(&self, next: Next) -> bool {
        match next {
            Next::New => self.recovery.at().next < self.supply,
            Next::Resend(_) => true,
            Next::Nothing => false,
        }
    }
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
        let in_span = self.packets_per_second() * SPAN_S;
        let longest = (LONGEST_SUPER_PACKET_BYTES / self.packet_bytes() as f64).max(LEAST_SUPER_PACKET);
        let super_packet = in_span.clamp(LEAST_SUPER_PACKET, longest);
        (2.0 * super_packet).max(in_span).min(1e6) as usize
    }
    /// The rate by which Linux limits and paces a flow; zero before the first round trip.
    fn packets_per_second(&self) -> f64 {
        if let Some(rate) = self.allowance.pacing {
            return rate.bytes_per_sec() / self.packet_bytes() as f64;
        }
        let (srtt, cwnd) = (self.controller_srtt().as_secs_f64(), self.allowance.cwnd);
        let windows = if cwnd < self.sender.threshold() / 2.0 { IN_SLOW_START } else { LATER };
        if srtt > 0.0 { windows * cwnd / srtt } else { 0.0 }
    }
    /// Seconds after a packet in which the host's queue sends no other of this flow.
    #[cold]
    #[inline(never)]
    pub(super) fn gap_of_queue(&self) -> Option<f64> {
        let rate = self.packets_per_second();
        (rate > 0.0).then(|| 1.0 / rate)
    }
}

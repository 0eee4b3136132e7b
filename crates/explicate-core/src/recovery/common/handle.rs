//! The recovery of a flow, and its state. While no segment is missing the flow keeps the counters itself
//! ([`LossFree`]), and returns them to the recovery before any other event. For each event, one call returns both the
//! state and the next segment.

use alloc::boxed::Box;

use super::loss_free::LossFree;
use crate::api::Probe;
use crate::recovery::{AnyRecovery, Next, Outcome, RecoveryState};
use crate::units::Time;
use crate::wire::{SackRanges, Transport};

/// Maximum number of segments in flight.
#[derive(Clone, Copy)]
pub(crate) struct Windows {
    /// By the sender's window.
    pub(crate) cwnd: f64,
    /// By the receiver's window.
    pub(crate) rwnd: u32,
    /// By both, in whole segments.
    pub(crate) both: u32,
}

/// A timer of the recovery that expired.
pub(crate) enum Expired {
    /// The retransmission timer; the segments that were in flight, and whether the event before was also an expiry.
    Timeout { in_flight: u32, repeated: bool },
    /// Another one.
    Early(Outcome),
}

/// The recovery of a flow, as used by the flow.
pub(crate) struct RecoveryHandle {
    recovery: Box<AnyRecovery>,
    at: RecoveryState,
    /// The next transmission, if it is known.
    next: Option<Next>,
    /// Counters lent by the recovery: `at` is ahead of the recovery's state until it takes them back.
    checked_out: Option<LossFree>,
    /// Bytes of the recovery that the next packet needs: none while it lends its counters and does not follow.
    in_use: u32,
}

impl RecoveryHandle {
    /// The state before the first transmission.
    pub(crate) fn new(recovery: Box<AnyRecovery>) -> RecoveryHandle {
        let in_use = size_of_val(&*recovery) as u32;
        RecoveryHandle { at: recovery.state(), recovery, next: None, checked_out: None, in_use }
    }
    /// Address and length in memory of the recovery for prefetching.
    #[inline]
    pub(crate) fn kept_apart(&self) -> (*const u8, usize) {
        (core::ptr::from_ref(&*self.recovery).cast(), self.in_use as usize)
    }
    /// Whether the recovery learns of each event although its counters are lent.
    #[inline(always)]
    fn follows(&self) -> bool {
        self.in_use > 0
    }
    /// The state of the flow.
    #[inline(always)]
    pub(crate) fn at(&self) -> &RecoveryState {
        &self.at
    }
    /// See [`crate::recovery::Recovery::leave_repair_to_window`].
    pub(crate) fn leave_repair_to_window(&mut self) {
        self.recovery.leave_repair_to_window();
    }
    /// The connection is set up, with the round-trip time `rtt`.
    pub(crate) fn connected(&mut self, rtt: Time) {
        self.recovery.on_rtt(rtt);
        (self.at, self.next) = (self.recovery.state(), None);
    }

    /// An acknowledgement arrived, with its sample. `sack` is read only if the header states that there are ranges.
    #[inline(always)]
    pub(crate) fn acknowledge(&mut self, now: Time, header: &Transport, sack: &SackRanges, rtt: Time) -> Outcome {
        self.next = None;
        if let Some(loss_free) = &mut self.checked_out
            && header.sack_count() == 0
        {
            let newly_acked = loss_free.acknowledge(&mut self.at, now, header.segment(), rtt);
            if newly_acked > 0 {
                if self.follows() {
                    self.recovery.follow_ack(now, newly_acked, rtt, &mut self.at);
                }
                return Outcome { newly_acked, ..Outcome::default() };
            }
        }
        self.recover(now, header, sack, rtt)
    }
    #[inline(never)]
    fn recover(&mut self, now: Time, header: &Transport, sack: &SackRanges, rtt: Time) -> Outcome {
        self.check_in();
        let (cumulative, number) = (header.segment(), header.packet_number());
        let ranges = if header.sack_count() == 0 { &[] } else { sack.as_slice() };
        let out = self.recovery.take_ack(now, cumulative, number, ranges, rtt, &mut self.at);
        // What is being repaired is never lent.
        if self.at.recovering {
            return out;
        }
        self.checked_out = self.recovery.check_out();
        if self.checked_out.as_ref().is_some_and(|loss_free| !loss_free.follows) {
            self.in_use = 0;
        }
        out
    }
    fn check_in(&mut self) {
        if let Some(loss_free) = self.checked_out.take() {
            self.recovery.check_in(&loss_free, &self.at);
            self.in_use = size_of_val(&*self.recovery) as u32;
        }
    }

    /// Runs the timer if it is due.
    pub(crate) fn handle_timeout(&mut self, now: Time) -> Option<Expired> {
        self.next = None;
        if self.at.timer > now {
            return None;
        }
        self.check_in();
        let early = self.recovery.on_early_timer(now);
        let repeated = self.recovery.backoffs() > 0;
        let expired = match early {
            Some(outcome) => Some(Expired::Early(outcome)),
            None => self.recovery.on_timer(now).map(|in_flight| Expired::Timeout { in_flight, repeated }),
        };
        self.at = self.recovery.state();
        expired
    }
    /// Consecutive expiries; zero while the counters are lent.
    pub(crate) fn backoffs(&self) -> u32 {
        if self.checked_out.is_some() { 0 } else { self.recovery.backoffs() }
    }

    /// The retransmission timeout while nothing is missing; the smoothed round-trip time and a second if it is not known.
    pub(crate) fn timeout(&self) -> Time {
        match &self.checked_out {
            Some(loss_free) => loss_free.timeout(self.at.srtt),
            None => self.recovery.timeout().unwrap_or(self.at.srtt + Time::secs(1)),
        }
    }

    /// The next transmission.
    #[inline(always)]
    pub(crate) fn next(&self, windows: Windows) -> Next {
        match (self.next, &self.checked_out) {
            (Some(next), _) => next,
            (None, Some(loss_free)) => loss_free.next(&self.at, windows.both),
            (None, None) => self.recovery.next(windows.cwnd, windows.rwnd),
        }
    }
    /// Whether it is known that nothing can be sent now.
    #[inline(always)]
    pub(crate) fn is_full(&self) -> bool {
        self.next == Some(Next::Nothing)
    }
    /// A segment that may be retransmitted when there is no new data; none while the counters are lent.
    pub(crate) fn spare(&self) -> Option<u32> {
        if self.checked_out.is_some() { None } else { self.recovery.spare() }
    }
    /// A segment left, in the packet with this number.
    #[inline(always)]
    pub(crate) fn sent(&mut self, now: Time, (segment, number): (u32, u32), windows: Windows) {
        self.next = Some(match &self.checked_out {
            Some(loss_free) => {
                loss_free.sent(&mut self.at, now);
                if self.follows() {
                    self.recovery.follow_sent(now, &mut self.at);
                }
                loss_free.next(&self.at, windows.both)
            }
            None => {
                let windows = (windows.cwnd, windows.rwnd);
                self.recovery.take_sent(now, (segment, number), windows, &mut self.at)
            }
        });
    }

    /// Reports the variables of the recovery.
    pub(crate) fn probe(&mut self, put: Probe<'_>) {
        self.check_in();
        self.recovery.probe(put);
    }
}

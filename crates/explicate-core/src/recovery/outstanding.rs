//! What a flow has sent and not heard of: its recovery, and where that stands. While nothing is missing the flow keeps the counts
//! by itself ([`Steady`]), and recovery gets them back before it is told of anything else. Of each change one call tells
//! state and next segment.

use alloc::boxed::Box;

use super::steady::Steady;
use crate::api::Probe;
use crate::recovery::{AnyRecovery, Next, Outcome, RecoveryState};
use crate::units::Time;
use crate::wire::{SackRanges, Transport};

/// How many segments may be in flight.
#[derive(Clone, Copy)]
pub(crate) struct Windows {
    /// By the sender's window.
    pub(crate) cwnd: f64,
    /// By the receiver's.
    pub(crate) rwnd: u32,
    /// By both, in whole segments.
    pub(crate) both: u32,
}

/// A flow's recovery, as the flow sees it.
pub(crate) struct Outstanding {
    recovery: Box<AnyRecovery>,
    at: RecoveryState,
    /// What would be sent next, if that is known.
    next: Option<Next>,
    /// What recovery has lent: `at` is ahead of it until it takes the counts back.
    lent: Option<Steady>,
}

impl Outstanding {
    /// Nothing was sent yet.
    pub(crate) fn new(recovery: Box<AnyRecovery>) -> Outstanding {
        Outstanding { at: recovery.state(), recovery, next: None, lent: None }
    }
    /// Where in memory the recovery lies that is asked next, and how many bytes: none while it has lent its counts.
    #[inline]
    pub(crate) fn kept_apart(&self) -> (*const u8, usize) {
        let bytes = if self.lent.is_some() { 0 } else { size_of_val(&*self.recovery) };
        (core::ptr::from_ref(&*self.recovery).cast(), bytes)
    }
    /// Where it stands.
    #[inline(always)]
    pub(crate) fn at(&self) -> &RecoveryState {
        &self.at
    }
    /// The connection is set up, which took `rtt`.
    pub(crate) fn connected(&mut self, rtt: Time) {
        self.recovery.on_rtt(rtt);
        (self.at, self.next) = (self.recovery.state(), None);
    }

    /// An acknowledgement has come, with its sample. `sack` is read only if the header says that there are ranges.
    #[inline(always)]
    pub(crate) fn acknowledge(&mut self, now: Time, header: &Transport, sack: &SackRanges, rtt: Time) -> Outcome {
        self.next = None;
        if let Some(steady) = &mut self.lent
            && header.sack_count() == 0
        {
            let newly_acked = steady.acknowledge(&mut self.at, now, header.segment(), rtt);
            if newly_acked > 0 {
                return Outcome { newly_acked, duplicate: false, loss: None };
            }
        }
        self.recover(now, header, sack, rtt)
    }
    #[inline(never)]
    fn recover(&mut self, now: Time, header: &Transport, sack: &SackRanges, rtt: Time) -> Outcome {
        self.give_back();
        let (cumulative, number) = (header.segment(), header.packet_number());
        let ranges = if header.sack_count() == 0 { &[] } else { sack.as_slice() };
        let out = self.recovery.take_ack(now, cumulative, number, ranges, rtt, &mut self.at);
        self.lent = self.recovery.lend();
        out
    }
    fn give_back(&mut self) {
        if let Some(steady) = self.lent.take() {
            self.recovery.take_back(&steady, &self.at);
        }
    }

    /// Runs its timer if that is due: what was in flight if it expired, and whether it had done so just before.
    pub(crate) fn handle_timeout(&mut self, now: Time) -> Option<(u32, bool)> {
        self.next = None;
        if self.at.timer > now {
            return None;
        }
        self.give_back();
        let repeated = self.recovery.backoffs() > 0;
        let expired = self.recovery.on_timer(now);
        self.at = self.recovery.state();
        Some((expired?, repeated))
    }
    /// Expiries in a row; what is lent has none.
    pub(crate) fn backoffs(&self) -> u32 {
        if self.lent.is_some() { 0 } else { self.recovery.backoffs() }
    }

    /// What to send next.
    #[inline(always)]
    pub(crate) fn next(&self, windows: Windows) -> Next {
        match (self.next, &self.lent) {
            (Some(next), _) => next,
            (None, Some(steady)) => steady.next(&self.at, windows.both),
            (None, None) => self.recovery.next(windows.cwnd, windows.rwnd),
        }
    }
    /// Whether it is known that there is nothing to send now.
    #[inline(always)]
    pub(crate) fn is_full(&self) -> bool {
        self.next == Some(Next::Nothing)
    }
    /// What may be resent when there is nothing new; of what is lent nothing is missing.
    pub(crate) fn spare(&self) -> Option<u32> {
        if self.lent.is_some() { None } else { self.recovery.spare() }
    }
    /// A segment left, in the packet of this number.
    #[inline(always)]
    pub(crate) fn sent(&mut self, now: Time, (segment, number): (u32, u32), windows: Windows) {
        self.next = Some(match &self.lent {
            Some(steady) => {
                steady.sent(&mut self.at, now);
                steady.next(&self.at, windows.both)
            }
            None => {
                let windows = (windows.cwnd, windows.rwnd);
                self.recovery.take_sent(now, (segment, number), windows, &mut self.at)
            }
        });
    }

    /// Tells recovery's variables.
    pub(crate) fn probe(&mut self, put: Probe<'_>) {
        self.give_back();
        self.recovery.probe(put);
    }
}

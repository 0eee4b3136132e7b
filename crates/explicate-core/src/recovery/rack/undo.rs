//! Whether an episode was needless: every retransmission has been reported as a duplicate (RFC 3708), or an acknowledgement of new
//! data echoes a time stamp from before the first retransmission (RFC 3522). Conditions and response are Linux's.

use crate::units::Time;

/// The unit of the time stamps of hosts.
const STAMP: u64 = 1_000_000;

/// What may show that the last episode was needless.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Doubt {
    /// The first segment of the episode, while its response can be taken back.
    from: Option<u32>,
    /// Retransmissions since then that were not reported as duplicates; `None` before the first.
    open: Option<u32>,
    /// When the first retransmission left.
    first: Option<Time>,
}

impl Doubt {
    /// An episode begins at this segment, with retransmissions of an earlier one in flight, among them perhaps a tail probe.
    pub(super) fn begin(&mut self, acked: u32, in_flight: u32) {
        self.from = Some(acked);
        self.open = (in_flight > 0).then_some(in_flight);
        if in_flight == 0 {
            self.first = None;
        }
    }
    /// A segment leaves again.
    pub(super) fn resent(&mut self, now: Time) {
        self.open = Some(self.open.unwrap_or(0).saturating_add(1));
        self.first.get_or_insert(now);
    }
    /// The receiver had received `[first, end)` before.
    pub(super) fn duplicate(&mut self, first: u32, end: u32) {
        if let (Some(from), Some(open)) = (self.from, &mut self.open)
            && end > from
        {
            *open = open.saturating_sub(end - first);
        }
    }
    /// Whether every retransmission was needless.
    pub(super) fn by_duplicates(&self) -> bool {
        self.from.is_some() && self.open == Some(0)
    }
    /// Whether an acknowledgement that advances echoes a time stamp from before the first retransmission.
    pub(super) fn by_stamp(&self, echoed: Time) -> bool {
        self.from.is_some() && self.first.is_some_and(|first| echoed.0 / STAMP < first.0 / STAMP)
    }
    /// There is nothing to take back, or it was taken back.
    pub(super) fn end(&mut self) {
        *self = Doubt::default();
    }
    /// Retransmissions of the episode are over; a duplicate may still be reported.
    pub(super) fn settle(&mut self) {
        self.first = None;
    }
}

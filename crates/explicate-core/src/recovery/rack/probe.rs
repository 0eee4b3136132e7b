//! The tail loss probe (RFC 8985 section 7): after two round trips without an acknowledgement one segment is sent, new data or the
//! last segment again, so that its report shows what was lost at the end of a transfer.

use crate::units::Time;

/// The least delay of a timer of Linux beyond its reason, two ticks.
pub(super) const SLACK: Time = Time::millis(2);

/// The probe and its timer.
#[derive(Clone, Copy, Debug)]
pub(super) struct TailProbe {
    /// When it is sent.
    pub(super) at: Time,
    /// It is to be sent now.
    pub(super) due: bool,
    /// While a probe waits for its answer: one past the highest segment sent with it; 0 otherwise.
    end: u32,
    /// It repeated a segment.
    again: bool,
    /// How long a receiver may delay the acknowledgement of a single segment.
    ack_delay: Time,
}

impl TailProbe {
    pub(super) fn new(ack_delay: Time) -> TailProbe {
        TailProbe { at: Time::NEVER, due: false, end: 0, again: false, ack_delay }
    }
    /// Starts the timer over for this number of outstanding segments, or stops it. It does not expire after the
    /// retransmission timer.
    #[inline]
    pub(super) fn schedule(&mut self, now: Time, allowed: bool, outstanding: u32, srtt: Time, rto: Time) {
        self.due = false;
        if !allowed || outstanding == 0 || self.end > 0 {
            self.at = Time::NEVER;
            return;
        }
        let wait = match srtt {
            Time::ZERO => Time::secs(1),
            _ => Time(2 * srtt.0) + if outstanding == 1 { self.ack_delay } else { SLACK },
        };
        self.at = (now + wait).min(rto);
    }
    /// The probe leaves; `end` is one past the highest segment sent.
    pub(super) fn sent(&mut self, again: bool, end: u32) {
        (self.due, self.again, self.end) = (false, again, end);
    }
    /// Whether a probe that repeated a segment has no answer.
    pub(super) fn is_open(&self) -> bool {
        self.end > 0 && self.again
    }
    /// Whether none is due or waits for its answer.
    pub(super) fn is_idle(&self) -> bool {
        !self.due && self.end == 0
    }
    /// Whether this range reports the probe as a duplicate.
    pub(super) fn is_duplicate(&self, end: u32) -> bool {
        self.is_open() && self.end == end
    }
    /// An acknowledgement arrived: whether it shows that the probe repaired a loss (section 7.4.2).
    pub(super) fn repaired(&mut self, cumulative: u32, brings_nothing: bool, duplicate: bool) -> bool {
        if self.end == 0 || cumulative < self.end {
            return false;
        }
        let lost = self.again && !duplicate && cumulative > self.end;
        if !self.again || duplicate || lost || brings_nothing {
            self.end = 0;
        }
        lost
    }
    /// Another repair takes over.
    pub(super) fn cancel(&mut self) {
        (self.at, self.due, self.end) = (Time::NEVER, false, 0);
    }
}

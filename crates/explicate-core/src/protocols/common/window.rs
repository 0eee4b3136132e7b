//! The common part of most window controllers: the window of RFC 5681 with slow start and threshold, and the end of a
//! round trip.

use crate::api::{Ack, Loss, LossKind, Probe, Undo};

/// Window and threshold of RFC 5681, in segments.
pub(crate) struct Window {
    /// Congestion window; fractions are kept.
    pub(crate) cwnd: f64,
    /// Slow start ends here.
    pub(crate) ssthresh: f64,
}

impl Window {
    /// A window in slow start.
    pub(crate) fn new(initial: f64) -> Window {
        Window { cwnd: initial, ssthresh: f64::INFINITY }
    }
    /// Slow start, equation 2, by at most `most` segments for one acknowledgement (1 in RFC 5681, L in RFC 3465);
    /// false, without any change, once the threshold is reached.
    #[inline]
    pub(crate) fn slow_start(&mut self, newly_acked: u32, most: f64) -> bool {
        if self.cwnd >= self.ssthresh {
            return false;
        }
        self.cwnd = (self.cwnd + (newly_acked as f64).min(most)).min(self.ssthresh);
        true
    }
    /// Congestion avoidance, equation 3: `per_rtt` segments for one window of acknowledgements.
    #[inline]
    pub(crate) fn rise(&mut self, per_rtt: f64, newly_acked: u32) {
        self.cwnd += per_rtt * newly_acked as f64 / self.cwnd;
    }
    /// A loss or mark reduces to `share` of the segments in flight: the threshold, and also the window unless a timer
    /// expired (section 3.1, equation 4 and below).
    pub(crate) fn reduce(&mut self, loss: &Loss, share: f64) {
        self.reduce_to(loss, loss.in_flight as f64 * share);
    }
    /// As `reduce`, with the threshold given; the threshold does not change when a timeout repeats, and is at least
    /// two.
    pub(crate) fn reduce_to(&mut self, loss: &Loss, ssthresh: f64) {
        if !loss.repeated {
            self.ssthresh = ssthresh.max(2.0);
        }
        self.cwnd = if loss.kind == LossKind::Timeout { 1.0 } else { self.ssthresh };
    }
    /// Takes the last reduction back: window and threshold are what they were, or larger (Linux 6.18, `tcp_undo_cwnd_reduction`).
    pub(crate) fn undo(&mut self, undo: &Undo) {
        self.cwnd = self.cwnd.max(undo.cwnd);
        self.ssthresh = self.ssthresh.max(undo.ssthresh);
    }
    /// Reports window and threshold.
    pub(crate) fn probe(&self, put: Probe<'_>) {
        put("cwnd", self.cwnd);
        put("ssthresh", self.ssthresh);
    }
}

/// Whether the window may grow with an acknowledgement: it cumulatively covers new data (RFC 5681 section 3.1; a
/// report by a duplicate does not count), no repair is in progress, and the window was used.
#[inline]
pub(crate) fn grows(ack: &Ack<'_>) -> bool {
    !(ack.recovering | ack.app_limited | ack.duplicate) && ack.newly_acked > 0
}

/// Detects round trips by sequence numbers: one ends when the first segment sent after its beginning is acknowledged.
#[derive(Default)]
pub(crate) struct Round {
    end: u32,
}

impl Round {
    /// Whether a round ends with this acknowledgement; the next one then begins.
    #[inline]
    pub(crate) fn ends(&mut self, ack: &Ack<'_>) -> bool {
        let over = ack.cumulative > self.end;
        if over {
            self.end = ack.highest_sent;
        }
        over
    }
}

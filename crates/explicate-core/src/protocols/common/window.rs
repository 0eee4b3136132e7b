//! The common part of most window controllers: the window of RFC 5681 with slow start and threshold, and the end of a
//! round trip.

use alloc::boxed::Box;

use super::hystart::{HystartParams, Observer};
use super::usage::{Usage, UsageParams};
use crate::api::{Ack, Loss, LossKind, Probe, SenderInit, Undo};
use crate::endpoint::Params;
use crate::params::parameters;
use crate::units::Time;

parameters! {
    /// Parameters of window controllers: the end of slow start, growth and idle times.
    pub struct WindowParams {
        /// The end of slow start.
        hystart: HystartParams = HystartParams::DEFAULT;
        /// Growth and idle times.
        usage: UsageParams = UsageParams::DEFAULT;
    }
}

/// Window and threshold of RFC 5681, in segments.
pub(crate) struct Window {
    /// Congestion window; fractions are kept.
    pub(crate) cwnd: f64,
    /// Slow start ends here.
    pub(crate) ssthresh: f64,
    rules: Option<Box<Rules>>,
}

/// Rules beyond RFC 5681; most flows have none.
struct Rules {
    observer: Option<Observer>,
    usage: Option<Usage>,
}

impl Window {
    /// A window in slow start, by the rules of RFC 5681.
    pub(crate) fn new(initial: f64) -> Window {
        Window { cwnd: initial, ssthresh: f64::INFINITY, rules: None }
    }
    /// A window in slow start, by the rules that the flow's parameters select.
    pub(crate) fn of(init: &SenderInit<'_>, params: WindowParams) -> Window {
        let observer = Observer::new(params.hystart.hystart, init.packet, Params::of(init.values).is_paced());
        let usage = Usage::new(params.usage, init.initial_window);
        let any = observer.is_some() || usage.is_some();
        Window { rules: any.then(|| Box::new(Rules { observer, usage })), ..Window::new(init.initial_window) }
    }
    /// Call for every acknowledgement: whether the window may grow with it. May end slow start, or shrink a window that is
    /// not used.
    #[inline(always)]
    pub(crate) fn grows(&mut self, ack: &Ack<'_>) -> bool {
        if self.rules.is_some() { self.grows_by_rules(ack) } else { grows(ack) }
    }
    fn grows_by_rules(&mut self, ack: &Ack<'_>) -> bool {
        let Some(rules) = &mut self.rules else { return grows(ack) };
        if let Some(observer) = &mut rules.observer
            && self.cwnd < self.ssthresh
            && !ack.recovering
            && observer.ends(ack, self.cwnd, self.ssthresh.is_infinite())
        {
            self.ssthresh = self.cwnd;
        }
        match &mut rules.usage {
            Some(usage) => usage.grows(ack, &mut self.cwnd, &mut self.ssthresh),
            None => grows(ack),
        }
    }
    /// The flow sends again after an idle time; see [`crate::api::Sender::on_idle`].
    pub(crate) fn on_idle(&mut self, now: Time, idle: Time, timeout: Time) {
        let Some(mut rules) = self.rules.take() else { return };
        if let Some(usage) = &mut rules.usage {
            usage.on_idle(now, idle, timeout, self);
        }
        self.rules = Some(rules);
    }
    /// Slow start by all that an acknowledgement covers, as [`Window::slow_start`]. Returns the segments that are left for
    /// congestion avoidance because the threshold was reached.
    #[inline]
    pub(crate) fn slow_start_by(&mut self, newly_acked: f64) -> f64 {
        let before = self.cwnd;
        if before >= self.ssthresh {
            return newly_acked;
        }
        let growth = self.growth(newly_acked, f64::INFINITY);
        self.cwnd = (before + growth).min(self.ssthresh);
        if self.cwnd < self.ssthresh { 0.0 } else { newly_acked - (self.cwnd - before) }
    }
    /// Growth in slow start for an acknowledgement, by at most `most` unless the rules say otherwise.
    #[inline]
    fn growth(&self, newly_acked: f64, most: f64) -> f64 {
        let observer = self.rules.as_ref().and_then(|rules| rules.observer.as_ref());
        observer.map_or_else(|| newly_acked.min(most), |observer| observer.growth(newly_acked, most))
    }
    /// The retransmission timer expired: what was observed of slow start is out of date.
    pub(crate) fn forget(&mut self) {
        if let Some(observer) = self.rules.as_mut().and_then(|rules| rules.observer.as_mut()) {
            observer.on_timeout();
        }
    }
    /// Slow start, equation 2, by at most `most` segments for one acknowledgement (1 in RFC 5681, L in RFC 3465);
    /// false, without any change, once the threshold is reached.
    #[inline]
    pub(crate) fn slow_start(&mut self, newly_acked: u32, most: f64) -> bool {
        if self.cwnd >= self.ssthresh {
            return false;
        }
        self.cwnd = (self.cwnd + self.growth(newly_acked as f64, most)).min(self.ssthresh);
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
        self.cwnd = self.ssthresh;
        if loss.kind == LossKind::Timeout {
            self.cwnd = 1.0;
            self.forget();
        }
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

/// Growth in congestion avoidance by whole segments, as in Linux (`tcp_cong_avoid_ai`).
#[derive(Default)]
pub(crate) struct Additive {
    /// Acknowledged segments that have not made one more yet.
    credit: u32,
}

impl Additive {
    /// One segment for each `per_segment` acknowledged.
    #[inline]
    pub(crate) fn rise(&mut self, window: &mut Window, per_segment: u32, acked: u32) {
        let per_segment = per_segment.max(1);
        // What was gathered while more were needed makes one segment, not several.
        if self.credit >= per_segment {
            self.credit = 0;
            window.cwnd += 1.0;
        }
        self.credit = self.credit.saturating_add(acked);
        if self.credit >= per_segment {
            window.cwnd += (self.credit / per_segment) as f64;
            self.credit %= per_segment;
        }
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

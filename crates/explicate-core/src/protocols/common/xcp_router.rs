//! The router of XCP (D03 section 3.4). Its parts are shared with the relatives of XCP.
//!
//! `XcpRouter` receives every packet's length, inter-packet time X and RTT, has the two timers and the two pools, and
//! writes the feedback into departing packets. The header is the draft's, or the paper's (`xcp_window.rs`).
//!
//! Two rules for the share drawn from the pools by a packet that requests less than this router offers (offer: pos - neg):
//!
//! | `pools` | from the positive pool | from the negative pool |
//! | --- | --- | --- |
//! | `draft`, D03 3.4 | request + the share of the negative pool | neg + (offer - request), at most all of it |
//! | `paper`, XCP02 appendix A, request > 0 | request | offer - request |
//! | `paper`, request <= 0 | nothing | -request, and the offer if that is positive |
//!
//! The offer to a packet is bounded by the remainder of either pool: pos <= residue_pos, neg <= residue_neg
//! (`xcp.rs`, deviation 6). An interval hands out at most the initial contents of its pools and what packets return
//! to them.
//!
//! A target queue (`target_queue`, paper D section 7.2, there called XCPQ) replaces the persistent queue Q of the
//! efficiency controller by its mean minus the target: Qm - gamma_q, with Qm <- (1 - w) Qm + w Q at every sample of Q, w =
//! `queue_weight`. Paper D takes 10 packets and w = 0.1; its beta = 0.9 and gamma = 10 are not XCP's beta and gamma.

use core::marker::PhantomData;

use crate::api::{PortView, Probe, Router};
use crate::params::{Bytes, Fraction, Number, Seconds, choices, parameters};
use crate::protocols::common::float::lesser;
use crate::protocols::common::rate_header::{SECONDS, UNITS_PER_SEC, round, seconds_to_units};
use crate::rng::Rng;
use crate::units::Time;
use crate::wire::{Format, Packet};

choices! {
    /// Mean RTT after a control interval without data.
    pub enum IdleRtt { Last = "last", Initial = "initial" }
}

choices! {
    /// Share drawn from the pools by a packet that requests less than offered.
    pub enum Pools { Draft = "draft", Paper = "paper" }
}

parameters! {
    /// Router parameters of the XCP family.
    pub struct Params {
        /// Share of the spare bandwidth handed out per interval.
        alpha: Number = 0.4, "XCP02 3.5";
        /// Share of the persistent queue drained per interval.
        beta: Number = 0.226, "XCP02 3.5";
        /// Share of the traffic that is redistributed per interval.
        gamma: Fraction = 0.1, in 0.0..=1.0, "XCP02 3.5.2";
        /// Least control interval; D03 recommends at least the link's delay.
        min_interval: Seconds = 0.005, in 1e-4..=10.0, "D03 3.4";
        /// Upper bound of an RTT.
        max_interval: Seconds = 1.0, in 1e-3..=100.0, "D03 3.4";
        /// Least period of the queue estimate.
        allowed_queue: Seconds = 0.002, in 1e-5..=1.0, "D03 3.4";
        /// Control and queue interval before the first RTT is known.
        initial_interval: Seconds = 0.05, in 1e-3..=10.0, "ns-2.35, xcpq";
        /// Mean RTT after a control interval without data: the last one, or the initial interval, as in ns-2.
        idle_rtt: IdleRtt = IdleRtt::Last, "ns-2.35, xcpq";
        /// Share drawn from the pools by a packet that requests less than offered.
        pools: Pools = Pools::Draft, "D03 3.4; XCP02 appendix A";
        /// Target of the persistent queue.
        target_queue: Bytes = 0.0, in 0.0..=1e9, "paper D section 7.2, gamma";
        /// Weight of the newest sample in the mean of the persistent queue; paper D takes 0.1.
        queue_weight: Fraction = 1.0, in 1e-3..=1.0, "paper D section 7.2, 1 - beta";
    }
}

/// The fields of a packet's congestion header that the controller reads.
pub(crate) struct Stated {
    /// Inter-packet time X, header units; 0 = unknown.
    pub(crate) x: f64,
    /// RTT, header units; 0 = unknown.
    pub(crate) rtt: u32,
    /// Requested change of rate, bytes/s.
    pub(crate) request: f64,
}

/// A header format with X, RTT and a request.
pub(crate) trait Header: Default + Send {
    /// Packets of other formats count as load only.
    const FORMAT: Format;
    /// Reads the fields of a packet of this format; `None` if the packet is neither counted nor answered.
    fn read(packet: &mut Packet) -> Option<Stated>;
    /// Reduces the request to `granted`, bytes/s.
    fn grant(packet: &mut Packet, granted: f64);
}

/// The header of D03.
#[derive(Default)]
pub(crate) struct RateHeader;

impl Header for RateHeader {
    const FORMAT: Format = Format::STANDARD;
    #[inline(always)]
    fn read(packet: &mut Packet) -> Option<Stated> {
        let header = &packet.congestion;
        Some(Stated { x: header.x() as f64, rtt: header.rtt(), request: header.delta_throughput() as f64 })
    }
    #[inline(always)]
    fn grant(packet: &mut Packet, granted: f64) {
        packet.congestion.set_delta_throughput(round(granted));
    }
}

/// The controller of an output port.
#[derive(Default)]
pub(crate) struct XcpRouter<H = RateHeader> {
    params: Params,
    /// Maximum RTT that counts, header units, an integer.
    max_rtt: f64,
    // Sums over the present interval. No two that change together are adjacent: as a pair in one register they would
    // take more instructions.
    input_bytes: u64,
    /// Sum of X, header units.
    pub(crate) sum_x: f64,
    /// Feedback of the interval, bytes/s per header unit of X.
    cp: f64,
    /// Sum of X * RTT, header units squared.
    sum_xrtt: f64,
    pub(crate) res_pos: f64,
    /// Bytes/s per byte.
    pub(crate) cn: f64,
    min_queue: u64,
    pub(crate) res_neg: f64,
    // The persistent queue and its mean, bytes.
    queue: u64,
    pub(crate) mean_queue: f64,
    /// Mean RTT of the flows, seconds.
    pub(crate) avg_rtt: f64,
    pub(crate) interval_began: Time,
    pub(crate) control_at: Time,
    pub(crate) queue_at: Time,
    header: PhantomData<H>,
}

impl<H: Header> XcpRouter<H> {
    pub(crate) fn new(params: Params, mut rng: Rng) -> XcpRouter<H> {
        let first = params.initial_interval;
        let mut jittered = || Time::from_secs_f64(first * (0.8 + 0.4 * rng.uniform()));
        let (control_at, queue_at) = (jittered(), jittered());
        let max_rtt = seconds_to_units(params.max_interval) as f64;
        XcpRouter { params, max_rtt, avg_rtt: first, control_at, queue_at, ..XcpRouter::default() }
    }

    /// A first control interval begins. Until it ends this round-trip time, in header units, is the mean.
    pub(crate) fn begin(&mut self, now: Time, rtt: u32) {
        self.avg_rtt = (rtt as f64).min(self.max_rtt) * SECONDS;
        self.interval_began = now;
        self.control_at = now + Time::from_secs_f64(self.avg_rtt.max(self.params.min_interval));
    }

    /// The estimation-control timer: efficiency controller, then the scale factors of the fairness controller. `scale`
    /// multiplies a positive aggregate feedback where it is spread over packets; the pools that bound it are not scaled.
    /// `spare` is the spare bandwidth at a load, both in bytes/s.
    pub(crate) fn control(&mut self, now: Time, spare: impl FnOnce(f64) -> f64, scale: f64) {
        let p = &self.params;
        if self.sum_x > 0.0 {
            self.avg_rtt = self.sum_xrtt / self.sum_x * SECONDS; // mean over flows: X weights a flow's packets to one flow
        } else if p.idle_rtt == IdleRtt::Initial {
            self.avg_rtt = p.initial_interval;
        }
        let elapsed = now.since(self.interval_began).as_secs_f64();
        let input = self.input_bytes as f64;
        let y = if elapsed > 0.0 { input / elapsed } else { 0.0 };
        let queue = self.mean_queue - p.target_queue;
        let f = p.alpha * spare(y) - p.beta * queue / self.avg_rtt.max(1e-6);
        let shuffle = (p.gamma * y - f.abs()).max(0.0);
        self.res_pos = shuffle + f.max(0.0);
        self.res_neg = shuffle + (-f).max(0.0);
        self.cp = if self.sum_x > 0.0 { (shuffle + f.max(0.0) * scale) / self.sum_x } else { 0.0 };
        self.cn = if input > 0.0 { self.res_neg / input } else { 0.0 };
        (self.input_bytes, self.sum_x, self.sum_xrtt) = (0, 0.0, 0.0);
        self.interval_began = now;
        self.control_at = now + Time::from_secs_f64(self.avg_rtt.max(p.min_interval));
    }

    /// The queue timer: bytes that never left the queue since the last one are persistent. Its period is not the
    /// control interval, because a queue would lengthen that.
    pub(crate) fn sample_queue(&mut self, now: Time, port: &PortView) {
        self.queue = self.min_queue.min(port.backlog_bytes);
        self.min_queue = port.backlog_bytes;
        self.mean_queue += self.params.queue_weight * (self.queue as f64 - self.mean_queue);
        let period = (self.avg_rtt - port.backlog_bytes as f64 / port.capacity) / 2.0;
        self.queue_at = now + Time::from_secs_f64(period.max(self.params.allowed_queue));
    }

    /// Runs the timers that are due; `scale` as in [`XcpRouter::control`]. Returns whether a control interval ended.
    pub(crate) fn tick(&mut self, now: Time, port: &PortView, scale: f64) -> bool {
        if self.queue_at <= now {
            self.sample_queue(now, port);
        }
        let ends = self.control_at <= now;
        if ends {
            self.control(now, |load| port.capacity - load, scale);
        }
        ends
    }

    /// Implements [`Router::on_departure`]. If the packet requests no more than its offer, returns its X (header units).
    #[inline(always)]
    pub(crate) fn answer(&mut self, packet: &mut Packet, port: &PortView) -> Option<f64> {
        self.min_queue = self.min_queue.min(port.backlog_bytes);
        let stated = self.stated(packet)?;
        let Some(granted) = self.feedback(stated.x, packet.ip_len as f64, stated.request) else {
            return Some(stated.x); // the request of a packet that is limited elsewhere does not change
        };
        H::grant(packet, granted);
        None
    }

    #[inline(always)]
    fn stated(&self, packet: &mut Packet) -> Option<Stated> {
        if self.writes_into(packet) { H::read(packet) } else { None }
    }

    /// Feedback for a departing packet that carries inter-packet time `x` (header units), length (bytes) and request
    /// (bytes/s); `None` if the request is no more than that.
    #[inline(always)]
    fn feedback(&mut self, x: f64, bytes: f64, request: f64) -> Option<f64> {
        // A packet takes at most the contents of the pool: after a timeout its X may be hundreds of times those from
        // which `cp` was computed.
        let pos = lesser(self.cp * x, self.res_pos);
        if self.res_neg <= 0.0 {
            // The negative pool is empty, so the offer is `pos`: the code below gives the same result at twice the cost.
            let reduced = request > pos;
            let asks = if self.params.pools == Pools::Paper { request.max(0.0) } else { request };
            take(&mut self.res_pos, &mut self.cp, if reduced { pos } else { asks });
            return reduced.then_some(pos);
        }
        let neg = lesser(self.cn * bytes, self.res_neg);
        let offer = pos - neg;
        let reduced = request > offer;
        let (pos, neg) = if reduced { (pos, neg) } else { self.reclaimed(neg, offer, request) };
        take(&mut self.res_pos, &mut self.cp, pos);
        take(&mut self.res_neg, &mut self.cn, neg);
        reduced.then_some(offer)
    }

    /// The shares of the positive and the negative pool for a packet that requests no more than its offer.
    #[inline(always)]
    fn reclaimed(&self, neg: f64, offer: f64, request: f64) -> (f64, f64) {
        match self.params.pools {
            // The unused part of the offer is first taken from the negative pool, so that other packets lose less.
            Pools::Draft => {
                let neg = lesser(neg + (offer - request), self.res_neg);
                (request + neg, neg)
            }
            Pools::Paper if request > 0.0 => (request, offer - request),
            Pools::Paper => (0.0, offer.max(0.0) - request),
        }
    }
}

/// Takes a share from a pool. An empty pool has nothing more for any packet of the interval.
#[inline(always)]
fn take(pool: &mut f64, scale: &mut f64, share: f64) {
    *pool -= share;
    if *pool <= 0.0 {
        (*pool, *scale) = (0.0, 0.0);
    }
}

impl<H: Header> Router for XcpRouter<H> {
    /// Arrivals add to sums that timers read, departures take from pools that timers fill.
    const ORDER_INDEPENDENT: bool = true;

    #[inline(always)]
    fn on_arrival(&mut self, _now: Time, packet: &mut Packet, _port: &PortView) {
        self.input_bytes += packet.ip_len as u64; // every packet is load, also without a header
        if let Some(Stated { x, rtt, .. }) = self.stated(packet)
            && rtt != 0
        {
            self.sum_x += x; // an unknown X is zero, and adds nothing
            self.sum_xrtt += x * lesser(rtt as f64, self.max_rtt);
        }
    }

    #[inline(always)]
    fn writes_into(&self, packet: &Packet) -> bool {
        packet.congestion.has_format(H::FORMAT)
    }

    #[inline(always)]
    fn on_departure(&mut self, _now: Time, packet: &mut Packet, port: &PortView) {
        self.answer(packet, port);
    }

    /// XCP02 section 4.1: the spare bandwidth goes to zero, and shuffling makes the rates equal.
    fn shared(&self, port: &PortView) -> Option<f64> {
        Some(port.capacity)
    }

    fn on_least_backlog(&mut self, bytes: u64) {
        self.min_queue = self.min_queue.min(bytes);
    }

    fn on_timer(&mut self, now: Time, port: &PortView) {
        self.tick(now, port, 1.0);
    }

    fn next_timer(&self) -> Time {
        self.control_at.min(self.queue_at)
    }

    fn probe(&self, put: Probe<'_>) {
        put("avg_rtt_s", self.avg_rtt);
        put("persistent_queue_bytes", self.queue as f64);
        put("mean_queue_bytes", self.mean_queue);
        put("res_pos_bytes_per_s", self.res_pos);
        put("res_neg_bytes_per_s", self.res_neg);
        put("cp", self.cp * UNITS_PER_SEC);
        put("cn", self.cn);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Congestion;

    const C: f64 = 1.25e6;

    fn view(backlog_bytes: u64) -> PortView {
        PortView { capacity: C, backlog_bytes, backlog_packets: 0, busy: true }
    }
    fn router_with(params: Params) -> XcpRouter {
        XcpRouter::new(params, Rng::stream(1, "test"))
    }
    fn router() -> XcpRouter {
        router_with(Params::DEFAULT)
    }
    fn packet(x: f64, rtt: f64, delta: i32) -> Packet {
        let mut p = Packet { ip_len: 1000, congestion: Congestion::new(Format::STANDARD), ..Packet::EMPTY };
        p.congestion.set_x(seconds_to_units(x));
        p.congestion.set_rtt(seconds_to_units(rtt));
        p.congestion.set_delta_throughput(delta);
        p
    }
    /// An interval of 0.1 s with `a` packets of 1000 B of a flow with inter-packet time `xa` and `b` of another, all with an
    /// RTT of 0.1 s, then its control timer.
    fn after_interval(a: u32, xa: f64, b: u32, xb: f64) -> XcpRouter {
        let mut r = router();
        for _ in 0..a {
            r.on_arrival(Time::ZERO, &mut packet(xa, 0.1, 0), &view(0));
        }
        for _ in 0..b {
            r.on_arrival(Time::ZERO, &mut packet(xb, 0.1, 0), &view(0));
        }
        r.control(Time::millis(100), |load| C - load, 1.0);
        r
    }
    fn departs(r: &mut XcpRouter, x: f64) -> i32 {
        let mut p = packet(x, 0.1, i32::MAX);
        r.on_departure(Time::millis(100), &mut p, &view(0));
        p.congestion.delta_throughput()
    }

    /// y = (50 + 10) 1000 / 0.1 = 6e5; sum of X = 50 0.002 + 10 0.01 = 0.2 s, two flows for 0.1 s;
    /// F = 0.4 (1.25e6 - 6e5) = 2.6e5; 0.1 y = 6e4 < F, so nothing is shuffled; Cp = 2.6e5 / 0.2 = 1.3e6.
    #[test]
    fn increases_are_equal_per_flow() {
        let mut r = after_interval(50, 0.002, 10, 0.01);
        // X and RTT carry a rounding of 2^-29 s each.
        assert!((r.cp * UNITS_PER_SEC - 1.3e6).abs() < 5.0, "{}", r.cp);
        assert_eq!(r.cn, 0.0);
        assert!((r.avg_rtt - 0.1).abs() < 1e-8);
        // 1.3e6 0.002 and 1.3e6 0.01; a flow's packets together get 50 2600 = 10 13000 = 130000 B/s.
        assert_eq!((departs(&mut r, 0.002), departs(&mut r, 0.01)), (2600, 13_000));
    }

    /// y = (100 + 25) 1000 / 0.1 = 1.25e6 = C, F = 0, both pools 0.1 y = 125000; sum of X = 0.2 s, so Cp = 625000, and
    /// Cn = 125000 / 125000 B = 1. A packet of a gets 625 - 1000, one of b 2500 - 1000.
    #[test]
    fn shuffling_moves_rate_from_the_fast_to_the_slow() {
        let mut r = after_interval(100, 0.001, 25, 0.004);
        assert!((r.res_pos - 125_000.0).abs() < 1e-6 && (r.res_neg - 125_000.0).abs() < 1e-6);
        let a: i32 = (0..100).map(|_| departs(&mut r, 0.001)).sum();
        let b: i32 = (0..25).map(|_| departs(&mut r, 0.004)).sum();
        assert!((a + 37_500).abs() <= 50 && (b - 37_500).abs() <= 50, "{a} {b}");
    }

    /// What packets with an offer of 10 - 4 = 6 take from pools of 1000 and `res_neg`, and what they carry on.
    fn reclaim(pools: Pools, res_neg: f64, delta: f64) -> (f64, f64, f64) {
        let mut r = router_with(Params { pools, ..Params::DEFAULT });
        (r.cp, r.cn, r.res_pos, r.res_neg) = (10.0, 4.0, 1000.0, res_neg);
        let carried = r.feedback(1.0, 1.0, delta).unwrap_or(delta);
        (carried, 1000.0 - r.res_pos, res_neg - r.res_neg)
    }

    /// Request 2: neg = min(4 + (6 - 2), res_neg), pos = 2 + neg. Request 6: all of the offer, neg = 4.
    #[test]
    fn the_draft_takes_the_negative_pool_first() {
        assert_eq!(reclaim(Pools::Draft, 100.0, 2.0), (2.0, 10.0, 8.0));
        assert_eq!(reclaim(Pools::Draft, 5.0, 2.0), (2.0, 7.0, 5.0));
        assert_eq!(reclaim(Pools::Draft, 100.0, 6.0), (6.0, 10.0, 4.0));
        assert_eq!(reclaim(Pools::Draft, 100.0, 7.0), (6.0, 10.0, 4.0), "more than the offer");
    }

    /// Request 2: 2 and 6 - 2. Request -3: nothing and 3 + 6.
    #[test]
    fn the_paper_splits_by_the_sign_of_the_request() {
        assert_eq!(reclaim(Pools::Paper, 100.0, 2.0), (2.0, 2.0, 4.0));
        assert_eq!(reclaim(Pools::Paper, 100.0, -3.0), (-3.0, 0.0, 9.0));
        assert_eq!(reclaim(Pools::Paper, 100.0, 7.0), (6.0, 10.0, 4.0), "more than the offer");
        let mut r = router_with(Params { pools: Pools::Paper, ..Params::DEFAULT });
        (r.cn, r.res_pos, r.res_neg) = (4.0, 1000.0, 100.0);
        assert_eq!(r.feedback(1.0, 1.0, -9.0), None);
        assert_eq!((r.res_pos, r.res_neg), (1000.0, 91.0), "a negative offer does not count");
    }

    /// Pools of 130 kB/s and nothing, Cp = 1.3e6: an X of 10 s is offered 13 MB/s, and gets what there is. So is a packet of
    /// 1000 B that would lose 4 kB/s where 100 B/s are to be taken.
    #[test]
    fn a_packet_takes_no_more_than_a_pool_holds() {
        for (pools, delta, feedback, left) in [
            ([130_000.0, 0.0], 1e9, Some(130_000.0), [0.0, 0.0]),
            ([130_000.0, 100.0], 1e9, Some(129_900.0), [0.0, 0.0]),
            ([130_000.0, 100.0], 50_000.0, None, [79_900.0, 0.0]),
        ] {
            let mut r = router();
            (r.cp, r.cn, [r.res_pos, r.res_neg]) = (1.3e6 / UNITS_PER_SEC, 4.0, pools);
            assert_eq!(r.feedback(10.0 * UNITS_PER_SEC, 1000.0, delta), feedback);
            assert_eq!([r.res_pos, r.res_neg], left);
        }
    }

    #[test]
    fn unknown_x_gets_nothing_positive_and_acknowledgements_are_left_alone() {
        let mut r = after_interval(50, 0.002, 10, 0.01);
        assert_eq!(departs(&mut r, 0.0), 0);
        let mut ack = Packet { ip_len: 72, congestion: Congestion::new(Format::MINIMAL), ..Packet::EMPTY };
        ack.congestion.set_reverse_feedback(77);
        let before = ack.congestion;
        let pools = (r.res_pos, r.res_neg);
        r.on_departure(Time::ZERO, &mut ack, &view(0));
        assert_eq!((ack.congestion, (r.res_pos, r.res_neg)), (before, pools));
    }

    #[test]
    fn an_idle_interval_empties_the_pools() {
        let mut r = after_interval(50, 0.002, 10, 0.01);
        r.control(Time::millis(200), |load| C - load, 1.0);
        assert_eq!((r.cp, r.cn), (0.0, 0.0));
    }

    /// An interval with packets of an RTT of 0.1 s, then one without. The last one lasts as long as the mean RTT.
    #[test]
    fn an_idle_interval_leaves_the_mean_rtt_unless_the_user_says_otherwise() {
        for (idle_rtt, rtt) in [(IdleRtt::Last, 0.1), (IdleRtt::Initial, 0.05)] {
            let mut r = router_with(Params { idle_rtt, ..Params::DEFAULT });
            r.on_arrival(Time::ZERO, &mut packet(0.1, 0.1, 0), &view(0));
            for (at, expected) in [(100, 0.1), (200, rtt)] {
                r.control(Time::millis(at), |load| C - load, 1.0);
                assert!((r.avg_rtt - expected).abs() < 1e-8, "{idle_rtt:?}, {at} ms: {}", r.avg_rtt);
            }
            assert_eq!(r.control_at.since(Time::millis(200)).to_millis().round(), 1e3 * rtt);
        }
    }

    /// Target 10 kB, weight 0.1. Samples of 20 kB: the mean is 2 kB, then 3.8 kB, 5.42 kB. With y = C and an RTT of 0.1 s,
    /// F = -0.226 (Qm - 10 kB) / 0.1 s: positive while the mean is below the target.
    #[test]
    fn a_target_queue_is_approached_by_the_mean() {
        let mut r = router_with(Params { target_queue: 1e4, queue_weight: 0.1, ..Params::DEFAULT });
        r.min_queue = 20_000;
        for (sample, mean) in [2000.0, 3800.0, 5420.0].into_iter().enumerate() {
            r.sample_queue(Time::ZERO, &view(20_000));
            assert!((r.mean_queue - mean).abs() < 1e-9, "sample {sample}: {}", r.mean_queue);
        }
        let half = Packet { ip_len: 62_500, ..packet(0.1, 0.1, 0) };
        let other = Packet { congestion: Congestion::new(Format::MINIMAL), ..half };
        r.on_arrival(Time::ZERO, &mut { half }, &view(0));
        r.on_arrival(Time::ZERO, &mut { other }, &view(0));
        r.control(Time::millis(100), |load| C - load, 1.0);
        let f = -0.226 * (5420.0 - 1e4) / 0.1;
        // The shuffle, 0.1 y - F, is in both pools.
        assert!((r.res_pos - r.res_neg - f).abs() < 0.01, "{} {f}", r.res_pos - r.res_neg);
    }
}

//! XCP, the eXplicit Control Protocol: routers tell senders by how much to change their rate.
//!
//! Sources: Katabi, Handley, Rohrs, "Congestion Control for High Bandwidth-Delay Product Networks", SIGCOMM 2002
//! \[XCP02\]; draft-falk-xcp-spec-03 \[D03\], whose rate form is what stands here.
//!
//! The idea: every data packet carries the flow's inter-packet time X and its RTT. A router splits control in two. The
//! *efficiency* controller computes once per mean RTT by how much the aggregate should change (spare bandwidth minus
//! the persistent queue). The *fairness* controller spreads that change over packets: increases equally over flows,
//! decreases in proportion to their rates, and shuffles a tenth of the traffic all the time so that shares converge.
//! The receiver returns what is left of the sender's request; the sender adds it to its window.
//!
//! | symbol | field | unit | value | source |
//! | --- | --- | --- | --- | --- |
//! | alpha, beta | `alpha`, `beta` | 1 | 0.4, 0.226 | XCP02 section 3.5, theorem 1 |
//! | gamma | `gamma` | 1 | 0.1 | XCP02 section 3.5.2 |
//! | F (phi / d) | `f` | bytes/s | | D03 section 3.4; XCP02 equation 1 |
//! | h / d | `shuffle` | bytes/s | | XCP02 equation 4 |
//! | Cp = xi_p / ... | `cp` | bytes/s per s of X | | D03 section 3.4 |
//! | Cn | `cn` | bytes/s per byte | | D03 section 3.4 |
//! | residue_pos/neg | `res_pos`, `res_neg` | bytes/s | | D03 section 3.4 |
//! | d, Te | `avg_rtt`, `control_at` | s | mean RTT of flows | D03 section 3.4 |
//! | Tq | `queue_at` | s | | D03 section 3.4 |
//! | X | `x` | 2^-28 s | rtt / cwnd | D03 section 4.1 |
//!
//! Deviations:
//! 1. Timers start at 50 ms, +-20 % from the port's own stream (D03 leaves it open), so routers do not march in step.
//! 2. Feedback is rounded to the nearest byte/s, not cut, so the aggregate has no bias.
//! 3. On a loss the sender halves its window (`on_loss`), then follows feedback again; D03 section 3.2 leaves the return open.

use alloc::boxed::Box;

use crate::params::{Param, Unit};
use crate::protocol::{
    Ack, Allowance, Loss, LossKind, PortView, Probe, Protocol, Receiver, Router, RouterInit, Sender, SenderInit, Sent,
};
use crate::units::Time;
use crate::wire::{Packet, UNITS_PER_SEC, seconds_to_units};

/// XCP.
pub struct Xcp;

const SENDER: &[Param] = &[
    Param::new(
        "desired_rate",
        Unit::BitsPerSecond,
        f64::NAN,
        "D03 3.1",
        "The most that the sender asks for; auto: its interface's rate.",
    ),
    Param::new(
        "on_loss",
        Unit::Choice(&["halve", "keep", "reset"]),
        0.0,
        "D03 3.2; paper 003 section 4.1",
        "What the window does on a fast retransmit: half, nothing, or back to one packet. A timeout always resets it.",
    ),
    Param::new("aging", Unit::Fraction, 0.5, "D03 3.1.1", "Share of an unused allowance given up per RTT, p.")
        .within(0.0, 1.0),
];

const ROUTER: &[Param] = &[
    Param::new("alpha", Unit::Number, 0.4, "XCP02 3.5", "Share of the spare bandwidth handed out per interval."),
    Param::new("beta", Unit::Number, 0.226, "XCP02 3.5", "Share of the persistent queue drained per interval."),
    Param::new("gamma", Unit::Fraction, 0.1, "XCP02 3.5.2", "Share of the traffic that is shuffled per interval.")
        .within(0.0, 1.0),
    Param::new(
        "min_interval",
        Unit::Seconds,
        0.005,
        "D03 3.4",
        "Least control interval; at least the link's delay is D03's advice.",
    )
    .within(1e-4, 10.0),
    Param::new("max_interval", Unit::Seconds, 1.0, "D03 3.4", "An RTT counts at most this much.").within(1e-3, 100.0),
    Param::new("allowed_queue", Unit::Seconds, 0.002, "D03 3.4", "Least period of the queue estimate.")
        .within(1e-5, 1.0),
    Param::new(
        "initial_interval",
        Unit::Seconds,
        0.05,
        "ns-2.35, xcpq",
        "Control and queue interval before the first RTT is known.",
    )
    .within(1e-3, 10.0),
];

impl Protocol for Xcp {
    fn name(&self) -> &'static str {
        "xcp"
    }
    fn summary(&self) -> &'static str {
        "XCP: routers write the change of rate into every packet"
    }
    fn source(&self) -> &'static str {
        "Katabi, Handley, Rohrs, SIGCOMM 2002; draft-falk-xcp-spec-03"
    }
    fn params(&self) -> &'static [Param] {
        SENDER
    }
    fn router_params(&self) -> &'static [Param] {
        ROUTER
    }
    fn explicit(&self) -> bool {
        true
    }
    fn sender(&self, init: &SenderInit<'_>) -> Box<dyn Sender> {
        let asked = init.values.get(SENDER, "desired_rate");
        let mut sender = XcpSender {
            cwnd: init.initial_window,
            packet: init.packet,
            desired: if asked.is_nan() { init.interface.bytes_per_sec() } else { asked / 8.0 },
            on_loss: [OnLoss::Halve, OnLoss::Keep, OnLoss::Reset][init.values.get(SENDER, "on_loss") as usize],
            aging: init.values.get(SENDER, "aging"),
            srtt: 0.0,
            x: 0,
            rtt: 0,
            delta: 0,
            aged_at: Time::ZERO,
            most_in_flight: 0,
            was_limited: false,
            feedback: 0,
        };
        sender.restate();
        Box::new(sender)
    }
    fn receiver(&self) -> Box<dyn Receiver> {
        Box::new(XcpReceiver { sum: 0 })
    }
    fn router(&self, init: &RouterInit<'_>) -> Option<Box<dyn Router>> {
        Some(Box::new(XcpRouter::new(init)))
    }
}

// ------------------------------------------------------------------------------------- end systems, D03 section 3.1-3.3

#[derive(Clone, Copy, PartialEq)]
enum OnLoss {
    Halve,
    Keep,
    Reset,
}

struct XcpSender {
    /// Allowed window, segments.
    cwnd: f64,
    /// Length of a full packet, bytes.
    packet: f64,
    /// Desired throughput, bytes/s.
    desired: f64,
    on_loss: OnLoss,
    aging: f64,
    /// Seconds; zero while unknown.
    srtt: f64,
    /// What the next packets carry: X and RTT in header units, Delta_Throughput in bytes/s.
    x: u32,
    rtt: u32,
    delta: i32,
    aged_at: Time,
    most_in_flight: u32,
    was_limited: bool,
    /// The last feedback, for the probe, bytes/s.
    feedback: i32,
}

impl XcpSender {
    /// Computes what packets carry from window and RTT: X = rtt / window, and the request spread over a window.
    fn restate(&mut self) {
        if self.srtt == 0.0 {
            (self.x, self.rtt, self.delta) = (0, 0, 0);
            return;
        }
        // One division serves both quotients.
        let inverse = 1.0 / (self.cwnd * self.srtt);
        let per_window = self.srtt * inverse;
        self.x = seconds_to_units(self.srtt * per_window);
        self.rtt = seconds_to_units(self.srtt);
        // want / (throughput * RTT / MSS), with throughput * RTT / MSS = cwnd.
        self.delta = round(self.desired * per_window - self.packet * (self.cwnd * inverse));
    }
    /// D03 section 3.1.1: an allowance that was not used for an RTT decays towards what was used.
    fn age(&mut self, ack: &Ack<'_>) {
        self.was_limited |= !ack.app_limited;
        self.most_in_flight = self.most_in_flight.max(ack.in_flight + ack.newly_acked);
        if ack.now.since(self.aged_at) < ack.srtt {
            return;
        }
        let used = self.most_in_flight as f64;
        if !self.was_limited && used < self.cwnd {
            self.cwnd = ((1.0 - self.aging) * self.cwnd + self.aging * used).max(1.0);
        }
        self.aged_at = ack.now;
        self.most_in_flight = 0;
        self.was_limited = false;
    }
}

impl Sender for XcpSender {
    fn allowance(&self) -> Allowance {
        Allowance { cwnd: self.cwnd, pacing: None }
    }

    fn on_start(&mut self, now: Time, rtt: Time) {
        self.srtt = rtt.as_secs_f64();
        self.aged_at = now;
        self.restate();
    }

    fn on_send(&mut self, packet: &mut Packet, sent: &Sent) {
        let header = &mut packet.congestion;
        header.set_x(self.x);
        header.set_rtt(self.rtt);
        header.set_delta_throughput(if sent.backlogged || self.delta < 0 { self.delta } else { 0 });
    }

    fn on_ack(&mut self, ack: &Ack<'_>) {
        self.srtt = ack.srtt.0 as i64 as f64 * 1e-9; // a signed conversion is one instruction
        self.feedback = ack.header.reverse_feedback();
        // D03 section 3.3: window = max(window + feedback * srtt, MSS), here in segments. Duplicates count too.
        self.cwnd = (self.cwnd + self.feedback as f64 * self.srtt / self.packet).max(1.0);
        self.age(ack);
        self.restate();
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.cwnd = match (loss.kind, self.on_loss) {
            (LossKind::Timeout, _) | (_, OnLoss::Reset) => 1.0,
            (_, OnLoss::Keep) => self.cwnd,
            (_, OnLoss::Halve) => (self.cwnd / 2.0).max(1.0),
        };
        self.restate();
    }

    fn probe(&self, put: Probe<'_>) {
        put("cwnd", self.cwnd);
        put("feedback_bytes_per_s", self.feedback as f64);
        put("x_s", self.x as f64 / UNITS_PER_SEC);
    }
}

/// Rounds to the nearest integer, half away from zero; saturates.
fn round(value: f64) -> i32 {
    (value + 0.5f64.copysign(value)) as i32
}

struct XcpReceiver {
    /// Feedback received since the last acknowledgement, bytes/s.
    sum: i64,
}

impl Receiver for XcpReceiver {
    fn on_data(&mut self, _now: Time, packet: &Packet) {
        if packet.congestion.is_standard() {
            self.sum += packet.congestion.delta_throughput() as i64;
        }
    }
    fn on_ack(&mut self, _now: Time, ack: &mut Packet) {
        let carried = self.sum.clamp(i32::MIN as i64, i32::MAX as i64);
        ack.congestion.set_reverse_feedback(carried as i32);
        self.sum -= carried;
    }
}

// -------------------------------------------------------------------------------------------- router, D03 section 3.4

struct Gains {
    alpha: f64,
    beta: f64,
    gamma: f64,
    min_interval: f64,
    max_interval_units: u32,
    allowed_queue: f64,
}

struct XcpRouter {
    gains: Gains,
    // Sums over the present interval.
    input_bytes: f64,
    /// Sum of X, seconds.
    sum_x: f64,
    /// Sum of X * RTT, seconds squared.
    sum_xrtt: f64,
    // What the present interval hands out.
    cp: f64,
    cn: f64,
    res_pos: f64,
    res_neg: f64,
    // The persistent queue, bytes.
    queue: u64,
    min_queue: u64,
    /// Mean RTT of the flows, seconds.
    avg_rtt: f64,
    interval_began: Time,
    control_at: Time,
    queue_at: Time,
}

const SECONDS: f64 = 1.0 / UNITS_PER_SEC;

impl XcpRouter {
    fn new(init: &RouterInit<'_>) -> XcpRouter {
        let get = |name| init.values.get(ROUTER, name);
        let mut rng = init.rng.clone();
        let first = get("initial_interval");
        let mut jittered = || Time::from_secs_f64(first * (0.8 + 0.4 * rng.uniform()));
        XcpRouter {
            gains: Gains {
                alpha: get("alpha"),
                beta: get("beta"),
                gamma: get("gamma"),
                min_interval: get("min_interval"),
                max_interval_units: seconds_to_units(get("max_interval")),
                allowed_queue: get("allowed_queue"),
            },
            input_bytes: 0.0,
            sum_x: 0.0,
            sum_xrtt: 0.0,
            cp: 0.0,
            cn: 0.0,
            res_pos: 0.0,
            res_neg: 0.0,
            queue: 0,
            min_queue: 0,
            avg_rtt: first,
            interval_began: Time::ZERO,
            control_at: jittered(),
            queue_at: jittered(),
        }
    }

    /// The estimation-control timer: efficiency controller, then the scale factors of the fairness controller.
    fn control(&mut self, now: Time, capacity: f64) {
        let g = &self.gains;
        if self.sum_x > 0.0 {
            self.avg_rtt = self.sum_xrtt / self.sum_x; // mean over flows: X weights a flow's packets to one flow
        }
        let elapsed = now.since(self.interval_began).as_secs_f64();
        let y = if elapsed > 0.0 { self.input_bytes / elapsed } else { 0.0 };
        let f = g.alpha * (capacity - y) - g.beta * self.queue as f64 / self.avg_rtt.max(1e-6);
        let shuffle = (g.gamma * y - f.abs()).max(0.0);
        self.res_pos = shuffle + f.max(0.0);
        self.res_neg = shuffle + (-f).max(0.0);
        self.cp = if self.sum_x > 0.0 { self.res_pos / self.sum_x } else { 0.0 };
        self.cn = if self.input_bytes > 0.0 { self.res_neg / self.input_bytes } else { 0.0 };
        (self.input_bytes, self.sum_x, self.sum_xrtt) = (0.0, 0.0, 0.0);
        self.interval_began = now;
        self.control_at = now + Time::from_secs_f64(self.avg_rtt.max(g.min_interval));
    }

    /// The queue timer: what never left the queue since the last one is persistent. Its period is not the control
    /// interval, which a queue would lengthen.
    fn sample_queue(&mut self, now: Time, port: &PortView) {
        self.queue = self.min_queue.min(port.backlog_bytes);
        self.min_queue = port.backlog_bytes;
        let period = (self.avg_rtt - port.backlog_bytes as f64 / port.capacity) / 2.0;
        self.queue_at = now + Time::from_secs_f64(period.max(self.gains.allowed_queue));
    }

    /// Feedback for a departing packet that carries inter-packet time `x` (s), length (bytes) and request (bytes/s).
    /// Returns whether that is less than it asks for, and what.
    fn feedback(&mut self, x: f64, bytes: f64, delta: f64) -> (bool, f64) {
        let mut pos = self.cp * x;
        let mut neg = self.cn * bytes;
        let fb = pos - neg;
        let tighter = delta > fb;
        if !tighter {
            // Limited elsewhere: what the packet cannot use is first taken from the negative pool, so that others are
            // squeezed less. The order matters: `pos` follows from the new `neg`.
            let reclaimed = neg + (fb - delta);
            neg = if reclaimed < self.res_neg { reclaimed } else { self.res_neg };
            pos = delta + neg;
        }
        self.res_pos -= pos;
        self.res_neg -= neg;
        if self.res_pos <= 0.0 {
            (self.res_pos, self.cp) = (0.0, 0.0);
        }
        if self.res_neg <= 0.0 {
            (self.res_neg, self.cn) = (0.0, 0.0);
        }
        (tighter, fb)
    }
}

impl Router for XcpRouter {
    fn on_arrival(&mut self, _now: Time, packet: &mut Packet, _port: &PortView) {
        self.input_bytes += packet.ip_len as f64;
        let header = &packet.congestion;
        if !header.is_standard() {
            return;
        }
        let (x, rtt) = (header.x(), header.rtt());
        if x != 0 && rtt != 0 {
            let x = x as f64 * SECONDS;
            self.sum_x += x;
            self.sum_xrtt += x * (rtt.min(self.gains.max_interval_units) as f64 * SECONDS);
        }
    }

    fn on_departure(&mut self, _now: Time, packet: &mut Packet, port: &PortView) {
        self.min_queue = self.min_queue.min(port.backlog_bytes);
        if !packet.congestion.is_standard() {
            return;
        }
        let x = packet.congestion.x() as f64 * SECONDS;
        let delta = packet.congestion.delta_throughput();
        // What is limited elsewhere stays as it came.
        if let (true, granted) = self.feedback(x, packet.ip_len as f64, delta as f64) {
            packet.congestion.set_delta_throughput(round(granted));
        }
    }

    fn on_timer(&mut self, now: Time, port: &PortView) {
        if self.queue_at <= now {
            self.sample_queue(now, port);
        }
        if self.control_at <= now {
            self.control(now, port.capacity);
        }
    }

    fn next_timer(&self) -> Time {
        self.control_at.min(self.queue_at)
    }

    fn probe(&self, put: Probe<'_>) {
        put("avg_rtt_s", self.avg_rtt);
        put("persistent_queue_bytes", self.queue as f64);
        put("res_pos_bytes_per_s", self.res_pos);
        put("res_neg_bytes_per_s", self.res_neg);
        put("cp", self.cp);
        put("cn", self.cn);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::Values;
    use crate::rng::Rng;
    use crate::wire::{Congestion, Format};

    const C: f64 = 1.25e6;

    fn view() -> PortView {
        PortView { capacity: C, backlog_bytes: 0, backlog_packets: 0, busy: true }
    }
    fn router() -> XcpRouter {
        let values = Values::default();
        XcpRouter::new(&RouterInit { values: &values, capacity: C, delay: Time::ZERO, rng: Rng::stream(1, "test") })
    }
    fn packet(x: f64, rtt: f64, delta: i32) -> Packet {
        let mut p = Packet { ip_len: 1000, congestion: Congestion::new(Format::Standard), ..Packet::EMPTY };
        p.congestion.set_x(seconds_to_units(x));
        p.congestion.set_rtt(seconds_to_units(rtt));
        p.congestion.set_delta_throughput(delta);
        p
    }
    /// An interval of 0.1 s with `a` packets of flow a (X = 2 ms) and `b` of flow b (X = 10 ms), then its control timer.
    fn after_interval(a: u32, xa: f64, b: u32, xb: f64) -> XcpRouter {
        let mut r = router();
        for _ in 0..a {
            r.on_arrival(Time::ZERO, &mut packet(xa, 0.1, 0), &view());
        }
        for _ in 0..b {
            r.on_arrival(Time::ZERO, &mut packet(xb, 0.1, 0), &view());
        }
        r.control(Time::millis(100), C);
        r
    }
    fn departs(r: &mut XcpRouter, x: f64) -> i32 {
        let mut p = packet(x, 0.1, i32::MAX);
        r.on_departure(Time::millis(100), &mut p, &view());
        p.congestion.delta_throughput()
    }

    /// Worked out by hand: y = 6e5, sum of X = 0.2 s, F = 2.6e5, so each flow gets +130000 B/s.
    #[test]
    fn increases_are_equal_per_flow() {
        let mut r = after_interval(50, 0.002, 10, 0.01);
        // X and RTT carry a rounding of 2^-29 s each.
        assert!((r.cp - 1.3e6).abs() < 5.0, "{}", r.cp);
        assert_eq!(r.cn, 0.0);
        assert!((r.avg_rtt - 0.1).abs() < 1e-8);
        assert_eq!(departs(&mut r, 0.002), 2600);
        assert_eq!(departs(&mut r, 0.01), 13000);
    }

    /// Worked out by hand: y = C, both pools 125000.
    #[test]
    fn shuffling_moves_rate_from_the_fast_to_the_slow() {
        let mut r = after_interval(100, 0.001, 25, 0.004);
        assert!((r.res_pos - 125_000.0).abs() < 1e-6 && (r.res_neg - 125_000.0).abs() < 1e-6);
        let a: i32 = (0..100).map(|_| departs(&mut r, 0.001)).sum();
        let b: i32 = (0..25).map(|_| departs(&mut r, 0.004)).sum();
        assert!((a + 37_500).abs() <= 50 && (b - 37_500).abs() <= 50, "{a} {b}");
    }

    /// Worked out by hand: pos 10, neg 4.
    #[test]
    fn reclaim_takes_the_negative_pool_first() {
        let case = |res_neg: f64, delta: f64| {
            let mut r = router();
            (r.cp, r.cn, r.res_pos, r.res_neg) = (10.0, 4.0, 1000.0, res_neg);
            let (tighter, granted) = r.feedback(1.0, 1.0, delta);
            (if tighter { granted } else { delta }, 1000.0 - r.res_pos, res_neg - r.res_neg)
        };
        assert_eq!(case(100.0, 2.0), (2.0, 10.0, 8.0));
        assert_eq!(case(5.0, 2.0), (2.0, 7.0, 5.0));
        assert_eq!(case(100.0, 6.0), (6.0, 10.0, 4.0));
    }

    #[test]
    fn unknown_x_gets_nothing_positive_and_acknowledgements_are_left_alone() {
        let mut r = after_interval(50, 0.002, 10, 0.01);
        assert_eq!(departs(&mut r, 0.0), 0);
        let mut ack = Packet { ip_len: 72, congestion: Congestion::new(Format::Minimal), ..Packet::EMPTY };
        ack.congestion.set_reverse_feedback(77);
        let before = ack.congestion;
        let pools = (r.res_pos, r.res_neg);
        r.on_departure(Time::ZERO, &mut ack, &view());
        assert_eq!((ack.congestion, (r.res_pos, r.res_neg)), (before, pools));
    }

    #[test]
    fn an_idle_interval_empties_the_pools() {
        let mut r = after_interval(50, 0.002, 10, 0.01);
        r.control(Time::millis(200), C);
        assert_eq!((r.cp, r.cn), (0.0, 0.0));
    }

    #[test]
    fn the_sender_spreads_its_request_over_a_window() {
        let values = Values::default();
        let init = SenderInit {
            values: &values,
            packet: 1000.0,
            initial_window: 10.0,
            interface: crate::units::Rate::mbps(8),
        };
        let mut sender = Xcp.sender(&init);
        sender.on_start(Time::ZERO, Time::millis(100));
        let mut p = packet(0.0, 0.0, 0);
        sender.on_send(&mut p, &Sent { now: Time::ZERO, srtt: Time::millis(100), in_flight: 0, backlogged: true });
        assert_eq!(p.congestion.x(), seconds_to_units(0.01));
        assert_eq!(p.congestion.rtt(), seconds_to_units(0.1));
        // It goes at 10 packets of 1000 B in 0.1 s, wants ten times that: 900 kB/s over 10 packets.
        assert_eq!(p.congestion.delta_throughput(), 90_000);
    }
}

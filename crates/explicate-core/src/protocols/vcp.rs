//! VCP, the variable-structure congestion control protocol: two bits report the load of the most loaded router.
//!
//! Sources: Xia, Subramanian, Stoica, Kalyanaraman, "One More Bit Is Enough", SIGCOMM 2005, as restated by paper K
//! (Ikeda et al.) in section III, whose equations are cited; where paper K is silent, the ns-2 code of VCP's author
//! \[ns\]. The option `on_loss = "keep"` is WLTE of paper K section IV-B.
//!
//! The idea: every `t_rho` a router divides the bytes that arrived, and a part of its queue, by the bytes that it
//! could have sent. This *load factor* falls into one of three regions, and the router writes the region into the ECN
//! bits of data packets that carry a lower one. The receiver echoes the bits. Below 80 % the sender multiplies its
//! window, up to 100 % it adds to it; above, it reduces the window by an eighth, once, and then waits until the
//! router can have measured the effect. Increases are scaled so that all flows grow alike, whatever their round-trip
//! times.
//!
//! | symbol | field | unit | value | source |
//! | --- | --- | --- | --- | --- |
//! | rho | `rho` | 1 | | 004 equation 1 |
//! | lambda | `bytes` | bytes in `t_rho` | | equation 1 |
//! | q | `queue` | bytes | | equation 1; \[ns\] mean of samples, then a moving average |
//! | t_rho | `t_rho` | s | 0.2 | section III; \[ns\] |
//! | t_q | `t_q` | s | 0.01 | \[ns\] |
//! | kappa, gamma | `kappa_q`, `gamma_l` | 1 | 0.5, 0.98 | section III |
//! | 01, 10, 11 | [`LOW`], [`HIGH`], [`OVERLOAD`] | | below 0.8, below 1, from 1 | table I |
//! | epsilon, alpha, beta | `xi`, `alpha`, `beta` | 1, segments, 1 | 0.0625, 1, 0.875 | section III |
//! | epsilon_s | `xi_s` | an acknowledgement | (1 + xi)^(rtt/t_rho) - 1 | equation 6 |
//! | alpha_s | `alpha_s` | segments an RTT | w alpha (rtt/t_rho)^2 | equation 5 |
//! | w | `weight` | 1 | 1 | \[ns\] |
//! | t_d | [`T_D`] | s | 0.1 | \[ns\] |
//!
//! The code is in the field that the sources use: the IP header's ECN field, so packets have no congestion header.
//! The echo has two bits of the transport header. A router cannot distinguish VCP from ECN-capable TCP, nor can a RED
//! queue: a mark of either counts for the other (RFC 3168's CE is 11, overload). Today 01 belongs to L4S (RFC 9331),
//! so on a shared network VCP needs a domain of its own. The load factor is measured in
//! [`super::common::load_factor`].
//!
//! Deviations:
//! 1. `ai_scale` chooses between equation 5 and the author's code, which scales by t_d instead: 4 times as much at the usual
//!    t_rho, 156 times at paper K's. Beyond 20..500 ms that code goes on linearly, as here.
//! 2. The author's senders ignore the codes of duplicate acknowledgements. Here they count, since each reports the
//!    present load; `follow_duplicates = false` is the author's variant, as for XCP's senders.
//! 3. `max_rtt_ratio` bounds rtt/t_rho in equation 6, as the author's code does, because a router cannot stop in time
//!    a window that grows for many intervals in one round trip. Equation 6 has no bound.
//! 4. Times are not rounded to ticks of 10 ms, and the scales follow the smoothed RTT once a round trip.
//! 5. Small windows are paced at rtt/cwnd where that is more than half of t_rho. The author's code counts whole packets, and
//!    rounds their number up to a power of two: `pace_parts = "power_of_two"`. Where a window has room, that code sends a
//!    packet with each acknowledgement and one more by a timer, which it does not restart. Here pacing goes on.
//! 6. An acknowledgement counts as one packet however many it covers: receivers acknowledge every packet, as in the
//!    sources. Delayed acknowledgements (`ack_every`) slow growth down.
//! 7. The first interval of a router lasts 0.5..1.5 t_rho, drawn from the port's stream, so that routers are not
//!    synchronised; with `in_step = true` it lasts t_rho, as in the author's code, where all intervals begin with the
//!    simulation.
//!
//! Not implemented: EVCP and VCP-FC, which paper K mentions for faster convergence to equal shares.

use alloc::boxed::Box;
use core::fmt;

use crate::api::{
    Ack, Allowance, AnyReceiver, AnyRouter, AnySender, Loss, LossKind, PortView, Probe, Protocol, Receiver, Router,
    RouterInit, Sender, SenderInit, Sent,
};
use crate::params::{Fraction, Info, Number, Packets, Param, Seconds, choices, parameters};
use crate::protocols::common::feedback;
use crate::protocols::common::load_factor::{self, HIGH, LOW, LoadFactor, OVERLOAD, bears_code, raise};
use crate::units::{Rate, Time};
use crate::wire::{Describe, Ecn, Packet, flag};

/// VCP.
pub struct Vcp;

/// The round-trip time by which the author's code scales the additive increase, s.
pub const T_D: f64 = 0.1;

choices! {
    /// The time to which round-trip times are compared when alpha is scaled.
    pub enum AiScale { TRho = "t_rho", TD = "t_d" }
}

choices! {
    /// Number of parts into which pacing divides a round trip.
    pub enum PaceParts { Window = "window", PowerOfTwo = "power_of_two" }
}

choices! {
    /// Effect of a fast retransmit on the window.
    pub enum OnLoss { Halve = "halve", Keep = "keep" }
}

parameters! {
    /// Sender parameters.
    pub struct Params {
        /// Share of the window added per t_rho at low load.
        xi: Number = 0.0625, in 1e-6..=999.0, "paper K equation 6";
        /// Segments added per t_rho at high load.
        alpha: Packets = 1.0, in 1e-6..=1e4, "paper K equation 5";
        /// Factor by which overload multiplies the window.
        beta: Fraction = 0.875, in 0.01..=1.0, "paper K equation 2";
        /// Weight of the flow: scales alpha.
        weight: Number = 1.0, in 1e-3..=1e3, "VCP's ns-2 code";
        /// Control interval of the routers, the same on the whole path; longer than most round-trip times.
        t_rho: Seconds = 0.2, in 1e-3..=100.0, "paper K section III";
        /// The time to which round-trip times are compared when alpha is scaled: the control interval, or 100 ms.
        ai_scale: AiScale = AiScale::TRho, "paper K equation 5; VCP's ns-2 code";
        /// Maximum of rtt/t_rho in the scaling of xi.
        max_rtt_ratio: Number = 2.5, in 1e-2..=100.0, "VCP's ns-2 code";
        /// Effect of a fast retransmit on the window: half, or none (WLTE). A timeout always resets the window.
        on_loss: OnLoss = OnLoss::Halve, "paper K section IV-B";
        /// Acknowledgements whose codes count.
        feedback: feedback::Params = feedback::Params::DEFAULT;
        /// Maximum window that may be paced.
        pace_below: Packets = 64.0, in 0.0..=1e9, "VCP's ns-2 code";
        /// Parts into which pacing divides a round trip if a part exceeds half of t_rho: the window, or its whole packets
        /// rounded up to a power of two.
        pace_parts: PaceParts = PaceParts::Window, "VCP's ns-2 code";
    }
}

impl Params {
    /// The parts into which pacing divides a round trip of `rtt` s at this window, segments; `None` without pacing.
    pub fn paced_in(&self, cwnd: f64, rtt: f64) -> Option<f64> {
        let by_powers = self.pace_parts == PaceParts::PowerOfTwo;
        let window = if by_powers { libm::floor(cwnd) } else { cwnd };
        if window <= 1.0 || window > self.pace_below {
            return None;
        }
        let parts = if by_powers { (window as u32).next_power_of_two() as f64 } else { window };
        // With long round trips, a window of few packets would reach the router as one burst in several intervals.
        (2.0 * rtt > self.t_rho * parts).then_some(parts)
    }
}

impl Protocol for Vcp {
    const INFO: Info = Info {
        name: "vcp",
        summary: "VCP: routers send two bits of load; senders increase multiplicatively, increase additively, or decrease",
        source: "Xia, Subramanian, Stoica, Kalyanaraman, SIGCOMM 2005; paper K",
        params: Params::PARAMS,
    };
    const ROUTER_PARAMS: &'static [Param] = load_factor::Params::PARAMS;
    const EXPLICIT: bool = true;
    const DESCRIBE: Describe = describe;
    const OWN_ECN: bool = true;
    const HEADER_LEN: u16 = 0;

    fn matches(&self, packet: &Packet) -> bool {
        bears_code(packet)
    }
    fn sender(&self, init: &SenderInit<'_>) -> Box<AnySender> {
        Box::new(VcpSender::new(init, Params::of(init.values)))
    }
    fn receiver(&self) -> Option<Box<AnyReceiver>> {
        Some(Box::new(VcpReceiver { code: 0 }))
    }
    fn router(&self, init: &RouterInit<'_>) -> Option<Box<AnyRouter>> {
        let load = LoadFactor::new(load_factor::Params::of(init.values), &mut init.rng.clone());
        Some(Box::new(VcpRouter { load, code: LOW }))
    }
}

/// Text for packet logs.
fn describe(packet: &Packet, out: &mut dyn fmt::Write) -> fmt::Result {
    // The same bits of a SYN are options.
    let code = if packet.transport.has(flag::SYN) { 0 } else { packet.transport.code() };
    if code == 0 { Ok(()) } else { write!(out, " code {code:02b}") }
}

// ------------------------------------------------------------------------------------------ end systems, 004 section III

/// State of the sender after a reduction.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Mode {
    /// Overload causes a reduction.
    None,
    /// One t_rho after a reduction: overload is ignored, because the router cannot have measured the effect.
    Freeze,
    /// One round trip after that: overload causes an additive increase, because it may have been measured before.
    Probe,
}

pub(super) struct VcpSender {
    cwnd: f64,
    /// Length of a full packet, bytes.
    packet: f64,
    params: Params,
    /// Increase per acknowledgement at low load, and per window of them at high load; the scales are updated at
    /// `scale_at`.
    xi_s: f64,
    alpha_s: f64,
    scale_at: Time,
    mode: Mode,
    /// When the mode ends.
    until: Time,
    pacing: Option<Rate>,
    /// The last code, for the probe.
    code: u8,
}

impl VcpSender {
    pub(super) fn new(init: &SenderInit<'_>, params: Params) -> VcpSender {
        VcpSender {
            cwnd: init.initial_window,
            packet: init.packet,
            params,
            xi_s: 0.0,
            alpha_s: 0.0,
            scale_at: Time::ZERO,
            mode: Mode::None,
            until: Time::ZERO,
            pacing: None,
            code: 0,
        }
    }

    /// Equations 5 and 6 for this round trip.
    fn scale(&mut self, now: Time, rtt: Time) {
        let (s, p) = (rtt.as_secs_f64(), &self.params);
        let intervals = s / p.t_rho;
        self.xi_s = libm::pow(1.0 + p.xi, intervals.min(p.max_rtt_ratio)) - 1.0;
        let by_t_d = p.ai_scale == AiScale::TD;
        self.alpha_s = p.alpha * p.weight * if by_t_d { scaled_by_t_d(s) } else { intervals * intervals };
        self.scale_at = now + rtt;
    }

    /// Freezing and probing end after a time.
    fn pass(&mut self, now: Time, rtt: Time) {
        if self.mode == Mode::Freeze && self.until <= now {
            (self.mode, self.until) = (Mode::Probe, self.until + rtt);
        }
        if self.mode == Mode::Probe && self.until <= now {
            self.mode = Mode::None;
        }
    }

    fn follow_code(&mut self, code: u8, ack: &Ack<'_>) {
        match (code, self.mode) {
            (OVERLOAD, Mode::None) => {
                self.cwnd = (self.params.beta * self.cwnd).max(1.0);
                (self.mode, self.until) = (Mode::Freeze, ack.now + Time::from_secs_f64(self.params.t_rho));
            }
            (OVERLOAD, Mode::Freeze) => {}
            _ if ack.app_limited => {}
            (LOW, _) => self.cwnd += self.xi_s,
            (HIGH | OVERLOAD, _) => self.cwnd += self.alpha_s / self.cwnd,
            _ => {} // no router answered
        }
    }

    fn pace(&mut self, rtt: Time) {
        let s = rtt.as_secs_f64();
        let parts = self.params.paced_in(self.cwnd, s);
        self.pacing = parts.map(|parts| Rate::from_bytes_per_sec(self.packet * parts / s));
    }
}

/// The author's scaling of the additive increase: (rtt/t_d)^2, linear below 20 and above 500 ms.
fn scaled_by_t_d(rtt: f64) -> f64 {
    let x = rtt / T_D;
    if x <= 0.2 {
        0.2 * x
    } else if x <= 5.0 {
        x * x
    } else {
        25.0 + (x - 5.0)
    }
}

impl Sender for VcpSender {
    const HAS_TIMER: bool = false;

    fn allowance(&self) -> Allowance {
        Allowance { cwnd: self.cwnd, pacing: self.pacing }
    }

    fn on_start(&mut self, now: Time, rtt: Time) {
        self.scale(now, rtt);
        self.pace(rtt);
    }

    fn on_send(&mut self, packet: &mut Packet, _sent: &Sent) {
        packet.set_ecn(Ecn::Capable1);
    }

    fn on_ack(&mut self, ack: &Ack<'_>) {
        if self.scale_at <= ack.now {
            self.scale(ack.now, ack.srtt);
        }
        self.pass(ack.now, ack.srtt);
        if self.params.feedback.counts(ack) {
            self.code = ack.transport.code();
            self.follow_code(self.code, ack);
        }
        self.pace(ack.srtt);
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.cwnd = match loss.kind {
            LossKind::Timeout => 1.0,
            LossKind::Duplicates if self.params.on_loss == OnLoss::Halve => (self.cwnd / 2.0).max(1.0),
            // A mark also arrives as a code.
            LossKind::Duplicates | LossKind::Mark => self.cwnd,
        };
        self.pace(loss.srtt);
    }

    fn resume(&mut self, now: Time, window: f64, srtt: Time) {
        self.cwnd = window.max(1.0);
        if self.scale_at <= now {
            self.scale(now, srtt);
        }
        self.pace(srtt);
    }

    fn probe(&self, put: Probe<'_>) {
        put("cwnd", self.cwnd);
        put("code", self.code as f64);
        put("frozen", (self.mode == Mode::Freeze) as u8 as f64);
    }
}

/// Echoes the highest code since the last acknowledgement.
pub(super) struct VcpReceiver {
    pub(super) code: u8,
}

impl Receiver for VcpReceiver {
    const HIGHEST_COUNTS: bool = true;

    fn on_data(&mut self, _now: Time, packet: &Packet) {
        self.code = self.code.max(packet.ecn() as u8);
    }
    fn on_ack(&mut self, _now: Time, ack: &mut Packet) {
        let header = &mut ack.transport;
        header.set_code(self.code);
        // The code is sufficient; RFC 3168's echo would report overload until a window was halved.
        header.set_flags(header.flags() & !flag::ECE);
        self.code = 0;
    }
}

// ----------------------------------------------------------------------------------------------- router, 004 equation 1

struct VcpRouter {
    load: LoadFactor,
    code: u8,
}

impl Router for VcpRouter {
    fn on_arrival(&mut self, now: Time, packet: &mut Packet, port: &PortView) {
        self.load.on_arrival(now, packet, port);
    }
    fn writes_into(&self, packet: &Packet) -> bool {
        bears_code(packet)
    }
    fn on_departure(&mut self, now: Time, packet: &mut Packet, port: &PortView) {
        self.load.on_departure(now, port);
        raise(packet, self.code);
    }
    fn on_timer(&mut self, now: Time, port: &PortView) {
        self.code = self.load.measure(now, port);
    }
    fn next_timer(&self) -> Time {
        self.load.next_timer()
    }
    fn probe(&self, put: Probe<'_>) {
        self.load.probe(put);
        put("code", self.code as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use crate::wire::{Congestion, Transport};

    /// A sender of 1000-byte packets, started at a round trip of `rtt` s.
    fn sender(window: f64, rtt: f64, given: &[(&str, f64)]) -> VcpSender {
        let values = testing::values(&[Params::PARAMS], given);
        let init = SenderInit { values: &values, packet: 1000.0, initial_window: window, interface: Rate::mbps(100) };
        let mut s = VcpSender::new(&init, Params::of(&values));
        s.on_start(Time::ZERO, Time::from_secs_f64(rtt));
        s
    }
    /// An acknowledgement with a code, at `now` ms.
    fn deliver_ack(s: &mut VcpSender, now: u64, code: u8, duplicate: bool) {
        let mut transport = Transport::EMPTY;
        transport.set_code(code);
        s.on_ack(&Ack { transport: &transport, duplicate, ..testing::ack(Time::millis(now), &Congestion::NONE) });
    }

    /// rtt 0.1 s, t_rho 0.2 s: 1.0625^(1/2) - 1 = 0.030776, (1/2)^2 = 0.25.
    #[test]
    fn scales_by_hand() {
        let s = sender(10.0, 0.1, &[]);
        assert!((s.xi_s - 0.030_776_406).abs() < 1e-9 && s.alpha_s == 0.25, "{} {}", s.xi_s, s.alpha_s);
        // 10^(0.5/1.25) - 1 = 10^0.4 - 1; 0.4^2.
        let s = sender(10.0, 0.5, &[("xi", 9.0), ("t_rho", 1.25)]);
        assert!((s.xi_s - 1.511_886_432).abs() < 1e-9 && (s.alpha_s - 0.16).abs() < 1e-15, "{} {}", s.xi_s, s.alpha_s);
        // A round trip of ten intervals counts as two and a half: 1.0625^2.5 - 1.
        let s = sender(10.0, 2.0, &[("weight", 3.0)]);
        assert!((s.xi_s - 0.163_649_928).abs() < 1e-9 && (s.alpha_s - 300.0).abs() < 1e-9, "{} {}", s.xi_s, s.alpha_s);
    }

    /// 5^2 = 25 at 500 ms; (10/100) * 0.2 at 10 ms; 25 + (20 - 5) at 2 s.
    #[test]
    fn the_other_scale() {
        for (rtt, factor) in [(0.1, 1.0), (0.5, 25.0), (0.08, 0.64), (0.02, 0.04), (0.01, 0.02), (2.0, 40.0)] {
            let s = sender(10.0, rtt, &[("ai_scale", 1.0)]);
            assert!((s.alpha_s - factor).abs() < 1e-12, "{rtt}: {}", s.alpha_s);
        }
    }

    #[test]
    fn multiply_add_cut() {
        let mut s = sender(100.0, 0.1, &[]);
        (0..100).for_each(|_| deliver_ack(&mut s, 1, LOW, false));
        assert!((s.cwnd - 103.077_640_6).abs() < 1e-6, "{}", s.cwnd);
        let mut s = sender(100.0, 0.1, &[]);
        (0..100).for_each(|_| deliver_ack(&mut s, 1, HIGH, false));
        assert!((s.cwnd - 100.25).abs() < 1e-3, "{}", s.cwnd);
        deliver_ack(&mut s, 1, OVERLOAD, false);
        assert!((s.cwnd - 0.875 * 100.25).abs() < 1e-3, "{}", s.cwnd);
        let mut s = sender(1.0, 0.1, &[]);
        deliver_ack(&mut s, 1, OVERLOAD, false);
        assert_eq!(s.cwnd, 1.0);
        deliver_ack(&mut s, 2, 0, false);
        assert_eq!(s.cwnd, 1.0, "no router answered");
    }

    /// Cut at 1000 ms, frozen until 1200 ms, adding until 1300 ms, then cut again.
    #[test]
    fn a_cut_then_a_freeze_then_a_round_trip_of_adding() {
        let mut s = sender(100.0, 0.1, &[]);
        let mut modes = alloc::vec::Vec::new();
        for now in [1000, 1001, 1199, 1200, 1299, 1300] {
            let before = s.cwnd;
            deliver_ack(&mut s, now, OVERLOAD, false);
            modes.push((now, s.mode, s.cwnd - before));
        }
        assert_eq!(modes[0], (1000, Mode::Freeze, -12.5));
        assert_eq!(modes[1..3], [(1001, Mode::Freeze, 0.0), (1199, Mode::Freeze, 0.0)]);
        for (i, now) in [(3, 1200), (4, 1299)] {
            assert_eq!((modes[i].0, modes[i].1), (now, Mode::Probe));
            assert!((modes[i].2 - 0.25 / 87.5).abs() < 1e-5, "adds");
        }
        assert_eq!((modes[5].0, modes[5].1), (1300, Mode::Freeze));
        assert!((modes[5].2 + 87.5 / 8.0).abs() < 1e-2);
        // Codes other than overload take effect, frozen or not.
        let before = s.cwnd;
        deliver_ack(&mut s, 1301, LOW, false);
        assert_eq!(s.cwnd, before + s.xi_s);
        assert_eq!(s.mode, Mode::Freeze);
        // A long idle time ends both.
        deliver_ack(&mut s, 9000, LOW, false);
        assert_eq!(s.mode, Mode::None);
    }

    #[test]
    fn what_duplicates_say_and_what_an_idle_application_says() {
        let mut s = sender(100.0, 0.1, &[]);
        deliver_ack(&mut s, 1, LOW, true);
        assert!(s.cwnd > 100.0);
        let mut s = sender(100.0, 0.1, &[("follow_duplicates", 0.0)]);
        deliver_ack(&mut s, 1, OVERLOAD, true);
        assert_eq!((s.cwnd, s.mode), (100.0, Mode::None));
        let mut transport = Transport::EMPTY;
        transport.set_code(LOW);
        let idle = testing::ack(Time::millis(2), &Congestion::NONE);
        s.on_ack(&Ack { transport: &transport, app_limited: true, ..idle });
        assert_eq!(s.cwnd, 100.0);
    }

    #[test]
    fn losses_halve_or_nothing() {
        let after = |keep: f64, kind| {
            let mut s = sender(100.0, 0.1, &[("on_loss", keep)]);
            s.on_loss(&testing::loss(Time::ZERO, kind, 100));
            s.cwnd
        };
        assert_eq!((after(0.0, LossKind::Duplicates), after(1.0, LossKind::Duplicates)), (50.0, 100.0));
        assert_eq!((after(0.0, LossKind::Timeout), after(1.0, LossKind::Timeout)), (1.0, 1.0));
        assert_eq!(after(0.0, LossKind::Mark), 100.0);
    }

    /// Round trip 2 s, half of t_rho 0.1 s: 4 packets 0.5 s apart are paced, at 2000 B/s; 20 packets 0.1 s apart are not.
    #[test]
    fn small_windows_on_long_paths_are_paced() {
        assert_eq!(sender(4.0, 2.0, &[]).allowance().pacing, Some(Rate(16_000)));
        assert_eq!(sender(1.0, 2.0, &[]).allowance().pacing, None);
        assert_eq!(sender(20.0, 2.0, &[]).allowance().pacing, None);
        assert_eq!(sender(4.0, 0.1, &[]).allowance().pacing, None);
        assert_eq!(sender(4.0, 2.0, &[("pace_below", 0.0)]).allowance().pacing, None);
        assert_eq!(sender(65.0, 20.0, &[]).allowance().pacing, None);
    }

    /// The author's code: the whole packets of the window, rounded up to a power of two, in the round trip.
    #[test]
    fn the_author_paces_in_powers_of_two() {
        let authors = ("pace_parts", 1.0);
        let pacing = |window, rtt, given: &[(&str, f64)]| sender(window, rtt, given).allowance().pacing;
        // 0.5 s / 4 exceeds 0.1 s: 4000 B in 0.5 s. 0.35 s / 4 does not, 0.35 s / 3 does.
        assert_eq!(pacing(3.9, 0.5, &[authors]), Some(Rate(64_000)));
        assert_eq!(pacing(3.0, 0.35, &[authors]), None);
        assert_eq!(pacing(3.0, 0.35, &[]), Some(Rate::from_bytes_per_sec(3000.0 / 0.35)));
        // 64.9 is 64 whole packets, 1.9 is one.
        assert_eq!(pacing(64.9, 20.0, &[authors]), Some(Rate(25_600)));
        assert_eq!(pacing(65.0, 20.0, &[authors]), None);
        assert_eq!(pacing(1.9, 20.0, &[authors]), None);
        // A round trip of 0.5 s does not qualify where t_rho is 1.25 s: its half is less than 0.625 s.
        assert!((10..=640).all(|tenths| pacing(tenths as f64 / 10.0, 0.5, &[authors, ("t_rho", 1.25)]).is_none()));
    }

    /// In MI a second multiplies every window by 1.0625^5, whatever the round trip.
    #[test]
    fn round_trips_do_not_matter() {
        for rtt in [0.05, 0.1, 0.5] {
            let s = sender(1.0, rtt, &[]);
            let second = libm::pow(1.0 + s.xi_s, 1.0 / rtt);
            assert!((second / libm::pow(1.0625, 5.0) - 1.0).abs() < 1e-12, "{rtt}: {second}");
            // In AI the rate cwnd/rtt grows alike: alpha_s / rtt per rtt.
            assert!((s.alpha_s / (rtt * rtt) - 25.0).abs() < 1e-9, "{rtt}");
        }
    }

    #[test]
    fn the_receiver_echoes_the_highest_code() {
        let mut receiver = Vcp.receiver().unwrap();
        let mut echo = |codes: &[u8]| {
            for tos in codes {
                receiver.on_data(Time::ZERO, &Packet { tos: *tos, ..Packet::EMPTY });
            }
            let mut ack = Packet::EMPTY;
            ack.transport.set_flags(flag::ACK | flag::ECE);
            receiver.on_ack(Time::ZERO, &mut ack);
            assert_eq!(ack.transport.flags(), flag::ACK);
            ack.transport.code()
        };
        assert_eq!(echo(&[OVERLOAD]), OVERLOAD);
        assert_eq!(echo(&[LOW]), LOW);
        assert_eq!(echo(&[LOW, HIGH, LOW]), HIGH);
    }
}

//! VCP (paper K section III): a link signals its load region once per t_rho, and windows increase multiplicatively or
//! additively, or are cut and then frozen.
//! dW = a (l xi_s + h alpha_s/W);  W <- beta W, once, when a code of overload returns
//!
//! | symbol | field | meaning |
//! | --- | --- | --- |
//! | | tag 0, tag 1 | bytes with the code of low load, and of overload; the rest has the code of high load |
//! | a, l, h | | packets acknowledged per flow, and the shares with each code |
//! | xi_s, alpha_s | `xi_s`, `alpha_s` | equations 6 and 5 for the class's round trip |
//! | NONE, FREEZE, PROBE | `Mode` | after a cut, codes of overload are ignored for t_rho, then for one round trip they mean to add |
//!
//! A class cuts all its windows at once: its flows receive the same code within a round trip. Not modelled: timeouts,
//! and windows of few packets, which receive codes only occasionally.

use explicate_core::api::Probe;
use explicate_core::params::Values;
use explicate_core::protocols::common::load_factor;
use explicate_core::protocols::vcp::{AiScale, OnLoss, Params, T_D};

use super::load::{Load, Region};
use super::losses::Losses;
use crate::model::{Acks, Model, Parcel, Router, RouterInit, Sender, SenderInit};

/// VCP.
pub struct Vcp;

impl Model for Vcp {
    fn protocol(&self) -> &'static str {
        "vcp"
    }
    fn summary(&self) -> &'static str {
        "load factor by intervals, three regions; a class multiplies, adds and cuts as one flow"
    }
    fn sender(&self, init: &SenderInit<'_>) -> Box<dyn Sender> {
        Box::new(VcpSender::new(init, Params::of(init.values)))
    }
    fn router(&self, init: &RouterInit<'_>) -> Option<Box<dyn Router>> {
        let params = load_factor::Params::of(init.values);
        Some(Box::new(VcpRouter(Load::new(params, init.capacity, &mut init.rng.clone()))))
    }
    /// The position of bursts in intervals determines when overload is detected.
    fn steps(&self) -> f64 {
        100.0
    }
    fn longest_step(&self, values: &Values) -> f64 {
        Params::of(values).t_rho / 20.0
    }
}

/// State of the flows after a cut.
#[derive(Clone, Copy, PartialEq)]
enum Mode {
    None,
    Freeze,
    Probe,
}

/// The windows of VCP's senders.
pub(super) struct VcpSender {
    window: f64,
    packet: f64,
    params: Params,
    xi_s: f64,
    alpha_s: f64,
    /// The scales are updated once per round trip.
    scale_at: f64,
    mode: Mode,
    until: f64,
    /// Packets per flow with code overload since the last possible cut; one is enough for a cut.
    overload: f64,
    losses: Losses,
}

impl VcpSender {
    pub(super) fn new(init: &SenderInit<'_>, params: Params) -> VcpSender {
        VcpSender {
            window: init.initial_window,
            packet: init.packet,
            params,
            xi_s: 0.0,
            alpha_s: 0.0,
            scale_at: 0.0,
            mode: Mode::None,
            until: 0.0,
            overload: 0.0,
            losses: Losses::default(),
        }
    }

    /// Equations 6 and 5.
    fn scale(&mut self, now: f64, rtt: f64) {
        let p = &self.params;
        let ratio = rtt / p.t_rho;
        self.xi_s = libm::pow(1.0 + p.xi, ratio.min(p.max_rtt_ratio)) - 1.0;
        let scale = match p.ai_scale {
            AiScale::TRho => ratio * ratio,
            AiScale::TD => by_t_d(rtt / T_D),
        };
        self.alpha_s = p.alpha * p.weight * scale;
        self.scale_at = now + rtt;
    }
}

/// The author's scaling of the additive increase: quadratic, linear below 20 and above 500 ms.
fn by_t_d(x: f64) -> f64 {
    if x <= 0.2 {
        0.2 * x
    } else if x <= 5.0 {
        x * x
    } else {
        25.0 + (x - 5.0)
    }
}

impl Sender for VcpSender {
    fn on_acks(&mut self, acks: &Acks) {
        if self.scale_at <= acks.now {
            self.scale(acks.now, acks.rtt);
        }
        if self.mode == Mode::Freeze && self.until <= acks.now {
            (self.mode, self.until) = (Mode::Probe, self.until + acks.rtt);
        }
        if self.mode == Mode::Probe && self.until <= acks.now {
            (self.mode, self.overload) = (Mode::None, 0.0);
        }
        let (low, over) = (acks.tags[0] / self.packet, acks.tags[1] / self.packet);
        let high = (acks.packets - low - over).max(0.0);
        if self.mode == Mode::None {
            self.overload += over;
        }
        if self.overload >= 1.0 && self.mode == Mode::None {
            self.window = (self.params.beta * self.window).max(1.0);
            (self.mode, self.until) = (Mode::Freeze, acks.now + self.params.t_rho);
        }
        let add = high + if self.mode == Mode::Probe { over } else { 0.0 };
        self.window += low * self.xi_s + add * self.alpha_s / self.window;
        let events = self.losses.events(acks.lost, acks.dt, acks.rtt);
        if self.params.on_loss == OnLoss::Halve {
            self.window = (self.window * (1.0 - 0.5 * events)).max(1.0);
        }
    }
    fn window(&self) -> f64 {
        self.window
    }
    fn tags(&self, packets: f64) -> [f64; 2] {
        [packets * self.packet, 0.0]
    }
    fn paces(&self, rtt: f64) -> bool {
        self.params.paced_in(self.window, rtt).is_some()
    }
    fn probe(&self, put: Probe<'_>) {
        put("cwnd", self.window);
        put("frozen", (self.mode == Mode::Freeze) as u8 as f64);
    }
}

/// Raises the codes of departing fluid.
pub(super) fn raise(parcel: &mut Parcel, region: Region) {
    match region {
        Region::Low => {}
        Region::High => parcel.tags[0] = 0.0,
        Region::Overload => parcel.tags = [0.0, parcel.bytes],
    }
}

struct VcpRouter(Load);

impl Router for VcpRouter {
    fn on_arrival(&mut self, _parcel: &Parcel, _packet: f64, _rtt: f64) {}
    fn step(&mut self, now: f64, dt: f64, arrived: f64, queue: f64) {
        self.0.step(now, dt, arrived, queue);
    }
    fn on_departure(&mut self, parcel: &mut Parcel) {
        raise(parcel, self.0.region);
    }
    fn probe(&self, put: Probe<'_>) {
        self.0.probe(put);
    }
}

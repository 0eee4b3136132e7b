//! XCP in the rate form of draft-falk-xcp-spec-03: the router of section 3.4 and the sender of 3.1 and 3.3 with sums over
//! packets instead of packets.
//!
//! Per link, once per control interval d (mean RTT of the flows, Sum X RTT / Sum X):
//!
//! F = alpha (C - y) - beta Q/d,  h = max(0, gamma y - |F|),  Cp = (h + F+)/Sum X,  Cn = (h + F-)/y d
//!
//! Departing fluid of b bytes with the sum x of inter-packet times requests Delta and is offered Cp x - Cn b, from
//! two pools that empty over the interval. Fluid that requests less returns the rest by the rule of the pools, as
//! packets do. The window of each flow follows the feedback: dW = RTT/s Sum Delta.
//!
//! | symbol | field | meaning |
//! | --- | --- | --- |
//! | Delta | tag 0 | sum of the packets' requests, bytes/s |
//! | X | tag 1 | sum of their inter-packet times RTT/W, s |
//! | W | `window` | packets |
//! | Cp, Cn, pools | `cp`, `cn`, `res_pos`, `res_neg` | as in the protocol's page |
//! | Q | `queue` | smallest queue of an interval of the queue timer, bytes |
//!
//! Not modelled: aging of unused windows, rounding of feedback, timeouts.

use explicate_core::api::Probe;
use explicate_core::params::Values;
use explicate_core::protocols::common::xcp_router::{self, IdleRtt, Pools};
use explicate_core::protocols::xcp::{OnLoss, Params};

use super::losses::Losses;
use crate::model::{Acks, Model, Parcel, Router, RouterInit, Sender, SenderInit};

/// XCP.
pub struct Xcp;

impl Model for Xcp {
    fn protocol(&self) -> &'static str {
        "xcp"
    }
    fn summary(&self) -> &'static str {
        "router by intervals with its pools, window by feedback; a loss halves once a round trip"
    }
    fn sender(&self, init: &SenderInit<'_>) -> Box<dyn Sender> {
        let params = Params::of(init.values);
        Box::new(XcpSender {
            window: init.initial_window,
            packet: init.packet,
            desired: params.desired_rate.map_or(init.interface, |rate| rate / 8.0),
            rtt: init.rtt,
            keeps: match params.on_loss {
                OnLoss::Halve => 0.5,
                OnLoss::Keep => 1.0,
                OnLoss::Reset => 0.0,
            },
            losses: Losses::default(),
        })
    }
    fn router(&self, init: &RouterInit<'_>) -> Option<Box<dyn Router>> {
        Some(Box::new(XcpRouter::new(init)))
    }
    fn longest_step(&self, values: &Values) -> f64 {
        xcp_router::Params::of(values).min_interval / 2.0
    }
}

struct XcpSender {
    window: f64,
    packet: f64,
    /// Bytes/s.
    desired: f64,
    rtt: f64,
    /// Factor by which a loss multiplies the window.
    keeps: f64,
    losses: Losses,
}

impl Sender for XcpSender {
    fn on_acks(&mut self, acks: &Acks) {
        self.rtt = acks.rtt;
        let events = self.losses.events(acks.lost, acks.dt, acks.rtt);
        let window = self.window + acks.tags[0] * acks.rtt / self.packet;
        self.window = (window * (1.0 - (1.0 - self.keeps) * events)).max(1.0);
    }
    fn window(&self) -> f64 {
        self.window
    }
    fn tags(&self, packets: f64) -> [f64; 2] {
        let request = self.desired / self.window - self.packet / self.rtt;
        [packets * request, packets * self.rtt / self.window]
    }
    fn probe(&self, put: Probe<'_>) {
        put("cwnd", self.window);
    }
}

struct XcpRouter {
    capacity: f64,
    params: xcp_router::Params,
    input_bytes: f64,
    sum_x: f64,
    sum_xrtt: f64,
    cp: f64,
    cn: f64,
    res_pos: f64,
    res_neg: f64,
    queue: f64,
    min_queue: f64,
    mean_queue: f64,
    avg_rtt: f64,
    began: f64,
    control_at: f64,
    queue_at: f64,
}

impl XcpRouter {
    fn new(init: &RouterInit<'_>) -> XcpRouter {
        let params = xcp_router::Params::of(init.values);
        let mut rng = init.rng.clone();
        let first = params.initial_interval;
        let mut jittered = || first * (0.8 + 0.4 * rng.uniform());
        XcpRouter {
            capacity: init.capacity,
            params,
            input_bytes: 0.0,
            sum_x: 0.0,
            sum_xrtt: 0.0,
            cp: 0.0,
            cn: 0.0,
            res_pos: 0.0,
            res_neg: 0.0,
            queue: 0.0,
            min_queue: 0.0,
            mean_queue: 0.0,
            avg_rtt: first,
            began: 0.0,
            control_at: jittered(),
            queue_at: jittered(),
        }
    }

    fn sample_queue(&mut self, now: f64, queue: f64) {
        self.queue = self.min_queue.min(queue);
        self.min_queue = queue;
        self.mean_queue += self.params.queue_weight * (self.queue - self.mean_queue);
        self.queue_at = now + ((self.avg_rtt - queue / self.capacity) / 2.0).max(self.params.allowed_queue);
    }

    fn control(&mut self, now: f64) {
        let p = &self.params;
        if self.sum_x > 0.0 {
            self.avg_rtt = self.sum_xrtt / self.sum_x;
        } else if p.idle_rtt == IdleRtt::Initial {
            self.avg_rtt = p.initial_interval;
        }
        let y = self.input_bytes / (now - self.began);
        let queue = self.mean_queue - p.target_queue;
        let f = p.alpha * (self.capacity - y) - p.beta * queue / self.avg_rtt.max(1e-6);
        let shuffle = (p.gamma * y - f.abs()).max(0.0);
        self.res_pos = shuffle + f.max(0.0);
        self.res_neg = shuffle + (-f).max(0.0);
        self.cp = if self.sum_x > 0.0 { self.res_pos / self.sum_x } else { 0.0 };
        self.cn = if self.input_bytes > 0.0 { self.res_neg / self.input_bytes } else { 0.0 };
        (self.input_bytes, self.sum_x, self.sum_xrtt) = (0.0, 0.0, 0.0);
        self.began = now;
        self.control_at = now + self.avg_rtt.max(p.min_interval);
    }
}

impl Router for XcpRouter {
    fn on_arrival(&mut self, parcel: &Parcel, _packet: f64, rtt: f64) {
        self.sum_x += parcel.tags[1];
        self.sum_xrtt += parcel.tags[1] * rtt.min(self.params.max_interval);
    }

    fn step(&mut self, now: f64, dt: f64, arrived: f64, queue: f64) {
        self.input_bytes += arrived;
        self.min_queue = self.min_queue.min(queue);
        // A step belongs to the interval that ends nearest to its end.
        let due = now + 0.5 * dt;
        if self.queue_at <= due {
            self.sample_queue(now, queue);
        }
        if self.control_at <= due {
            self.control(now);
        }
    }

    fn on_departure(&mut self, parcel: &mut Parcel) {
        let [delta, x] = parcel.tags;
        let mut pos = (self.cp * x).min(self.res_pos);
        let mut neg = (self.cn * parcel.bytes).min(self.res_neg);
        let offer = pos - neg;
        if delta > offer {
            parcel.tags[0] = offer;
        } else if self.params.pools == Pools::Paper {
            pos = delta.max(0.0);
            neg = if delta > 0.0 { offer - delta } else { offer.max(0.0) - delta };
        } else {
            neg = (neg + (offer - delta)).min(self.res_neg);
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
    }

    fn probe(&self, put: Probe<'_>) {
        put("avg_rtt_s", self.avg_rtt);
        put("persistent_queue_bytes", self.queue);
        put("res_pos_bytes_per_s", self.res_pos);
        put("res_neg_bytes_per_s", self.res_neg);
        put("cp", self.cp);
        put("cn", self.cn);
    }
}

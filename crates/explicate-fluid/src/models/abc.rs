//! ABC (NSDI 2020): a link lets a share f of the packets leave as accelerates, by the rate that leaves it; windows
//! follow by a packet for each. dW = 2 s - a + a / W
//!
//! | symbol | field | meaning |
//! | --- | --- | --- |
//! | | tag 0 | bytes of packets with "accelerate"; the rest have "brake" |
//! | a, s | | packets acknowledged per flow, and those of them with "accelerate" |
//! | f | `share` | equations 1 and 2 |
//! | cr | `left` | what left in the last T, bytes, by steps |
//!
//! Of several links the least share counts. Not modelled: tokens, which let a few accelerates follow each other;
//! timeouts; the bound of a window by what is in flight.

use std::collections::VecDeque;

use explicate_core::api::Probe;
use explicate_core::params::Values;
use explicate_core::protocols::abc::{OnLoss, Params, RouterParams};

use super::losses::Losses;
use crate::model::{Acks, Model, Parcel, Router, RouterInit, Sender, SenderInit};

/// ABC.
pub struct Abc;

impl Model for Abc {
    fn protocol(&self) -> &'static str {
        "abc"
    }
    fn summary(&self) -> &'static str {
        "share of accelerates by the rate of departures, a packet for each; a loss halves once a round trip"
    }
    fn sender(&self, init: &SenderInit<'_>) -> Box<dyn Sender> {
        let keep = Params::of(init.values).on_loss == OnLoss::Keep;
        Box::new(AbcSender { window: init.initial_window, packet: init.packet, keep, losses: Losses::default() })
    }
    fn router(&self, init: &RouterInit<'_>) -> Option<Box<dyn Router>> {
        let params = RouterParams::of(init.values);
        let (capacity, left) = (init.capacity, VecDeque::new());
        Some(Box::new(AbcRouter { params, capacity, left, sums: (0.0, 0.0), queue: 0.0, target: 0.0, share: 1.0 }))
    }
    fn longest_step(&self, values: &Values) -> f64 {
        RouterParams::of(values).window / 10.0
    }
}

struct AbcSender {
    window: f64,
    packet: f64,
    keep: bool,
    losses: Losses,
}

impl Sender for AbcSender {
    fn on_acks(&mut self, acks: &Acks) {
        let accelerates = acks.tags[0] / self.packet;
        self.window += 2.0 * accelerates - acks.packets + acks.packets / self.window;
        let events = self.losses.events(acks.lost, acks.dt, acks.rtt);
        let keeps = if self.keep { 1.0 } else { 1.0 - 0.5 * events };
        self.window = (self.window * keeps).max(1.0);
    }
    fn window(&self) -> f64 {
        self.window
    }
    fn tags(&self, packets: f64) -> [f64; 2] {
        [packets * self.packet, 0.0]
    }
    fn probe(&self, put: Probe<'_>) {
        put("cwnd", self.window);
    }
}

struct AbcRouter {
    params: RouterParams,
    capacity: f64,
    /// Bytes that left in each step of the last T, and the steps' lengths, s.
    left: VecDeque<(f64, f64)>,
    /// Their sums.
    sums: (f64, f64),
    /// Queue after the last step, bytes.
    queue: f64,
    target: f64,
    share: f64,
}

impl Router for AbcRouter {
    fn on_arrival(&mut self, _parcel: &Parcel, _packet: f64, _rtt: f64) {}

    fn step(&mut self, _now: f64, dt: f64, arrived: f64, queue: f64) {
        let left = (self.queue + arrived - queue).max(0.0);
        self.queue = queue;
        self.left.push_back((left, dt));
        self.sums = (self.sums.0 + left, self.sums.1 + dt);
        while self.sums.1 > self.params.window
            && self.left.len() > 1
            && let Some((bytes, seconds)) = self.left.pop_front()
        {
            self.sums = (self.sums.0 - bytes, self.sums.1 - seconds);
        }
        let wait = (queue / self.capacity - self.params.threshold).max(0.0);
        self.target = (self.capacity * (self.params.eta - wait / self.params.delta)).max(0.0);
        let rate = (self.sums.0 / self.sums.1).max(1e-9);
        self.share = (0.5 * self.target / rate).min(1.0);
    }

    fn on_departure(&mut self, parcel: &mut Parcel) {
        parcel.tags[0] = parcel.tags[0].min(self.share * parcel.bytes);
    }
    fn probe(&self, put: Probe<'_>) {
        put("target_bps", 8.0 * self.target);
        put("dequeue_bps", 8.0 * self.sums.0 / self.sums.1.max(1e-9));
        put("accelerated_share", self.share);
    }
}

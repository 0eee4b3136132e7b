//! RCP (IWQoS 2005): a link updates one rate for all flows several times a round trip, by the controller's own law;
//! flows send at the least rate that returns. W = R rtt
//!
//! | symbol | field | meaning |
//! | --- | --- | --- |
//! | R | tag 0 | the rate that a packet carries, bytes/s, times its bytes, summed |
//! | W | `window` | packets in flight at that rate |
//!
//! Not modelled: timeouts, and flows whose rate is less than a packet in a round trip.

use explicate_core::api::Probe;
use explicate_core::params::Values;
use explicate_core::protocols::rcp::{Interval, Law, Params, RouterParams};

use crate::model::{Acks, Model, Parcel, Router, RouterInit, Sender, SenderInit};

/// RCP.
pub struct Rcp;

impl Model for Rcp {
    fn protocol(&self) -> &'static str {
        "rcp"
    }
    fn summary(&self) -> &'static str {
        "one rate of a link for all flows, by intervals; losses change nothing"
    }
    fn sender(&self, init: &SenderInit<'_>) -> Box<dyn Sender> {
        let desired = Params::of(init.values).desired_rate.map_or(init.interface, |rate| rate / 8.0);
        Box::new(RcpSender { window: init.initial_window, packet: init.packet, desired })
    }
    fn router(&self, init: &RouterInit<'_>) -> Option<Box<dyn Router>> {
        let params = RouterParams::of(init.values);
        let next = params.interval * (0.8 + 0.4 * init.rng.clone().uniform());
        let law = Law::new(params, init.capacity);
        Some(Box::new(RcpRouter { law, capacity: init.capacity, past: Interval::default(), next }))
    }
    fn longest_step(&self, values: &Values) -> f64 {
        RouterParams::of(values).interval / 4.0
    }
}

struct RcpSender {
    window: f64,
    packet: f64,
    /// Bytes/s.
    desired: f64,
}

impl Sender for RcpSender {
    fn on_acks(&mut self, acks: &Acks) {
        let bytes = acks.packets * self.packet;
        if bytes > 0.0 {
            let rate = (acks.tags[0] / bytes).min(self.desired);
            self.window = (rate * acks.rtt / self.packet).max(1.0);
        }
    }
    fn window(&self) -> f64 {
        self.window
    }
    fn tags(&self, packets: f64) -> [f64; 2] {
        [packets * self.packet * self.desired, 0.0]
    }
    fn paces(&self, _rtt: f64) -> bool {
        true
    }
    fn probe(&self, put: Probe<'_>) {
        put("cwnd", self.window);
    }
}

struct RcpRouter {
    law: Law,
    capacity: f64,
    /// The present interval so far.
    past: Interval,
    /// When it ends, s.
    next: f64,
}

impl Router for RcpRouter {
    fn on_arrival(&mut self, parcel: &Parcel, _packet: f64, rtt: f64) {
        self.past.timed.0 += parcel.bytes;
        self.past.timed.1 += parcel.bytes * rtt;
    }
    fn step(&mut self, now: f64, dt: f64, arrived: f64, queue: f64) {
        self.past.bytes += arrived;
        self.past.seconds += dt;
        // A step belongs to the interval that ends nearest to its end.
        if self.next <= now + 0.5 * dt {
            self.past.queue = queue;
            self.next = now + self.law.update(&self.past, self.capacity);
            self.past = Interval::default();
        }
    }
    fn on_departure(&mut self, parcel: &mut Parcel) {
        parcel.tags[0] = parcel.tags[0].min(self.law.rate * parcel.bytes);
    }
    fn probe(&self, put: Probe<'_>) {
        put("rate_bps", 8.0 * self.law.rate);
        put("avg_rtt_s", self.law.rtt);
    }
}

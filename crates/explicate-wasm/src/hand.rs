//! A router whose feedback a visitor sets, and the feedback that its own control law would have given.
//!
//! It replaces a controller that answers with a change of throughput in the congestion header.

use std::sync::Arc;

use explicate_core::api::{
    AnyProtocol, AnyRouter, AnySender, PortView, Probe, Protocol, Router, RouterInit, SenderInit,
};
use explicate_core::params::Info;
use explicate_core::protocols::rate_header::UNITS_PER_SEC;
use explicate_core::qdisc::DropCause;
use explicate_core::units::{Rate, Time};
use explicate_core::wire::Packet;
use explicate_scenario::model::Link;

use crate::steps::{Lookup, Steps};

/// Feedback below this uses the router's own control law.
pub const OFF: f64 = -1.0;

/// Feedback is carried as whole millionths above [`LEAST`].
const UNIT: f64 = 1e6;
const LEAST: f64 = -2.0;

/// Replaces the feedback of a link's controller, from the first of these steps on.
pub(crate) fn take_over(link: &mut Link, steps: &Steps) -> Result<(), String> {
    let name = link.name.clone();
    let Some(spec) = link.routers.iter_mut().find(|spec| spec.protocol.congestion_header()) else {
        return Err(format!("{name} has no controller whose feedback could be set"));
    };
    let carried: Vec<(Time, Rate)> = std::iter::once((Time::ZERO, Rate(0)))
        .chain(steps.iter().map(|&(at, share)| (at, Rate(((share - LEAST) * UNIT).round() as u64))))
        .collect();
    spec.values.steps = Some(Arc::from(carried));
    // Protocols live as long as the program: a page makes one per run, of a few bytes.
    spec.protocol = Box::leak(Box::new(Hand { protocol: spec.protocol }));
    Ok(())
}

/// A protocol with such a router.
struct Hand {
    protocol: &'static AnyProtocol,
}

impl Protocol for Hand {
    const INFO: Info = Info { name: "hand", summary: "Feedback set by hand", source: "ours", params: &[] };
    const EXPLICIT: bool = true;

    fn sender(&self, init: &SenderInit<'_>) -> Box<AnySender> {
        self.protocol.sender(init)
    }
    fn router(&self, init: &RouterInit<'_>) -> Option<Box<AnyRouter>> {
        let inner = self.protocol.router(init)?;
        let share = Lookup::new(init.values);
        Some(Box::new(HandRouter { inner, share, set: LEAST, bytes: 0.0, theirs: 0.0, mine: 0.0, shown: [0.0; 2] }))
    }
}

/// Aggregate feedback is the change that packets request over a control interval, divided by the bytes of that
/// interval over a round trip: +0.1 increases the traffic by a tenth per round trip.
struct HandRouter {
    inner: Box<AnyRouter>,
    share: Lookup,
    set: f64,
    /// Sums over the present control interval.
    bytes: f64,
    theirs: f64,
    mine: f64,
    /// Both aggregates over the last interval.
    shown: [f64; 2],
}

impl HandRouter {
    fn is_on(&self) -> bool {
        self.set >= OFF
    }
}

impl Router for HandRouter {
    fn on_arrival(&mut self, now: Time, packet: &mut Packet, port: &PortView) {
        self.inner.on_arrival(now, packet, port);
    }
    fn writes_into(&self, packet: &Packet) -> bool {
        self.inner.writes_into(packet)
    }
    fn on_departure(&mut self, now: Time, packet: &mut Packet, port: &PortView) {
        let asked = packet.congestion.delta_throughput();
        self.inner.on_departure(now, packet, port);
        if !packet.congestion.is_standard() {
            return;
        }
        self.set = self.share.at(now) as f64 / UNIT + LEAST;
        let theirs = packet.congestion.delta_throughput() as f64;
        let rtt = packet.congestion.rtt() as f64 / UNITS_PER_SEC;
        let length = packet.ip_len as f64;
        let mut mine = theirs;
        if self.is_on() && rtt > 0.0 {
            // A flow sends rtt / X packets per round trip and length / X bytes per second.
            mine = (self.set * length / rtt).min(asked as f64);
            packet.congestion.set_delta_throughput(mine as i32);
        }
        self.bytes += length;
        self.theirs += theirs * rtt;
        self.mine += mine * rtt;
    }
    fn on_drop(&mut self, now: Time, packet: &Packet, cause: DropCause, port: &PortView) {
        self.inner.on_drop(now, packet, cause, port);
    }
    fn on_timer(&mut self, now: Time, port: &PortView) {
        self.inner.on_timer(now, port);
        if self.bytes > 0.0 {
            self.shown = [self.theirs / self.bytes, self.mine / self.bytes];
        }
        (self.bytes, self.theirs, self.mine) = (0.0, 0.0, 0.0);
    }
    fn next_timer(&self) -> Time {
        self.inner.next_timer()
    }
    fn probe(&self, put: Probe<'_>) {
        self.inner.probe(put);
        put("feedback_own", self.shown[0]);
        put("feedback_given", self.shown[1]);
    }
}

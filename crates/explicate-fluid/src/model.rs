//! What a fluid model of a protocol consists of.

use explicate_core::api::Probe;
use explicate_core::params::Values;
use explicate_core::rng::Rng;

/// Fluid of one class: in a step of time, or in a place. All of its flows together, so every field is a sum.
#[derive(Clone, Copy, Default, Debug, PartialEq)]
pub struct Parcel {
    /// IP bytes of data packets, or the data that acknowledgements stand for.
    pub bytes: f64,
    /// Bytes that were lost on the way; they travel on, for the sender hears of the gap when it would have heard of them.
    pub lost: f64,
    /// What packets carry besides, summed over packets: a model says what.
    pub tags: [f64; 2],
}

impl Parcel {
    /// Adds another.
    #[inline]
    pub fn add(&mut self, more: &Parcel) {
        self.bytes += more.bytes;
        self.lost += more.lost;
        self.tags[0] += more.tags[0];
        self.tags[1] += more.tags[1];
    }
    /// This share of it.
    #[inline]
    pub fn share(&self, x: f64) -> Parcel {
        Parcel { bytes: x * self.bytes, lost: x * self.lost, tags: [x * self.tags[0], x * self.tags[1]] }
    }
    /// This share of its packets is lost.
    #[inline]
    pub fn lose(&mut self, x: f64) {
        let lost = x * self.bytes;
        self.bytes -= lost;
        self.lost += lost;
        self.tags[0] -= x * self.tags[0];
        self.tags[1] -= x * self.tags[1];
    }
}

/// A protocol's fluid model.
pub trait Model: Sync {
    /// The protocol, as the registry calls it.
    fn protocol(&self) -> &'static str;
    /// What it says about packets that are lost or marked, in the table of models.
    fn summary(&self) -> &'static str;
    /// Settings of flows that it does not cover: the parameter and what to do, if one of `values` is such.
    fn refuses(&self, values: &Values) -> Option<(&'static str, &'static str)> {
        let _ = values;
        None
    }
    /// The window of a flow of a class.
    fn law(&self, init: &LawInit<'_>) -> Box<dyn Law>;
    /// The controller of a port, if the protocol has one.
    fn router(&self, init: &RouterInit<'_>) -> Option<Box<dyn Router>> {
        let _ = init;
        None
    }
    /// Whether its law takes ECN's marks like losses: the first tag is then the number of packets that were marked.
    fn hears_marks(&self) -> bool {
        false
    }
    /// Steps in a round trip, at least: so many that twice as many change little.
    fn steps(&self) -> f64 {
        40.0
    }
    /// The longest step that it bears, s: its control intervals take several.
    fn longest_step(&self, values: &Values) -> f64 {
        let _ = values;
        f64::INFINITY
    }
}

/// What a law is made from.
pub struct LawInit<'a> {
    /// Values of the law's parameters, the recovery's, and every flow's.
    pub values: &'a Values,
    /// IP length of a packet, bytes.
    pub packet: f64,
    /// First window, packets.
    pub initial_window: f64,
    /// Rate of the interface, bytes/s.
    pub interface: f64,
    /// Round trip of the connection's set-up, s.
    pub rtt: f64,
}

/// What the acknowledgements of a step say to each flow of a class.
pub struct Acks {
    /// Time, s.
    pub now: f64,
    /// Length of the step, s.
    pub dt: f64,
    /// Packets acknowledged, a fraction.
    pub packets: f64,
    /// Packets found lost.
    pub lost: f64,
    /// What packets brought, summed over packets.
    pub tags: [f64; 2],
    /// Round trip, s.
    pub rtt: f64,
}

/// The window of each flow of a class.
pub trait Law: Send {
    /// A step's acknowledgements.
    fn on_acks(&mut self, acks: &Acks);
    /// The window, packets.
    fn window(&self) -> f64;
    /// What so many packets carry, summed over them.
    fn tags(&self, packets: f64) -> [f64; 2];
    /// Whether it spreads its packets over the round trip though the flow does not ask for it.
    fn paces(&self, rtt: f64) -> bool {
        let _ = rtt;
        false
    }
    /// Tells its variables.
    fn probe(&self, put: Probe<'_>);
}

/// What a controller is made from.
pub struct RouterInit<'a> {
    /// Values of its parameters.
    pub values: &'a Values,
    /// The capacity that it believes in, bytes/s.
    pub capacity: f64,
    /// Its stream: that of the packet simulator's controller on this port.
    pub rng: Rng,
}

/// The controller of a port.
pub trait Router: Send {
    /// Data of a class that it answers came; `packet` is their length, `rtt` the class's round trip.
    fn on_arrival(&mut self, parcel: &Parcel, packet: f64, rtt: f64);
    /// All that came in the step, acknowledgements and others' data too (bytes), and what waits now. Then come the
    /// departures of the step.
    fn step(&mut self, now: f64, dt: f64, arrived: f64, queue: f64);
    /// Data of such a class leave: writes its answer.
    fn on_departure(&mut self, parcel: &mut Parcel);
    /// Tells its variables.
    fn probe(&self, put: Probe<'_>);
}

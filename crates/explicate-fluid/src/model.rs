//! The parts of a fluid model of a protocol.

use explicate_core::api::Probe;
use explicate_core::params::Values;
use explicate_core::rng::Rng;

/// Fluid of one class: in a time step, or at a place. It covers all flows of the class, so every field is a sum.
#[derive(Clone, Copy, Default, Debug, PartialEq)]
pub struct Parcel {
    /// IP bytes of data packets, or the data that acknowledgements stand for.
    pub bytes: f64,
    /// Bytes lost on the path. They stay in the fluid, because the sender detects the gap when their acknowledgement
    /// would arrive.
    pub lost: f64,
    /// Protocol fields, summed over packets; the model defines their meaning.
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
    /// Name of the protocol in the registry.
    fn protocol(&self) -> &'static str;
    /// Its reaction to lost or marked packets, for the table of models.
    fn summary(&self) -> &'static str;
    /// Settings of flows that it does not cover: the parameter and the remedy, if `values` contain such a setting.
    fn refuses(&self, values: &Values) -> Option<(&'static str, &'static str)> {
        let _ = values;
        None
    }
    /// The window of a flow of a class.
    fn sender(&self, init: &SenderInit<'_>) -> Box<dyn Sender>;
    /// The controller of a port, if the protocol has one.
    fn router(&self, init: &RouterInit<'_>) -> Option<Box<dyn Router>> {
        let _ = init;
        None
    }
    /// Whether it treats ECN marks as losses; the first tag is then the number of marked packets.
    fn reacts_to_marks(&self) -> bool {
        false
    }
    /// Whether its packets bear marks whatever `ecn` is.
    fn always_bears_marks(&self) -> bool {
        false
    }
    /// Minimum number of steps per round trip: twice as many would change little.
    fn steps(&self) -> f64 {
        40.0
    }
    /// Longest stable step, s: a control interval needs several.
    fn longest_step(&self, values: &Values) -> f64 {
        let _ = values;
        f64::INFINITY
    }
}

/// Arguments for the construction of a window.
pub struct SenderInit<'a> {
    /// Values of the parameters of the controller, the recovery, and every flow.
    pub values: &'a Values,
    /// IP length of a packet, bytes.
    pub packet: f64,
    /// Initial window, packets.
    pub initial_window: f64,
    /// Rate of the interface, bytes/s.
    pub interface: f64,
    /// Round-trip time of connection set-up, s.
    pub rtt: f64,
}

/// The acknowledgements of a step, per flow of a class.
pub struct Acks {
    /// Time, s.
    pub now: f64,
    /// Length of the step, s.
    pub dt: f64,
    /// Packets acknowledged, a fraction.
    pub packets: f64,
    /// Packets found lost.
    pub lost: f64,
    /// Protocol fields of the acknowledged packets, summed.
    pub tags: [f64; 2],
    /// Round-trip time, s.
    pub rtt: f64,
}

/// The window of each flow of a class.
pub trait Sender: Send {
    /// The acknowledgements of a step.
    fn on_acks(&mut self, acks: &Acks);
    /// The window, packets.
    fn window(&self) -> f64;
    /// Protocol fields of this many packets, summed; without a header there are none until a queue marks.
    fn tags(&self, packets: f64) -> [f64; 2] {
        let _ = packets;
        [0.0; 2]
    }
    /// Whether it paces even if the flow does not request pacing.
    fn paces(&self, rtt: f64) -> bool {
        let _ = rtt;
        false
    }
    /// Reports its variables.
    fn probe(&self, put: Probe<'_>);
}

/// Arguments for the construction of a controller.
pub struct RouterInit<'a> {
    /// Values of its parameters.
    pub values: &'a Values,
    /// Configured capacity, bytes/s.
    pub capacity: f64,
    /// Its stream: that of the packet simulator's controller on this port.
    pub rng: Rng,
}

/// The controller of a port.
pub trait Router: Send {
    /// Arrival of data of a class that it controls; `packet` is the length of packets, `rtt` the class's round trip.
    fn on_arrival(&mut self, parcel: &Parcel, packet: f64, rtt: f64);
    /// All arrivals of the step in bytes, including acknowledgements and other data, and the present queue. The departures of
    /// the step follow.
    fn step(&mut self, now: f64, dt: f64, arrived: f64, queue: f64);
    /// Departure of data of such a class: writes feedback.
    fn on_departure(&mut self, parcel: &mut Parcel);
    /// Reports its variables.
    fn probe(&self, put: Probe<'_>);
}

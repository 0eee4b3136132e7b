//! Helpers of tests that call state machines directly: machines with parameters by name, and events with default
//! fields, which a test then changes.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::api::{Ack, AnyProtocol, AnyRouter, AnySender, Loss, LossKind, Probe, RouterInit, SenderInit, Sent};
use crate::channel::{AnyChannelKind, ChannelInit, ChannelStages};
use crate::endpoint::FlowInit;
use crate::params::{Param, Values};
use crate::port::{Class, Port, PortInit};
use crate::qdisc::QdiscInit;
use crate::registry::{self, Resolved};
use crate::rng::Rng;
use crate::units::{Rate, Time};
use crate::wire::Congestion;

/// These values, by the names that the lists declare.
pub fn values(lists: &[&[Param]], given: &[(&str, f64)]) -> Values {
    let mut values = Values::default();
    for (name, value) in given {
        let declared = lists.iter().flat_map(|list| list.iter()).find(|param| param.name == *name);
        values.set(declared.unwrap_or_else(|| panic!("`{name}` is not declared")), *value);
    }
    values
}

/// A protocol's sender with this first window, of packets of 1000 bytes at an interface of 100 Mbit/s.
pub fn sender(protocol: &AnyProtocol, initial_window: f64, given: &[(&str, f64)]) -> Box<AnySender> {
    let values = values(&[protocol.params()], given);
    protocol.sender(&SenderInit { values: &values, packet: 1000.0, initial_window, interface: Rate::mbps(100) })
}

/// A protocol's router at a line of 1.25 MB/s.
pub fn router(protocol: &AnyProtocol) -> Box<AnyRouter> {
    let rng = Rng::stream(1, "router");
    let init = RouterInit { values: &Values::default(), capacity: 1.25e6, delay: Time::ZERO, rng };
    protocol.router(&init).expect("a protocol with a router")
}

/// What a channel does at a line of 1 Mbit/s.
pub fn channel(kind: &AnyChannelKind, given: &[(&str, f64)]) -> ChannelStages {
    let values = values(&[kind.params()], given);
    assert_eq!(kind.check(&values), Ok(()));
    kind.build(ChannelInit { values: &values, rate: Rate::mbps(1), rng: Rng::stream(1, "channel") })
}

/// A queue for packets of 1000 bytes at a line of this capacity, bytes/s.
pub fn qdisc<Q>(make: impl FnOnce(&QdiscInit<'_>) -> Q, params: &[Param], capacity: f64, given: &[(&str, f64)]) -> Q {
    let values = values(&[params], given);
    make(&QdiscInit { values: &values, capacity, mean_packet: 1000.0, rng: Rng::stream(1, "queue") })
}

/// A port of 8 Mbit/s, at which a packet of 1000 bytes takes a millisecond, with the queue of this name and a router.
pub fn port(queue: Option<(&str, &[(&str, f64)])>, router: Option<Box<AnyRouter>>) -> Port {
    let qdisc = queue.map(|(name, given)| {
        let kind = registry::qdisc(name).expect("registered");
        qdisc(|init| kind.build(init), kind.params(), 1e6, given)
    });
    Port::new(PortInit {
        number: 0,
        rate: Rate::mbps(8),
        service: None,
        capacity: 1e6,
        class: Class { qdisc, router },
        before: Vec::new(),
        on_air: Vec::new(),
    })
}

/// Flow 7 by this protocol and its recovery, of packets of 1000 bytes at an interface of 100 Mbit/s.
pub fn flow<'a>(resolved: Resolved, values: &'a Values) -> FlowInit<'a> {
    FlowInit {
        id: 7,
        protocol: resolved.protocol,
        fallback: resolved,
        recovery: resolved.recovery,
        values,
        packet: 1000,
        interface: Rate::mbps(100),
    }
}

/// A variable that a machine reports.
pub fn probed(probe: impl FnOnce(Probe<'_>), variable: &str) -> f64 {
    let mut found = f64::NAN;
    probe(&mut |name, value| found = if name == variable { value } else { found });
    found
}

/// Acknowledges a window of segments, all after `cumulative`, with this round-trip time; returns the window then.
pub fn round(sender: &mut AnySender, cumulative: &mut u32, rtt: Time) -> f64 {
    let (first, window) = (*cumulative, sender.allowance().cwnd as u32);
    for acked in 1..=window {
        let (cumulative, highest_sent) = (first + acked, first + window + acked - 1);
        sender.on_ack(&Ack { rtt, cumulative, highest_sent, ..ack(Time::ZERO, &Congestion::NONE) });
    }
    *cumulative += window;
    sender.allowance().cwnd
}

/// An acknowledgement of one segment, with round-trip times of 100 ms and a full window.
pub fn ack(now: Time, header: &Congestion) -> Ack<'_> {
    Ack { in_flight: 1, ..Ack::new(now, 1, Time::millis(100), header) }
}

/// A loss or mark with `in_flight` segments in flight.
pub fn loss(now: Time, kind: LossKind, in_flight: u32) -> Loss {
    Loss::new(now, kind, in_flight, Time::millis(100))
}

/// A transmission of a flow that has more data to send.
pub fn sent(now: Time, in_flight: u32) -> Sent {
    Sent::new(now, in_flight)
}

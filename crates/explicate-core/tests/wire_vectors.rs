//! The bytes that every protocol with routers puts on the wire, from set-up to the first answer, as recorded in `wire_vectors.txt`.
//!
//! A line is a packet: protocol, kind, ECN field, and the headers of its datagram in hexadecimal. If a change of the bytes is
//! intended, the failing test prints the lines to record.

use std::fmt::Write;

use explicate_core::agent::Address;
use explicate_core::api::{AnyProtocol, AnyRouter, PortView, RouterInit};
use explicate_core::datagram::{self, MOST_HEADERS};
use explicate_core::endpoint::{FlowInit, ReceiverEndpoint, SenderEndpoint};
use explicate_core::params::Values;
use explicate_core::qdisc::DropCause;
use explicate_core::registry::{self, PROTOCOLS};
use explicate_core::rng::Rng;
use explicate_core::testing;
use explicate_core::units::Time;
use explicate_core::wire::{Packet, SackRanges};

/// Half of the round trip.
const DELAY: Time = Time::millis(40);
/// What waits at the router.
const VIEW: PortView = PortView { capacity: 1.25e6, backlog_bytes: 3000, backlog_packets: 3, busy: true };

/// Writes a packet's line.
fn record(text: &mut String, protocol: &str, what: &str, packet: &Packet, sack: &SackRanges) {
    let mut bytes = [0; MOST_HEADERS];
    let length = datagram::write(packet, sack, &mut bytes);
    let _ = write!(text, "{protocol} {what} {:02b} ", packet.ecn() as u8);
    bytes[..length].iter().for_each(|byte| {
        let _ = write!(text, "{byte:02x}");
    });
    text.push('\n');
}

/// Takes a data packet through the protocol's router, which has just dropped another one.
fn route(protocol: &'static AnyProtocol, now: Time, packet: &mut Packet) {
    let (values, rng) = (Values::default(), Rng::stream(1, "router"));
    let init = RouterInit { values: &values, capacity: VIEW.capacity, delay: DELAY, rng };
    let Some(mut router) = registry::controller(protocol).and_then(|p| p.router(&init)) else { return };
    let lost = *packet;
    let later = now + Time::millis(60);
    let tick = |until: Time, router: &mut AnyRouter| {
        while router.next_timer() <= until {
            router.on_timer(router.next_timer(), &VIEW);
        }
    };
    tick(now, &mut *router);
    router.on_arrival(now, packet, &VIEW);
    router.on_drop(now, &lost, DropCause::Overflow, &VIEW);
    tick(later, &mut *router);
    router.on_departure(later, packet, &VIEW);
    packet.set_mark(packet.mark().after(Time::millis(24)));
}

/// The lines of a protocol: its set-up, a data packet as sent and as routed, and the acknowledgement.
fn exchange(protocol: &'static AnyProtocol, text: &mut String) {
    let (values, sack) = (Values::default(), registry::resolve("sack").expect("registered"));
    let init = FlowInit { protocol, packet: 1500, ..testing::flow(sack, &values) };
    let (mut flow, mut receiver) = (SenderEndpoint::new(&init), ReceiverEndpoint::new(&init));
    flow.attach(Address(0x0a00_0001));
    flow.write(200_000, true);
    let (mut packet, mut sack) = (Packet::EMPTY, SackRanges::default());
    assert!(flow.poll_transmit(Time::ZERO, &mut packet));
    record(text, protocol.name(), "syn", &packet, &SackRanges::NONE);
    assert!(receiver.turn(DELAY, &mut packet, &mut sack));
    record(text, protocol.name(), "syn-ack", &packet, &SackRanges::NONE);
    flow.handle_packet(DELAY + DELAY, &packet, &SackRanges::NONE);
    assert!(flow.poll_transmit(DELAY + DELAY, &mut packet), "{}", protocol.name());
    record(text, protocol.name(), "data", &packet, &SackRanges::NONE);
    route(protocol, DELAY + DELAY, &mut packet);
    record(text, protocol.name(), "routed", &packet, &SackRanges::NONE);
    assert!(receiver.turn(DELAY + DELAY + DELAY, &mut packet, &mut sack));
    record(text, protocol.name(), "ack", &packet, &SackRanges::NONE);
}

/// The lines of a flow whose first segment comes twice: its set-up, and the report of the duplicate.
fn report(text: &mut String) {
    let (values, rack) = (Values::default(), registry::resolve("reno/rack").expect("registered"));
    let init = FlowInit { packet: 1500, ..testing::flow(rack, &values) };
    let (mut flow, mut receiver) = (SenderEndpoint::new(&init), ReceiverEndpoint::new(&init));
    flow.write(200_000, true);
    let (mut packet, mut sack) = (Packet::EMPTY, SackRanges::default());
    assert!(flow.poll_transmit(Time::ZERO, &mut packet));
    record(text, "rack", "syn", &packet, &SackRanges::NONE);
    assert!(receiver.turn(DELAY, &mut packet, &mut sack));
    record(text, "rack", "syn-ack", &packet, &SackRanges::NONE);
    flow.handle_packet(DELAY + DELAY, &packet, &SackRanges::NONE);
    for what in ["first", "second"] {
        let mut copy = Packet::EMPTY;
        if what == "first" {
            assert!(flow.poll_transmit(DELAY + DELAY, &mut packet));
        }
        copy.clone_from(&packet);
        copy.transport.set_packet_number(if what == "first" { 1 } else { 9 });
        assert!(receiver.turn(DELAY + DELAY + DELAY, &mut copy, &mut sack));
        let ranges = if copy.transport.sack_count() > 0 { sack } else { SackRanges::NONE };
        record(text, "rack", what, &copy, &ranges);
    }
}

#[test]
fn every_protocol_writes_the_recorded_bytes() {
    let mut text = String::new();
    let answered = PROTOCOLS.iter().filter(|protocol| registry::controller(**protocol).is_some());
    answered.for_each(|&protocol| exchange(protocol, &mut text));
    report(&mut text);
    assert!(text.lines().count() >= 50, "five lines for each of ten protocols");
    assert!(text == include_str!("wire_vectors.txt"), "the bytes on the wire are no longer those recorded:\n{text}");
}

//! Feedback, marks and flags are written when a packet leaves a port, not when it joins the queue.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use explicate_core::api::{AnyRouter, PortView, Probe, Protocol, Router, RouterInit};
use explicate_core::params::Values;
use explicate_core::port::{Arrival, Class, Note, Port, PortInit, Store};
use explicate_core::protocols::rate_header::seconds_to_units;
use explicate_core::protocols::xcp::Xcp;
use explicate_core::qdisc::{Discipline, DropCause, Qdisc, Verdict};
use explicate_core::registry;
use explicate_core::rng::Rng;
use explicate_core::testing;
use explicate_core::units::{Rate, Time};
use explicate_core::wire::{Congestion, Format, Packet, flag};

/// Packets by handle, and recorded events.
#[derive(Default)]
struct Table {
    packets: BTreeMap<u32, Packet>,
    notes: Rc<RefCell<Vec<(Time, u32, Note)>>>,
    released: Vec<u32>,
}

impl Store for Table {
    fn packet(&mut self, handle: u32) -> &mut Packet {
        self.packets.get_mut(&handle).expect("a live packet")
    }
    fn release(&mut self, handle: u32) {
        self.packets.remove(&handle);
        self.released.push(handle);
    }
    fn note(&mut self, at: Time, _port: u32, handle: u32, what: Note) {
        self.notes.borrow_mut().push((at, handle, what));
    }
}

/// A port with this limit of its queue.
fn port(limit_packets: f64, router: Option<Box<AnyRouter>>) -> Port {
    testing::port(Some(("droptail", &limit(limit_packets))), router)
}
fn limit(packets: f64) -> [(&'static str, f64); 2] {
    [("limit", 1000.0 * packets), ("count", 1.0)]
}

fn arrive(port: &mut Port, table: &mut Table, at: Time, handle: u32) -> Arrival {
    let mut packet = Packet { ip_len: 1000, congestion: Congestion::new(Format::STANDARD), ..Packet::EMPTY };
    packet.congestion.set_x(seconds_to_units(0.001));
    packet.congestion.set_rtt(seconds_to_units(0.05));
    packet.congestion.set_delta_throughput(i32::MAX);
    table.packets.insert(handle, packet);
    port.handle_packet(at, handle, table)
}

/// Counts drops, and flags one departing packet for each (as XTCP's router does).
#[derive(Default)]
struct Counting {
    count: u32,
    causes: Vec<DropCause>,
}

impl Router for Counting {
    fn on_arrival(&mut self, _now: Time, _packet: &mut Packet, _port: &PortView) {}
    fn on_departure(&mut self, _now: Time, packet: &mut Packet, _port: &PortView) {
        if self.count > 0 {
            self.count -= 1;
            packet.transport.set_flags(flag::CONGESTED);
        }
    }
    fn on_drop(&mut self, _now: Time, _packet: &Packet, cause: DropCause, _port: &PortView) {
        self.count += 1;
        self.causes.push(cause);
    }
    fn probe(&self, _put: Probe<'_>) {}
}

#[test]
fn a_drop_flags_the_next_packet_to_leave_not_the_next_to_arrive() {
    let mut table = Table::default();
    let mut port = port(2.0, Some(Box::new(Counting::default())));
    // One in service, two wait, the fourth finds no room at 0.1 ms.
    for (handle, us) in [(0, 0), (1, 10), (2, 20)] {
        assert!(matches!(arrive(&mut port, &mut table, Time::micros(us), handle), Arrival::Departs(_)));
    }
    assert_eq!(arrive(&mut port, &mut table, Time::micros(100), 3), Arrival::Dropped);
    // It is packet 0 that leaves next, though it joined before the drop; packet 4 joins after the drop.
    assert!(matches!(arrive(&mut port, &mut table, Time::micros(1500), 4), Arrival::Departs(_)));
    port.catch_up(Time::millis(10), &mut table);
    let flagged: Vec<u32> =
        table.packets.iter().filter(|(_, p)| p.transport.has(flag::CONGESTED)).map(|(h, _)| *h).collect();
    assert_eq!(flagged, [0]);
    assert_eq!(table.released, [3]);
}

/// Writes its present value into departing packets; the timer raises it.
struct Stepping {
    value: i32,
    at: Time,
}

impl Router for Stepping {
    fn on_arrival(&mut self, _now: Time, _packet: &mut Packet, _port: &PortView) {}
    fn on_departure(&mut self, _now: Time, packet: &mut Packet, _port: &PortView) {
        packet.congestion.set_delta_throughput(self.value);
    }
    fn on_timer(&mut self, _now: Time, _port: &PortView) {
        self.value += 1;
        self.at = Time::NEVER;
    }
    fn next_timer(&self) -> Time {
        self.at
    }
    fn probe(&self, _put: Probe<'_>) {}
}

#[test]
fn what_the_control_timer_changes_applies_to_packets_already_queued() {
    let mut table = Table::default();
    // Departures at 1, 2, 3, 4 ms; the timer at 2 ms comes after the departure of that moment.
    let mut port = port(10.0, Some(Box::new(Stepping { value: 0, at: Time::millis(2) })));
    for handle in 0..4 {
        arrive(&mut port, &mut table, Time::micros(handle as u64), handle);
    }
    port.catch_up(Time::millis(20), &mut table);
    let written: Vec<i32> = table.packets.values().map(|p| p.congestion.delta_throughput()).collect();
    assert_eq!(written, [0, 0, 1, 1]);
}

fn xcp(capacity: f64) -> Box<AnyRouter> {
    let values = Values::default();
    let init = RouterInit { values: &values, capacity, delay: Time::ZERO, rng: Rng::stream(1, "router") };
    Xcp.router(&init).expect("XCP has a router")
}

fn probed(port: &Port, name: &str) -> f64 {
    testing::probed(|put| port.probe(put), name)
}

#[test]
fn dropped_packets_take_nothing_from_the_residue_pools() {
    let mut table = Table::default();
    let mut port = port(2.0, Some(xcp(1e6)));
    // An interval of traffic, so that the pools of the next one are filled.
    let mut handle = 0;
    for ms in (0..70).step_by(2) {
        arrive(&mut port, &mut table, Time::millis(ms), handle);
        handle += 1;
    }
    let now = Time::millis(70);
    port.catch_up(now, &mut table);
    let before = probed(&port, "res_pos_bytes_per_s");
    assert!(before > 0.0, "the pools are filled");
    // A burst at one instant: three are admitted, seven dropped, none has left.
    let dropped = (0..10).filter(|i| arrive(&mut port, &mut table, now, handle + i) == Arrival::Dropped).count();
    assert_eq!(dropped, 7);
    assert_eq!(probed(&port, "res_pos_bytes_per_s"), before);
    port.catch_up(now + Time::millis(1), &mut table);
    assert!(probed(&port, "res_pos_bytes_per_s") < before, "the first departure draws on them");
}

/// Drops every packet early, with room left.
struct Refusing;

impl Qdisc for Refusing {
    fn on_arrival(&mut self, _now: Time, _packet: &Packet, _port: &PortView, _idle: Option<Time>) -> Verdict {
        Verdict::Drop(DropCause::Early)
    }
    fn probe(&self, _put: Probe<'_>) {}
}

/// Records the causes that are reported to it.
struct Listening(Arc<Mutex<Vec<DropCause>>>);

impl Router for Listening {
    fn on_arrival(&mut self, _now: Time, _packet: &mut Packet, _port: &PortView) {}
    fn on_departure(&mut self, _now: Time, _packet: &mut Packet, _port: &PortView) {}
    fn on_drop(&mut self, _now: Time, _packet: &Packet, cause: DropCause, _port: &PortView) {
        self.0.lock().expect("one thread").push(cause);
    }
    fn probe(&self, _put: Probe<'_>) {}
}

#[test]
fn a_controller_hears_of_early_drops_and_of_overflow() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let mut table = Table::default();
    let class = Class {
        qdisc: Some(Discipline::Arrival(Box::new(Refusing))),
        router: Some(Box::new(Listening(heard.clone()))),
    };
    let (before, on_air) = (Vec::new(), Vec::new());
    let mut early =
        Port::new(PortInit { number: 0, rate: Rate::mbps(8), service: None, capacity: 1e6, class, before, on_air });
    assert_eq!(arrive(&mut early, &mut table, Time::ZERO, 0), Arrival::Dropped);
    let mut full = port(0.0, Some(Box::new(Listening(heard.clone()))));
    arrive(&mut full, &mut table, Time::ZERO, 1);
    assert_eq!(arrive(&mut full, &mut table, Time::ZERO, 2), Arrival::Dropped);
    assert_eq!(*heard.lock().expect("one thread"), [DropCause::Early, DropCause::Overflow]);
    assert_eq!((early.stats.total().early, full.stats.total().overflow), (1, 1));
}

#[test]
fn catching_up_in_steps_or_at_once_is_the_same() {
    let run = |steps: u64| {
        let mut table = Table::default();
        let mut port = port(5.0, Some(xcp(1e6)));
        let mut rng = Rng::stream(9, "arrivals");
        let mut now = Time::ZERO;
        for handle in 0..2000 {
            let next = now + Time::from_secs_f64(rng.exponential(0.0011));
            for step in 1..=steps {
                port.catch_up(now + Time((next.0 - now.0) * step / (steps + 1)), &mut table);
            }
            now = next;
            arrive(&mut port, &mut table, now, handle);
        }
        port.catch_up(now + Time::secs(1), &mut table);
        let notes = table.notes.borrow().clone();
        let feedback: Vec<i32> = table.packets.values().map(|p| p.congestion.delta_throughput()).collect();
        (notes.len(), feedback, port.queue(Time::ZERO, now + Time::secs(1)).mean_packets.to_bits(), table.released)
    };
    let once = run(0);
    assert!(!once.3.is_empty(), "some were dropped");
    assert_eq!(once, run(1));
    assert_eq!(once, run(7));
}

// ------------------------------------------------------------------------------------------------- polled ports

/// Polls a port until `now`; returns the departures.
fn poll(port: &mut Port, table: &mut Table, now: Time) -> Vec<(u32, Time)> {
    while port.poll_timeout() <= now && !port.is_empty() {
        port.handle_timeout(port.poll_timeout(), table);
    }
    port.catch_up(now, table);
    std::iter::from_fn(|| port.poll_transmit()).collect()
}

#[test]
fn drops_at_the_head_are_drops() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let mut table = Table::default();
    let router = Box::new(Listening(heard.clone()));
    let mut port = testing::port(Some(("codel", &[("limit", 30_000.0)])), Some(router));
    assert!(port.is_scheduled());
    // Ten packets in 9 ms for 2 s: the delay remains at the limit of 30 ms.
    let (mut sent, mut refused) = (Vec::new(), Vec::new());
    for handle in 0..2222 {
        let now = Time::micros(900 * handle as u64);
        sent.extend(poll(&mut port, &mut table, now));
        match arrive(&mut port, &mut table, now, handle) {
            Arrival::Queued => {}
            Arrival::Dropped => refused.push(handle),
            other => panic!("{other:?}"),
        }
    }
    sent.extend(poll(&mut port, &mut table, Time::secs(3)));
    let (early, overflow) = (port.stats.total().early, port.stats.total().overflow);
    assert!(early > 10 && overflow > 10, "{early} at the head, {overflow} at the tail");
    assert_eq!(refused.len() as u64, overflow);
    assert_eq!(2222, sent.len() as u64 + early + overflow);
    assert_eq!(table.released.len() as u64, early + overflow);
    let count = |cause| heard.lock().expect("one thread").iter().filter(|c| **c == cause).count() as u64;
    assert_eq!((count(DropCause::Early), count(DropCause::Overflow)), (early, overflow));
    let queue = port.queue(Time::ZERO, Time::secs(3));
    assert_eq!((queue.max_packets, port.is_empty()), (30, true));
    // They leave in order, a millisecond each, as long as one waits.
    assert!(sent.windows(2).all(|w| w[0].0 < w[1].0 && w[1].1 - w[0].1 >= Time::millis(1)));
    let noted = |what| table.notes.borrow().iter().filter(|n| n.2 == what).count() as u64;
    assert_eq!((noted(Note::Dropped(DropCause::Early)), noted(Note::Departed)), (early, sent.len() as u64));
}

#[test]
fn a_drop_at_the_head_flags_the_packet_that_leaves_instead() {
    let mut table = Table::default();
    let codel = ("codel", &[("interval", 0.01), ("target", 0.001)][..]);
    let mut port = testing::port(Some(codel), Some(Box::new(Counting::default())));
    for handle in 0..30 {
        arrive(&mut port, &mut table, Time::micros(handle as u64), handle);
    }
    let sent = poll(&mut port, &mut table, Time::secs(1));
    let dropped = table.released.clone();
    assert!(!dropped.is_empty());
    // Nothing else counts drops here, so each flags the next one that leaves.
    let flagged: Vec<u32> =
        sent.iter().map(|(h, _)| *h).filter(|h| table.packets[h].transport.has(flag::CONGESTED)).collect();
    assert_eq!(flagged, dropped.iter().map(|h| h + 1).collect::<Vec<_>>());
}

#[test]
fn the_general_path_does_what_the_settled_one_does() {
    let run = |polled: bool| {
        let mut table = Table::default();
        let mut port = port(5.0, Some(xcp(1e6)));
        if polled {
            let kind = registry::qdisc("droptail").expect("registered");
            let qdisc = Some(testing::qdisc(|init| kind.build(init), kind.params(), 1e6, &limit(5.0)));
            port.schedule(vec![(Class { qdisc, router: Some(xcp(1e6)) }, 1.0)], |_| 0);
        }
        let mut rng = Rng::stream(9, "arrivals");
        let mut now = Time::ZERO;
        for handle in 0..2000 {
            now += Time::from_secs_f64(rng.exponential(0.0011));
            poll(&mut port, &mut table, now);
            arrive(&mut port, &mut table, now, handle);
        }
        now += Time::secs(1);
        poll(&mut port, &mut table, now);
        port.catch_up(now, &mut table);
        let feedback: Vec<i32> = table.packets.values().map(|p| p.congestion.delta_throughput()).collect();
        let mut notes = table.notes.borrow().clone();
        notes.sort_by_key(|(at, handle, _)| (*at, *handle));
        let queue = port.queue(Time::ZERO, now);
        let lengths = (queue.mean_packets.to_bits(), queue.p95_packets, queue.max_packets, queue.mean_bytes.to_bits());
        (feedback, notes, lengths, table.released, port.stats.total(), probed(&port, "res_pos_bytes_per_s").to_bits())
    };
    let settled = run(false);
    assert!(settled.4.overflow > 20);
    assert_eq!(settled, run(true));
}

/// By hand: 1000 bytes at 8 Mbit/s take a millisecond, and one packet may wait.
#[test]
fn a_reference_port_has_one_event_for_each_departure() {
    let (mut port, mut table) = (port(1.0, None), Table::default());
    assert!(port.use_reference() && port.is_reference() && port.is_scheduled());
    assert!(!port.use_reference(), "it is one already");
    assert_eq!(port.poll_timeout(), Time::NEVER);
    assert_eq!(arrive(&mut port, &mut table, Time::ZERO, 1), Arrival::Queued);
    assert_eq!(arrive(&mut port, &mut table, Time::micros(300), 2), Arrival::Queued);
    assert_eq!(arrive(&mut port, &mut table, Time::micros(500), 3), Arrival::Dropped);
    assert_eq!((port.len(), port.backlog()), (2, (1000, 1)));
    let mut departures = Vec::new();
    while port.poll_timeout() < Time::NEVER {
        let now = port.poll_timeout();
        port.handle_timeout(now, &mut table);
        departures.extend(std::iter::from_fn(|| port.poll_transmit()));
    }
    assert_eq!(departures, [(1, Time::millis(1)), (2, Time::millis(2))]);
    assert!(port.is_empty() && table.released == [3]);
    assert_eq!((port.stats.arrived, port.stats.bytes, port.stats.total().overflow), (3, 2000, 1));
    // One packet waited for 0.7 of the 2 ms.
    let queue = port.queue(Time::ZERO, Time::millis(2));
    assert!((queue.mean_packets - 0.35).abs() < 1e-12 && queue.max_packets == 1, "{queue:?}");
}

//! A port that computes departures ahead of time gives the results of one that does so in time: for every protocol's controller.

use explicate_core::api::{AnyProtocol, RouterInit};
use explicate_core::params::Values;
use explicate_core::port::{Arrival, Arriving, Horizon, Moment, Port, Slot, Store};
use explicate_core::protocols::rate_header::seconds_to_units;
use explicate_core::registry::PROTOCOLS;
use explicate_core::rng::Rng;
use explicate_core::testing;
use explicate_core::units::Time;
use explicate_core::wire::{Congestion, Ecn, Format, Packet};

/// Packets by handle, side by side.
struct Side(Vec<Slot>);

impl Store for Side {
    fn packet(&mut self, handle: u32) -> &mut Packet {
        &mut self.0[handle as usize].packet
    }
    fn slots(&mut self) -> Option<&mut [Slot]> {
        Some(&mut self.0)
    }
    fn release(&mut self, _handle: u32) {}
}

/// A port with a protocol's controller.
fn port(protocol: &AnyProtocol, limit_packets: Option<f64>) -> Option<Port> {
    let values = Values::default();
    let init = RouterInit { values: &values, capacity: 1e6, delay: Time::millis(5), rng: Rng::stream(1, "router") };
    let router = protocol.router(&init)?;
    let limit = limit_packets.map(|packets| [("limit", packets * 1000.0), ("count", 1.0)]);
    Some(testing::port(limit.as_ref().map(|limit| ("droptail", &limit[..])), Some(router)))
}

/// Packets of some flows, and when they come.
fn arrivals(format: Format, gap: f64) -> Vec<(Time, Packet)> {
    let mut rng = Rng::stream(9, "arrivals");
    let mut now = 0.0;
    let mut arrival = || {
        now += rng.exponential(gap);
        let mut packet = Packet { ip_len: 200, congestion: Congestion::new(format), ..Packet::EMPTY };
        packet.ip_len += 100 * (rng.next_u64() % 9) as u16;
        packet.congestion.set_x(seconds_to_units(0.02 * rng.uniform()));
        packet.congestion.set_rtt(seconds_to_units(0.1 * rng.uniform()));
        packet.congestion.set_delta_throughput(rng.next_u64() as i32 % 50_000);
        packet.set_ecn(Ecn::Capable0);
        (Time::from_secs_f64(now), packet)
    };
    (0..3000).map(|_| arrival()).collect()
}

/// All that can be seen of a port.
fn seen(port: &mut Port, now: Time) -> Vec<f64> {
    let mut values = vec![port.stats.arrived as f64, port.stats.bytes as f64, port.stats.total().overflow as f64];
    let queue = port.queue(Time::ZERO, now);
    values.extend([queue.mean_packets, queue.mean_bytes, queue.peak_packets as f64, queue.p95_packets as f64]);
    port.probe(&mut |_, value| values.push(value));
    values
}

/// How a packet is passed to a port.
#[derive(Clone, Copy)]
enum Told {
    InTime,
    Unseen,
    Foreseen,
    /// And bytes that are written into it before are not known then.
    Unsure,
}

type Outcome = (Vec<Option<Time>>, Vec<Vec<f64>>, Vec<Packet>);

/// Carries packets through a port that is observed every 50 ms or so.
fn run(mut port: Port, packets: &[(Time, Packet)], told: Told) -> Outcome {
    let mut rng = Rng::stream(2, "looks");
    let mut store = Side(packets.iter().map(|(_, packet)| Slot::of(*packet)).collect());
    let (mut departures, mut looks) = (Vec::new(), Vec::new());
    let mut look = Time::ZERO;
    for (handle, &(at, packet)) in packets.iter().enumerate() {
        while look <= at {
            port.catch_up(look, &mut store);
            looks.push(seen(&mut port, look));
            look += Time::from_secs_f64(rng.exponential(0.05));
        }
        let handle = handle as u32;
        let arriving = Arriving { handle, bytes: packet.ip_len as u32 };
        let horizon = |headers_final_before| Horizon { unobserved_until: look, headers_final_before };
        let arrival = match told {
            Told::InTime => port.handle_packet(at, handle, &mut store),
            Told::Unseen => port.handle_unobserved(Moment { now: at, unobserved_until: look }, arriving, &mut store),
            Told::Foreseen => Arrival::Departs(port.predict(at, arriving, horizon(Time::NEVER), &mut store)),
            Told::Unsure => Arrival::Departs(port.predict(at, arriving, horizon(at), &mut store)),
        };
        departures.push(if let Arrival::Departs(departs) = arrival { Some(departs) } else { None });
    }
    port.catch_up(look + Time::secs(9), &mut store);
    looks.push(seen(&mut port, look + Time::secs(9)));
    (departures, looks, store.0.into_iter().map(|slot| slot.packet).collect())
}

/// Differences except for data outside the headers: foreseen packets are counted where they pass.
fn assert_alike(one: &Outcome, other: &Outcome, name: &str) {
    assert_eq!(one.0, other.0, "{name}: departures");
    for (number, (one, other)) in one.1.iter().zip(&other.1).enumerate() {
        assert_eq!(one, other, "{name}: look {number}");
    }
    for (number, (one, other)) in one.2.iter().zip(&other.2).enumerate() {
        assert_eq!(
            (one.congestion, one.transport, one.tos),
            (other.congestion, other.transport, other.tos),
            "{name}: packet {number}"
        );
    }
}

#[test]
fn ahead_of_time_is_as_in_time() {
    let mut controllers = 0;
    for protocol in PROTOCOLS {
        let gaps =
            [(Format::STANDARD, 0.0007), (Format::STANDARD, 0.003), (Format::STANDARD, 0.05), (Format::WINDOW, 0.0009)];
        for (format, gap) in gaps {
            let packets = arrivals(format, gap);
            let Some(limited) = port(*protocol, Some(8.0)) else { continue };
            controllers += 1;
            let in_time = run(limited, &packets, Told::InTime);
            let name = format!("{}, a packet in {gap} s", protocol.name());
            assert_alike(&in_time, &run(port(*protocol, Some(8.0)).expect("as before"), &packets, Told::Unseen), &name);
            let in_time = run(port(*protocol, None).expect("as before"), &packets, Told::InTime);
            for told in [Told::Unseen, Told::Foreseen, Told::Unsure] {
                assert_alike(&in_time, &run(port(*protocol, None).expect("as before"), &packets, told), &name);
            }
        }
    }
    assert!(controllers > 20, "{controllers}");
}

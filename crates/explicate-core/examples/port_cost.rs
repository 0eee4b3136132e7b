//! What a packet costs at a port, by channel or by the controller of a protocol: `port_cost CHANNEL PACKETS`, `port_cost PROTOCOL
//! PACKETS`, `port_cost PROTOCOL:polled PACKETS`, whose departures a driver polls, and `port_cost PROTOCOL:measured PACKETS`, where
//! the port measures its capacity, too. Made to be counted by callgrind; the count of 2 n
//! packets minus that of n leaves out what is worked out once. `bench/cost.py` holds it to a limit.

use std::process::ExitCode;

use explicate_core::api::{AnyProtocol, RouterInit};
use explicate_core::channel::{AnyChannelKind, ChannelInit};
use explicate_core::estimate::hop_capacity::{HopCapacity, Params};
use explicate_core::params::Values;
use explicate_core::port::{Arrival, Class, Equipment, Port, PortInit, Store};
use explicate_core::registry;
use explicate_core::rng::Rng;
use explicate_core::units::{Rate, Time};
use explicate_core::wire::{Congestion, Format, Packet, flag};

const RATE: Rate = Rate::mbps(54);

/// Packets by handle.
struct Slots(Vec<Packet>);

impl Store for Slots {
    fn packet(&mut self, handle: u32) -> &mut Packet {
        &mut self.0[handle as usize]
    }
    fn release(&mut self, _handle: u32) {}
}

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let (name, count) = (args.next().unwrap_or_default(), args.next().and_then(|n| n.parse::<u32>().ok()));
    let Some(count) = count else { return ExitCode::from(2) };
    if let Some(kind) = registry::channel(&name) {
        return behind_channel(kind, count);
    }
    let (name, way) = name.split_once(':').unwrap_or((&name, ""));
    match registry::protocol(name) {
        Some(protocol) => under_controller(protocol, way, count),
        None => ExitCode::from(2),
    }
}

/// Data of the protocol as fast as the line takes them, a few waiting.
fn under_controller(protocol: &AnyProtocol, way: &str, count: u32) -> ExitCode {
    let (values, rng) = (Values::default(), Rng::stream(1, "cost"));
    let init = RouterInit { values: &values, capacity: RATE.bytes_per_sec(), delay: Time::ZERO, rng };
    let Some(router) = protocol.router(&init) else { return ExitCode::from(2) };
    let mut port = Port::new(PortInit {
        number: 0,
        rate: RATE,
        service: None,
        capacity: RATE.bytes_per_sec(),
        class: Class { qdisc: None, router: Some(router) },
        before: vec![],
        on_air: vec![],
    });
    match way {
        "polled" => port.schedule(vec![(Class { qdisc: None, router: protocol.router(&init) }, 1.0)], |_| 0),
        "measured" => {
            let measured = Some(HopCapacity::new(Params::DEFAULT, RATE.bytes_per_sec()));
            port.equip(Equipment { measured, ..Equipment::default() });
        }
        _ => {}
    }
    let mut data = Packet { ip_len: 1040, congestion: Congestion::new(Format::STANDARD), ..Packet::EMPTY };
    data.congestion.set_x(1 << 14);
    data.congestion.set_rtt(1 << 24);
    let mut slots = Slots(vec![data; 16]);
    let mut left = 0u64;
    for i in 0..count {
        let now = Time(i as u64 * 154_100);
        while port.is_scheduled() && port.poll_timeout() <= now {
            port.handle_timeout(port.poll_timeout(), &mut slots);
            while port.poll_transmit().is_some() {
                left += 1;
            }
        }
        port.handle_packet(now, i % 16, &mut slots);
    }
    ExitCode::from((left > count as u64) as u8)
}

fn behind_channel(kind: &AnyChannelKind, count: u32) -> ExitCode {
    let init = ChannelInit { values: &Values::default(), rate: RATE, rng: Rng::stream(1, "cost") };
    let stages = kind.build(init);
    let mut port = Port::new(PortInit {
        number: 0,
        rate: RATE,
        service: stages.service,
        capacity: RATE.bytes_per_sec(),
        class: Class::default(),
        before: stages.before.into_iter().collect(),
        on_air: stages.on_air.into_iter().collect(),
    });
    let (coding, after) = (stages.coding.into_iter().collect(), stages.after.into_iter().collect());
    port.equip(Equipment { coding, after, ..Equipment::default() });
    // Data and acknowledgements in turn, as fast as the line takes them with parity, a few waiting.
    let mut slots = Slots(vec![Packet { ip_len: 1040, ..Packet::EMPTY }, Packet { ip_len: 40, ..Packet::EMPTY }]);
    slots.0[1].transport.set_flags(flag::ACK);
    let mut lost = 0u64;
    for i in 0..count {
        let now = Time(i as u64 * 92_000);
        lost += matches!(port.handle_packet(now, i % 2, &mut slots), Arrival::DepartsLost(_)) as u64;
    }
    // Something that depends on all of it.
    ExitCode::from((lost > count as u64) as u8)
}

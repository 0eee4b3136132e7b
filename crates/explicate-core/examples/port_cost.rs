//! What a packet costs at a port, by channel: `port_cost CHANNEL PACKETS`. Made to be counted by callgrind; the count of 2 n
//! packets minus that of n leaves out what is worked out once. `bench/cost.py` holds it to a limit.

use std::process::ExitCode;

use explicate_core::channel::ChannelInit;
use explicate_core::params::Values;
use explicate_core::port::{Arrival, Class, Equipment, Port, PortInit, Store};
use explicate_core::registry;
use explicate_core::rng::Rng;
use explicate_core::units::{Rate, Time};
use explicate_core::wire::{Packet, flag};

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
    let (name, count) = (args.next(), args.next().and_then(|n| n.parse::<u32>().ok()));
    let Some((kind, count)) = name.as_deref().and_then(registry::channel).zip(count) else { return ExitCode::from(2) };
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

//! The output port of a link: its queue, controllers, line and channels as the scenario has them.

use explicate_core::api::{AnyProtocol, RouterInit};
use explicate_core::channel::{ChannelInit, ChannelStages};
use explicate_core::guard::Marking;
use explicate_core::port::stats::NINETY_BIN;
use explicate_core::port::{Class, Equipment, Port, PortInit, SharedLine};
use explicate_core::qdisc::QdiscInit;
use explicate_core::rng::Rng;
use explicate_core::units::Time;

use crate::ways::{MARKS, answers, bit};
use explicate_scenario::model::{Link, Match, Queue, RouterSpec};

/// The port of a link that data of the protocols `crossing` cross ([`crossing`](crate::ways::crossing)); `line` is its end of
/// a line that it shares.
pub fn port(link: &Link, number: u32, seed: u64, crossing: u64, line: Option<SharedLine>) -> Port {
    let stream = |what: &str| Rng::stream(seed, &format!("{}/{what}", link.name));
    let capacity = link.capacity.bytes_per_sec();
    // A controller that sees only acknowledgements never writes feedback; omitting it changes only the cost.
    // One that the user chose may answer headers or codes that were meant for another's.
    let speaks = |p: &AnyProtocol, of: &[RouterSpec]| {
        let others = if of.len() == 1 { answers(p) } else { 0 };
        crossing & (bit(p) | others) != 0
    };
    // Of a class with this share of the line, whose draws have this name.
    let class = |queue: &Option<Queue>, routers: &[RouterSpec], share: f64, name: &str| Class {
        qdisc: queue.as_ref().map(|queue| {
            queue.kind.build(&QdiscInit {
                values: &queue.values,
                capacity: share * link.rate.bytes_per_sec(),
                mean_packet: queue.mean_packet,
                rng: stream(&format!("queue{name}")),
            })
        }),
        router: routers.iter().filter(|spec| speaks(spec.protocol, routers)).find_map(|spec| {
            let (capacity, rng) = (share * capacity, stream(&format!("router{name}")));
            let made = spec.protocol.router(&RouterInit { values: &spec.values, capacity, delay: link.delay, rng })?;
            Some(if crossing & MARKS != 0 { Box::new(Marking::new(made)) } else { made })
        }),
    };
    let (mut before, mut on_air, mut service) = (Vec::new(), Vec::new(), None);
    let law = link.beliefs.iter().map(|(at, rate)| (*at, rate.bytes_per_sec()));
    let capacity_law = (!link.beliefs.is_empty()).then(|| law.collect());
    let mut equipment = Equipment { capacity: capacity_law, line, ..Equipment::default() };
    for stages in stages(link, seed) {
        before.extend(stages.before);
        equipment.coding.extend(stages.coding);
        equipment.after.extend(stages.after);
        on_air.extend(stages.on_air);
        service = stages.service.or(service);
    }
    let whole = if link.divides() { Class::default() } else { class(&link.queue, &link.routers, 1.0, "") };
    let init = PortInit { number, rate: link.rate, service, capacity, class: whole, before, on_air };
    let mut port = Port::new(init);
    port.equip(equipment);
    if !link.classes.is_empty() {
        let sum: f64 = link.classes.iter().map(|c| c.weight).sum();
        let classes = link.classes.iter().map(|c| {
            let name = format!(".{}", c.matches.word());
            (class(&c.queue, &c.routers, c.weight / sum, &name), c.weight)
        });
        let (explicit, other) = (link.class_of(true), link.class_of(false));
        port.schedule(classes.collect(), move |p| if p.congestion.is_present() { explicit } else { other });
        if link.kappa > 0.0 {
            port.balance(explicit, link.kappa);
        }
    }
    if let Some(spec) = link.routers.first().filter(|_| link.divides()) {
        let controller = spec.protocol;
        let classes = vec![
            (class(&link.queue, &link.routers, 1.0, ""), 1.0),
            (class(&link.queue, &[], 1.0, &format!(".{}", Match::Other.word())), 1.0),
        ];
        port.schedule(classes, move |packet| {
            !(controller.answers(packet) || packet.transport.opens_explicit()) as usize
        });
        port.divide_by_flows();
    }
    if port.has_qdisc() {
        port.stats.watch_ninety((0.9 * link.rate.bytes_per_sec() * NINETY_BIN.as_secs_f64()) as u64);
    }
    if link.clock_tick > Time::ZERO {
        port.set_clock_tick(link.clock_tick);
    }
    if link.over.is_some() {
        port.share();
    }
    port
}

/// The stages of a link's channels, each with its own stream.
fn stages(link: &Link, seed: u64) -> impl Iterator<Item = ChannelStages> {
    link.channel.iter().enumerate().map(move |(i, channel)| {
        let rng = Rng::stream(seed, &format!("{}/channel.{i}", link.name));
        channel.kind.build(ChannelInit { values: &channel.values, rate: link.rate, rng })
    })
}

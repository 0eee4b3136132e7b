//! The output port of a link: its queue, controllers, line and channels as the scenario has them.

use explicate_core::api::{AnyProtocol, AnyRouter, RouterInit};
use explicate_core::channel::{ChannelInit, ChannelStages};
use explicate_core::estimate::hop_capacity::HopCapacity;
use explicate_core::guard::Marking;
use explicate_core::port::stats::NINETY_BIN;
use explicate_core::port::{Class, Equipment, Port, PortInit, SharedLine};
use explicate_core::qdisc::QdiscInit;
use explicate_core::rng::Rng;
use explicate_core::scone::{Advises, Element};
use explicate_core::units::Time;

use crate::paths::{MARKS, answers, bit};
use explicate_scenario::model::{Link, Match, Queue, RouterSpec};

/// The port of a link that data of the protocols `crossing` cross ([`crossing`](crate::paths::crossing)); `line` is
/// its end of a shared line.
pub fn port(link: &Link, number: u32, seed: u64, crossing: u64, line: Option<SharedLine>) -> Port {
    let parts = Parts { link, seed, crossing };
    let mut port = parts.port(number, line);
    if !link.classes.is_empty() {
        parts.add_classes(&mut port);
    }
    if let Some(spec) = link.routers.first().filter(|_| link.divides()) {
        parts.divide(&mut port, spec.protocol);
    }
    if port.has_qdisc() {
        port.stats.watch_ninety((0.9 * link.rate.bytes_per_sec() * NINETY_BIN.as_secs_f64()) as u64);
    }
    if link.clock_tick > Time::ZERO {
        port.set_clock_tick(link.clock_tick);
    }
    if link.over.is_some() {
        port.make_interface_link();
    }
    port
}

/// Arguments for making the parts of a port.
struct Parts<'a> {
    link: &'a Link,
    seed: u64,
    crossing: u64,
}

impl Parts<'_> {
    fn stream(&self, what: &str) -> Rng {
        Rng::stream(self.seed, &format!("{}/{what}", self.link.name))
    }

    /// A port with one queue for all packets.
    fn port(&self, number: u32, line: Option<SharedLine>) -> Port {
        let link = self.link;
        let (mut before, mut on_air, mut service) = (Vec::new(), Vec::new(), None);
        let changes = link.capacity_steps.iter().map(|(at, rate)| (*at, rate.bytes_per_sec()));
        let changes = (!link.capacity_steps.is_empty()).then(|| changes.collect());
        let measured = link.measured.map(|params| HopCapacity::new(params, link.capacity.bytes_per_sec()));
        let mut equipment = Equipment { capacity: changes, measured, line, ..Equipment::default() };
        for stages in stages(link, self.seed) {
            before.extend(stages.before);
            equipment.coding.extend(stages.coding);
            equipment.after.extend(stages.after);
            on_air.extend(stages.on_air);
            service = stages.service.or(service);
        }
        let class = if link.divides() { Class::default() } else { self.class(&link.queue, &link.routers, 1.0, "") };
        let capacity = link.capacity.bytes_per_sec();
        let mut port = Port::new(PortInit { number, rate: link.rate, service, capacity, class, before, on_air });
        port.equip(equipment);
        port
    }

    /// Queue and controller of a class with this share of the line; `name` is the end of the names of its random
    /// streams.
    fn class(&self, queue: &Option<Queue>, routers: &[RouterSpec], share: f64, name: &str) -> Class {
        let link = self.link;
        let qdisc = queue.as_ref().map(|queue| {
            queue.kind.build(&QdiscInit {
                values: &queue.values,
                capacity: share * link.rate.bytes_per_sec(),
                mean_packet: queue.mean_packet,
                rng: self.stream(&format!("queue{name}")),
            })
        });
        // A fair share is the controller's, whatever crosses the link.
        let shares = link.scone == Some(Advises::Fair);
        let answered = |spec: &&RouterSpec| shares || self.is_crossed_by(spec.protocol, routers.len() == 1);
        let router = routers.iter().filter(answered).find_map(|spec| {
            let (capacity, rng) = (share * link.capacity.bytes_per_sec(), self.stream(&format!("router{name}")));
            let made = spec.protocol.router(&RouterInit { values: &spec.values, capacity, delay: link.delay, rng })?;
            Some(if self.crossing & MARKS != 0 { Box::new(Marking::new(made)) } else { made })
        });
        let element = |advises, router| Box::new(Element::new(advises, router)) as Box<AnyRouter>;
        let router = match link.scone {
            Some(advises) => Some(element(advises, router)),
            None => router,
        };
        Class { qdisc, router }
    }

    /// Whether data that a controller of this protocol may answer cross the link. A controller that receives only
    /// acknowledgements never writes feedback, and omitting it changes only the cost. A controller that the user
    /// chose (`chosen`) may answer headers or codes of other protocols.
    fn is_crossed_by(&self, protocol: &AnyProtocol, chosen: bool) -> bool {
        let others = if chosen { answers(protocol) } else { 0 };
        self.crossing & (bit(protocol) | others) != 0
    }

    /// The classes that the scenario gives.
    fn add_classes(&self, port: &mut Port) {
        let link = self.link;
        let sum: f64 = link.classes.iter().map(|c| c.weight).sum();
        let classes = link.classes.iter().map(|c| {
            let name = format!(".{}", c.matches.word());
            (self.class(&c.queue, &c.routers, c.weight / sum, &name), c.weight)
        });
        let (explicit, other) = (link.class_of(true), link.class_of(false));
        port.schedule(classes.collect(), move |p| if p.congestion.is_present() { explicit } else { other });
        if link.kappa > 0.0 {
            port.balance(explicit, link.kappa);
        }
    }

    /// Two classes that share the line by their flows: the packets that this controller answers, and all others.
    fn divide(&self, port: &mut Port, controller: &'static AnyProtocol) {
        let link = self.link;
        let classes = vec![
            (self.class(&link.queue, &link.routers, 1.0, ""), 1.0),
            (self.class(&link.queue, &[], 1.0, &format!(".{}", Match::Other.word())), 1.0),
        ];
        port.schedule(classes, move |packet| {
            !(controller.matches(packet) || packet.transport.opens_explicit()) as usize
        });
        port.divide_by_flows();
    }
}

/// The stages of a link's channels, each with its own stream.
fn stages(link: &Link, seed: u64) -> impl Iterator<Item = ChannelStages> {
    link.channel.iter().enumerate().map(move |(i, channel)| {
        let rng = Rng::stream(seed, &format!("{}/channel.{i}", link.name));
        channel.kind.build(ChannelInit { values: &channel.values, rate: link.rate, rng })
    })
}

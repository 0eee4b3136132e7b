//! From a scenario to a network: ports, routes, flows and their applications.

use explicate_core::flow::{FlowInit, PARAMS};
use explicate_core::medium::dcf::rate_index;
use explicate_core::port::stats::NINETY_BIN;
use explicate_core::port::{Class, Port, PortInit};
use explicate_core::protocol::{Protocol, QdiscInit, RouterInit};
use explicate_core::registry;
use explicate_core::rng::Rng;
use explicate_core::units::{Rate, Time};
use explicate_scenario::model::{FlowGroup, Link, Queue, RouterSpec, Scenario, Size, Start, Station, Traffic};
use explicate_scenario::routing::Routes;

use crate::dcf::{Medium, Over};
use crate::engine::Engine;
use crate::source::{OnOff, Source};

/// Builds the network of a scenario for a run with this seed.
///
/// The error names a flow whose ends are not connected: a scenario that was checked has none.
pub fn build(scenario: &Scenario, seed: u64, fuse: bool) -> Result<Engine, String> {
    let mut engine = Engine::new(scenario.duration, fuse);
    let ways = ways(scenario)?;
    let crossing = crossing(scenario, &ways);
    for (number, (link, &crossing)) in scenario.links.iter().zip(&crossing).enumerate() {
        engine.add_link(port(link, number as u32, seed, crossing), link.delay);
    }
    for index in 0..scenario.media.len() {
        add_medium(&mut engine, scenario, index, &crossing, seed);
    }
    for (index, ways) in ways.iter().enumerate() {
        add_group(&mut engine, ways, scenario, index, seed)?;
    }
    engine.prepare();
    Ok(engine)
}

/// Links of a flow's data and of its acknowledgements.
type Way = (Vec<u32>, Vec<u32>);

/// For each group the ways of its flows, one for each entry of its `ends`.
fn ways(scenario: &Scenario) -> Result<Vec<Vec<Way>>, String> {
    let mut routes = Routes::new(scenario.nodes.len(), &scenario.links);
    let mut path = |from: usize, to: usize| {
        let missing = || format!("no path from {} to {}", scenario.nodes[from], scenario.nodes[to]);
        routes.path(from, to).ok_or_else(missing)
    };
    let mut of_group = |group: &FlowGroup| match &group.via {
        Some(via) => Ok(vec![via.clone()]),
        None => group.ends.iter().map(|&(from, to)| Ok((path(from, to)?, path(to, from)?))).collect(),
    };
    scenario.flows.iter().map(&mut of_group).collect()
}

/// For each link whose controllers the data that cross it want, as bits in the order of the registry; and [`EXPLICIT`].
fn crossing(scenario: &Scenario, ways: &[Vec<Way>]) -> Vec<u64> {
    let mut crossing = vec![0; scenario.links.len()];
    for (group, ways) in scenario.flows.iter().zip(ways) {
        let protocol = group.resolved.protocol;
        let explicit = if protocol.explicit() { EXPLICIT } else { 0 };
        let wanted = bit(registry::controller(protocol).unwrap_or(protocol)) | explicit;
        for &link in ways.iter().flat_map(|(there, _)| there) {
            crossing[link as usize] |= wanted;
        }
    }
    crossing
}

/// Says that data with congestion headers cross a link.
const EXPLICIT: u64 = 1 << 63;

/// The bit of a protocol; those beyond the 62nd share one, which only means that a controller too many is installed.
fn bit(protocol: &dyn Protocol) -> u64 {
    1 << registry::PROTOCOLS.iter().position(|p| p.name() == protocol.name()).unwrap_or(62).min(62)
}

/// The port of a link that data of the protocols `crossing` cross.
fn port(link: &Link, number: u32, seed: u64, crossing: u64) -> Port {
    let stream = |what: &str| Rng::stream(seed, &format!("{}/{what}", link.name));
    let capacity = link.capacity.bytes_per_sec();
    let class = class(&link.queue, &link.routers, link.rate, link.capacity, link.delay, crossing, &stream);
    let (mut before, mut on_air, mut service) = (Vec::new(), Vec::new(), None);
    for (i, channel) in link.channel.iter().enumerate() {
        let stages = channel.kind.build(&channel.values, stream(&format!("channel.{i}")));
        before.extend(stages.before);
        on_air.extend(stages.on_air);
        service = stages.service.or(service);
    }
    let limited = class.qdisc.is_some();
    let mut port = Port::new(PortInit { number, rate: link.rate, service, capacity, class, before, on_air });
    if limited {
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

/// Discipline and controller of a port that data of the protocols `crossing` cross.
fn class(
    queue: &Option<Queue>,
    routers: &[RouterSpec],
    rate: Rate,
    capacity: Rate,
    delay: Time,
    crossing: u64,
    stream: &dyn Fn(&str) -> Rng,
) -> Class {
    let qdisc = queue.as_ref().map(|queue| {
        queue.kind.build(&QdiscInit {
            values: &queue.values,
            capacity: rate.bytes_per_sec(),
            mean_packet: queue.mean_packet,
            rng: stream("queue"),
        })
    });
    let capacity = capacity.bytes_per_sec();
    // A controller that sees acknowledgements alone never speaks: left out, nothing changes but the cost.
    // One that the user chose may answer headers that were meant for another's.
    let answers = |p: &dyn Protocol| if p.explicit() && routers.len() == 1 { EXPLICIT } else { 0 };
    let speaks = |p: &dyn Protocol| crossing & (bit(p) | answers(p)) != 0 || !p.router_needs_data();
    let router = routers.iter().filter(|spec| speaks(spec.protocol)).find_map(|spec| {
        spec.protocol.router(&RouterInit { values: &spec.values, capacity, delay, rng: stream("router") })
    });
    Class { qdisc, router }
}

/// A medium: the interfaces of its stations, and the links over it.
fn add_medium(engine: &mut Engine, scenario: &Scenario, index: usize, crossing: &[u64], seed: u64) {
    let medium = &scenario.media[index];
    let rate = medium.kind.rate(&medium.values);
    let mut over = Vec::new();
    let mut crosses = vec![0; medium.stations.len()];
    for (number, (link, crossing)) in scenario.links.iter().zip(crossing).enumerate() {
        let Some(o) = link.over.filter(|o| o.medium == index) else { continue };
        crosses[o.from] |= crossing;
        let rate = o.rate.and_then(rate_index);
        over.push(Over { link: number as u32, from: o.from as u32, to: o.to as u32, rate });
    }
    let names: Vec<&str> = medium.stations.iter().map(|s| scenario.nodes[s.node].as_str()).collect();
    let interface = |((station, crossing), name): ((&Station, u64), &&str)| {
        let stream = |what: &str| Rng::stream(seed, &format!("{}/{name}/{what}", medium.name));
        let (capacity, none) = (station.capacity, Vec::new);
        let class = class(&station.queue, &station.routers, rate, capacity, Time::ZERO, crossing, &stream);
        let (capacity, number) = (capacity.bytes_per_sec(), 0);
        let (before, on_air) = (none(), none());
        let mut port = Port::new(PortInit { number, rate, service: None, capacity, class, before, on_air });
        port.pulled();
        port.set_clock_tick(station.clock_tick);
        port
    };
    let ports = medium.stations.iter().zip(crosses).zip(&names).map(interface).collect();
    let links: Vec<u32> = over.iter().map(|o| o.link).collect();
    engine.add_medium(Medium::new(medium, &names, ports, &over, seed), &links);
}

fn add_group(engine: &mut Engine, ways: &[Way], scenario: &Scenario, index: usize, seed: u64) -> Result<(), String> {
    let group = &scenario.flows[index];
    let fallback = registry::resolve(group.resolved.fallback)?;
    let mut arrivals = Rng::stream(seed, &format!("{}/arrivals", group.name));
    let mut arrived = Time::ZERO;
    for i in 0..group.count {
        let name = format!("{}.{i}", group.name);
        let start = match group.start {
            Start::At(at) => at,
            Start::Spread { from, over } => from + Time((over.0 as u128 * i as u128 / group.count as u128) as u64),
            Start::Uniform { from, over } => {
                let share = Rng::stream(seed, &format!("{name}/start")).uniform();
                from + Time::from_secs_f64(over.as_secs_f64() * share)
            }
            Start::Poisson { from, per_second } => {
                arrived += Time::from_secs_f64(arrivals.exponential(1.0 / per_second));
                from + arrived
            }
        };
        if start > scenario.duration {
            if matches!(group.start, Start::Poisson { .. }) {
                break; // the rest come later still
            }
            continue;
        }
        let (there, back) = &ways[i as usize % ways.len()];
        let interface = there.first().map_or(Rate(0), |&l| scenario.links[l as usize].rate);
        let init = FlowInit {
            id: engine.ends.len() as u32,
            protocol: group.resolved.protocol,
            fallback: fallback.protocol,
            recovery: group.resolved.recovery,
            values: &group.values,
            packet: group.packet,
            interface,
        };
        debug_assert!(group.values.get(PARAMS, "initial_window") >= 1.0);
        engine.add_flow(&init, there, back, source(group, &name, seed), start, (index as u32, i));
    }
    Ok(())
}

fn source(group: &FlowGroup, name: &str, seed: u64) -> Source {
    let stop = group.stop.unwrap_or(Time::NEVER);
    let stream = || Rng::stream(seed, &format!("{name}/traffic"));
    match &group.traffic {
        Traffic::Bulk if stop == Time::NEVER => Source::Bulk,
        Traffic::Bulk => Source::Until { stop, started: false },
        Traffic::Sized(size) => Source::Sized(draw(size, &mut stream())),
        Traffic::OnOff { on, off, random } => {
            let rng = random.then(stream);
            Source::OnOff(Box::new(OnOff { on: *on, off: *off, rng, stop, active: false }))
        }
    }
}

/// Draws the length of a transfer, at least one byte.
fn draw(size: &Size, rng: &mut Rng) -> u64 {
    let bytes = match *size {
        Size::Fixed(bytes) => return bytes.max(1),
        Size::Exponential(mean) => rng.exponential(mean),
        // Inverse of 1 - (scale / x)^shape, with scale = mean (shape - 1) / shape. A billion bytes bounds the tail.
        Size::Pareto { mean, shape } => {
            mean * (shape - 1.0) / shape / explicate_core::rng::power(1.0 - rng.uniform(), 1.0 / shape)
        }
    };
    bytes.clamp(1.0, 1e9) as u64
}

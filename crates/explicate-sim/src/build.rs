//! From a scenario to a network: ports, routes, flows and their applications.

use std::collections::{BTreeMap, BTreeSet};

use explicate_core::flow::{Flow, FlowInit, PARAMS};
use explicate_core::medium::dcf::rate_index;
use explicate_core::params::Values;
use explicate_core::port::stats::NINETY_BIN;
use explicate_core::port::{Class, Equipment, Port, PortInit, SharedLine};
use explicate_core::protocol::{Address, Agent, AgentInit, ChannelInit, Protocol, QdiscInit, RouterInit};
use explicate_core::registry;
use explicate_core::rng::Rng;
use explicate_core::sink::Sink;
use explicate_core::units::{Rate, Time};
use explicate_scenario::model::{FlowGroup, Link, Queue, RouterSpec, Scenario, Size, Start, Station, Traffic};
use explicate_scenario::routing::Routes;

use crate::dcf::{Medium, Over};
use crate::engine::{Engine, RouteFinder};
use crate::session::{Plan, Sessions};
use crate::source::{OnOff, Source};

/// Builds the network of a scenario for a run with this seed.
///
/// The error names a flow whose ends are not connected: a scenario that was checked has none.
pub fn build(scenario: &Scenario, seed: u64, fuse: bool) -> Result<Engine, String> {
    let mut engine = Engine::new(scenario.duration, fuse);
    let of_phases: Vec<Vec<Ways>> = scenario.routes().map(|routes| ways(scenario, routes)).collect::<Result<_, _>>()?;
    let ways = &of_phases[0];
    let crossing = crossing(scenario, &of_phases);
    let flows = scenario.flows.iter().map(|g| g.count as usize).sum();
    engine.reserve(scenario.links.len(), flows, of_phases.iter().flatten().map(|w| w.links.len()).sum());
    let mut ends: BTreeMap<usize, SharedLine> = BTreeMap::new();
    for (number, (link, &crossing)) in scenario.links.iter().zip(&crossing).enumerate() {
        let line = link.shares_with.map(|twin| {
            ends.remove(&number).unwrap_or_else(|| {
                let [one, other] = SharedLine::pair();
                ends.insert(twin, other);
                one
            })
        });
        engine.add_link(port(link, number as u32, seed, crossing, line), link.delay);
        if let Some(twin) = link.shares_with.filter(|twin| *twin < number) {
            engine.pair(number as u32, twin as u32);
        }
        if scenario.bridges.contains(&link.to) {
            engine.end_at_bridge(number as u32);
        }
    }
    for index in 0..scenario.media.len() {
        add_medium(&mut engine, scenario, index, &crossing, seed);
    }
    for (index, ways) in ways.iter().enumerate() {
        add_group(&mut engine, ways, scenario, index, seed)?;
    }
    let agents = add_agents(&mut engine, scenario, seed);
    let routes = agents.then(|| scenario.routes()).into_iter().flatten();
    let mut finders = routes.map(|routes| finder(scenario, routes));
    engine.set_routes(finders.next());
    for k in 1..of_phases.len() {
        add_reroute(&mut engine, scenario, k, &of_phases, finders.next());
    }
    engine.prepare();
    Ok(engine)
}

/// Agents at nodes whose ports have controllers of protocols with agents, and at the ends of their flows. An end whose own
/// ports say nothing does as the first such router of the scenario. Whether there are any.
fn add_agents(engine: &mut Engine, scenario: &Scenario, seed: u64) -> bool {
    let agent = |protocol: &dyn Protocol, values: &Values, node: usize| {
        let rng = Rng::stream(seed, &format!("{}/agent", scenario.nodes[node]));
        protocol.agent(&AgentInit { values, own: Address(node as u32), rng })
    };
    let none = Values::default();
    let mut agents: BTreeMap<usize, Box<dyn Agent>> = BTreeMap::new();
    let mut first: Option<&RouterSpec> = None;
    let wanted: Vec<&dyn Protocol> = scenario.flows.iter().map(|g| g.resolved.protocol).collect();
    for (number, link) in scenario.links.iter().enumerate() {
        let port = scenario.port(link);
        let specs = port.routers.iter().chain(port.classes.iter().flat_map(|c| &c.routers));
        for spec in specs.filter(|spec| wanted.iter().any(|p| p.name() == spec.protocol.name())) {
            let Some(made) = agent(spec.protocol, &spec.values, link.from) else { continue };
            first = first.or(Some(spec));
            agents.entry(link.from).or_insert(made);
            engine.see_before(number as u32, Address(link.from as u32));
        }
    }
    let mut receivers = BTreeSet::new();
    let mut destinations = Vec::new();
    for id in 0..engine.ends.len() {
        let group = engine.ends[id].group;
        let (group, way) = (&scenario.flows[group.0 as usize], group.1 as usize);
        let protocol = group.resolved.protocol;
        let (from, to) = group.ends[way % group.ends.len()];
        destinations.push(to as u32);
        let spec = first.filter(|spec| spec.protocol.name() == protocol.name());
        for node in [from, to] {
            if !agents.contains_key(&node)
                && let Some(made) = agent(protocol, spec.map_or(&none, |s| &s.values), node)
            {
                agents.insert(node, made);
            }
        }
        if agents.contains_key(&to) {
            receivers.insert(to);
        }
    }
    for (number, link) in scenario.links.iter().enumerate() {
        if receivers.contains(&link.to) {
            engine.see_after(number as u32, Address(link.to as u32));
        }
    }
    if agents.is_empty() {
        return false;
    }
    engine.set_destinations(destinations);
    for (node, agent) in agents {
        engine.add_agent(Address(node as u32), agent);
    }
    true
}

/// Finds ways for agents' messages.
fn finder(scenario: &Scenario, mut routes: Routes) -> RouteFinder {
    let (nodes, bridges) = (scenario.nodes.len(), scenario.bridges.clone());
    Box::new(move |from: u32, to: u32| {
        // A forged address may be of no node.
        let known = |node: u32| (node as usize) < nodes && !bridges.contains(&(node as usize));
        let path = (known(from) && known(to)).then(|| routes.path(from as usize, to as usize))?;
        path.filter(|links| !links.is_empty())
    })
}

/// The change of routes that phase `k` begins with.
fn add_reroute(engine: &mut Engine, scenario: &Scenario, k: usize, ways: &[Vec<Ways>], finder: Option<RouteFinder>) {
    let way = |phase: usize, (group, i): (u32, u32)| {
        let ways = &ways[phase][group as usize];
        ways.get(i as usize % ways.len())
    };
    let moved = |(id, group): (usize, (u32, u32))| {
        let (there, back) = way(k, group);
        ((there, back) != way(k - 1, group)).then_some((id as u32, there, back))
    };
    let flows: Vec<_> = engine.ends.iter().map(|e| e.group).enumerate().filter_map(moved).collect();
    engine.reroute(scenario.reroutes[k - 1].at, &flows, finder);
}

/// Links of the flows' data and of their acknowledgements, end to end: many short lists would leave holes in memory.
#[derive(Default)]
struct Ways {
    links: Vec<u32>,
    /// Where each way's data and acknowledgements end.
    ends: Vec<(u32, u32)>,
}

impl Ways {
    fn push(&mut self, there: &[u32], back: &[u32]) {
        self.links.extend(there);
        let middle = self.links.len() as u32;
        self.links.extend(back);
        self.ends.push((middle, self.links.len() as u32));
    }
    fn len(&self) -> usize {
        self.ends.len()
    }
    /// Links of the data and of the acknowledgements.
    fn get(&self, index: usize) -> (&[u32], &[u32]) {
        let start = if index == 0 { 0 } else { self.ends[index - 1].1 };
        let (middle, end) = self.ends[index];
        (&self.links[start as usize..middle as usize], &self.links[middle as usize..end as usize])
    }
}

/// For each group the ways of its flows with these routes, one for each entry of its `ends`.
fn ways(scenario: &Scenario, mut routes: Routes) -> Result<Vec<Ways>, String> {
    let mut path = |from: usize, to: usize| {
        let missing = || format!("no path from {} to {}", scenario.nodes[from], scenario.nodes[to]);
        routes.path(from, to).ok_or_else(missing)
    };
    let mut of_group = |group: &FlowGroup| {
        let mut ways = Ways::default();
        match &group.via {
            Some((there, back)) => ways.push(there, back),
            None => {
                for &(from, to) in &group.ends {
                    ways.push(&path(from, to)?, &path(to, from)?);
                }
            }
        }
        Ok(ways)
    };
    scenario.flows.iter().map(&mut of_group).collect()
}

/// For each link whose controllers the data that cross it want, as bits in the order of the registry; and [`HEADERS`].
fn crossing(scenario: &Scenario, phases: &[Vec<Ways>]) -> Vec<u64> {
    let mut crossing = vec![0; scenario.links.len()];
    for (group, ways) in phases.iter().flat_map(|ways| scenario.flows.iter().zip(ways)) {
        let protocol = group.resolved.protocol;
        let headers = if protocol.congestion_header() { HEADERS } else { 0 };
        let wanted = bit(registry::controller(protocol).unwrap_or(protocol)) | headers;
        for &link in (0..ways.len()).flat_map(|i| ways.get(i).0) {
            crossing[link as usize] |= wanted;
        }
    }
    crossing
}

/// Says that data with congestion headers cross a link.
const HEADERS: u64 = 1 << 63;

/// The bit of a protocol; those beyond the 62nd share one, which only means that a controller too many is installed.
fn bit(protocol: &dyn Protocol) -> u64 {
    1 << registry::PROTOCOLS.iter().position(|p| p.name() == protocol.name()).unwrap_or(62).min(62)
}

/// The port of a link that data of the protocols `crossing` cross.
fn port(link: &Link, number: u32, seed: u64, crossing: u64, line: Option<SharedLine>) -> Port {
    let stream = |what: &str| Rng::stream(seed, &format!("{}/{what}", link.name));
    let capacity = link.capacity.bytes_per_sec();
    // A controller that sees acknowledgements alone never speaks: left out, nothing changes but the cost.
    // One that the user chose may answer headers that were meant for another's.
    let answers =
        |p: &dyn Protocol, of: &[RouterSpec]| if p.congestion_header() && of.len() == 1 { HEADERS } else { 0 };
    let speaks =
        |p: &dyn Protocol, of: &[RouterSpec]| crossing & (bit(p) | answers(p, of)) != 0 || !p.router_needs_data();
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
            spec.protocol.router(&RouterInit { values: &spec.values, capacity, delay: link.delay, rng })
        }),
    };
    let (mut before, mut on_air, mut service) = (Vec::new(), Vec::new(), None);
    let law = link.beliefs.iter().map(|(at, rate)| (*at, rate.bytes_per_sec()));
    let capacity_law = (!link.beliefs.is_empty()).then(|| law.collect());
    let mut equipment = Equipment { capacity: capacity_law, line, ..Equipment::default() };
    for (i, channel) in link.channel.iter().enumerate() {
        let rng = stream(&format!("channel.{i}"));
        let stages = channel.kind.build(ChannelInit { values: &channel.values, rate: link.rate, rng });
        before.extend(stages.before);
        equipment.coding.extend(stages.coding);
        equipment.after.extend(stages.after);
        on_air.extend(stages.on_air);
        service = stages.service.or(service);
    }
    let whole = class(&link.queue, &link.routers, 1.0, "");
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

/// A medium: the interfaces of its stations, and the links over it.
fn add_medium(engine: &mut Engine, scenario: &Scenario, index: usize, crossing: &[u64], seed: u64) {
    let medium = &scenario.media[index];
    let mut over = Vec::new();
    let mut crosses = vec![0; medium.stations.len()];
    for (number, (link, crossing)) in scenario.links.iter().zip(crossing).enumerate() {
        let Some(o) = link.over.filter(|o| o.medium == index) else { continue };
        crosses[o.from] |= crossing;
        let rate = o.rate.and_then(rate_index);
        over.push(Over { link: number as u32, from: o.from as u32, to: o.to as u32, rate });
    }
    let names: Vec<&str> = medium.stations.iter().map(|s| scenario.nodes[s.node].as_str()).collect();
    let interface = |(station, crossing): (&Station, u64)| {
        let mut port = port(&station.interface, 0, seed, crossing, None);
        port.pulled();
        port
    };
    let ports = medium.stations.iter().zip(crosses).map(interface).collect();
    let links: Vec<u32> = over.iter().map(|o| o.link).collect();
    engine.add_medium(Medium::new(medium, &names, ports, &over, seed), &links);
}

fn add_group(engine: &mut Engine, ways: &Ways, scenario: &Scenario, index: usize, seed: u64) -> Result<(), String> {
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
        let (there, back) = ways.get(i as usize % ways.len());
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
        let own = Address(group.ends[i as usize % group.ends.len()].0 as u32);
        engine.add_flow(&init, there, back, source(group, &name, seed, &init, own, start), start, (index as u32, i));
        if let Some(ends) = engine.ends.last_mut() {
            ends.flow.attach(own);
        }
    }
    Ok(())
}

fn source(group: &FlowGroup, name: &str, seed: u64, init: &FlowInit<'_>, own: Address, start: Time) -> Source {
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
        Traffic::Sessions { timeouts, pause, duration, random } => {
            // What a session is made from, kept for those to come.
            let FlowInit { id, protocol, fallback, recovery, values: _, packet, interface } = *init;
            let values = init.values.clone();
            let fresh = move || {
                let init = FlowInit { id, protocol, fallback, recovery, values: &values, packet, interface };
                let mut flow = Flow::new(&init);
                flow.attach(own);
                (flow, Sink::new(&init).listening())
            };
            let (timeouts, pause, random) = (*timeouts, *pause, *random);
            let plan = Plan { timeouts, pause, duration: duration.unwrap_or(Time::NEVER), random, stop };
            Source::Sessions(Box::new(Sessions::new(plan, start, stream(), Box::new(fresh))))
        }
    }
}

/// Draws the length of a transfer, at least one byte.
fn draw(size: &Size, rng: &mut Rng) -> u64 {
    let bytes = match *size {
        Size::Fixed(bytes) => return bytes.max(1),
        Size::Exponential(mean) => rng.exponential(mean),
        Size::Pareto { mean, shape } => rng.pareto(mean, shape),
    };
    // A billion bytes bounds the tail.
    bytes.clamp(1.0, 1e9) as u64
}

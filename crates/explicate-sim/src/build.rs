//! Builds a network from a scenario: ports, routes, flows and their applications.

use std::collections::{BTreeMap, BTreeSet};

use explicate_build::flows;
use explicate_build::paths::{FlowPaths, crossing, flow_paths};
use explicate_build::ports::port;
use explicate_core::agent::{Address, Agent, AgentInit};
use explicate_core::api::AnyProtocol;
use explicate_core::endpoint::{HostQueue, Params};
use explicate_core::medium::dcf::{Layout, Medium, Over, rate_index};
use explicate_core::params::Values;
use explicate_core::port::SharedLine;
use explicate_core::rng::Rng;
use explicate_core::units::Rate;
use explicate_scenario::agents::{agent_values, controller_ports};
use explicate_scenario::model::{FlowGroup, Scenario, Station};
use explicate_scenario::routing::Routes;

use crate::engine::{Engine, Member, NewRoute, Processing, RouteFinder, RoutePair};
use crate::error::RunError;

/// Builds the network of a scenario for a run with this seed.
///
/// # Errors
/// The ends of a flow are not connected; a checked scenario has no such flow.
pub fn build(scenario: &Scenario, seed: u64, fuse: bool) -> Result<Engine, RunError> {
    let mut engine = Engine::new(seed, scenario.duration, fuse);
    let of_phases: Vec<Vec<FlowPaths>> =
        scenario.routes().map(|routes| flow_paths(scenario, routes)).collect::<Result<_, _>>()?;
    let paths = &of_phases[0];
    let crossing = crossing(scenario, &of_phases);
    let flows = scenario.flows.iter().map(|g| g.count as usize).sum();
    engine.reserve(scenario.links.len(), flows, of_phases.iter().flatten().map(FlowPaths::places).sum());
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
    engine.set_host_queues(&host_queues(scenario, &of_phases));
    for (index, paths) in paths.iter().enumerate() {
        add_group(&mut engine, paths, scenario, index, seed)?;
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

/// Adds agents at nodes whose ports have controllers of protocols with agents, and at the ends of their flows. An end
/// whose own ports have none uses the parameters of the first such router of the scenario. Returns whether there are
/// any.
fn add_agents(engine: &mut Engine, scenario: &Scenario, seed: u64) -> bool {
    let agent = |protocol: &AnyProtocol, values: &Values, node: usize| {
        let rng = Rng::stream(seed, &format!("{}/agent", scenario.nodes[node]));
        protocol.agent(&AgentInit { values, own: Address(node as u32), rng })
    };
    let none = Values::default();
    // Most protocols have no agents: large networks then need no list of ports.
    let protocols = scenario.flows.iter().map(|g| g.resolved.protocol);
    let wanted: Vec<&AnyProtocol> = protocols.filter(|&p| agent(p, &none, 0).is_some()).collect();
    if wanted.is_empty() {
        return false;
    }
    let ports = controller_ports(scenario);
    let mut agents: BTreeMap<usize, Box<dyn Agent>> = BTreeMap::new();
    let mut first: Option<(&str, Values)> = None;
    for (number, link) in scenario.links.iter().enumerate() {
        let port = scenario.port(link);
        for spec in port.controllers().filter(|spec| wanted.iter().any(|p| p.name() == spec.protocol.name())) {
            let name = spec.protocol.name();
            let values = agent_values(&ports[&(link.from, name)]);
            let Some(made) = agent(spec.protocol, &values, link.from) else { continue };
            first = first.or(Some((name, values)));
            agents.entry(link.from).or_insert(made);
            engine.see_before(number as u32, Address(link.from as u32));
        }
    }
    let mut receivers = BTreeSet::new();
    let mut destinations = Vec::new();
    for id in 0..engine.ends.len() {
        let (group, path) = (&scenario.flows[engine.group_of(id)], engine.ends[id].number as usize);
        let protocol = group.resolved.protocol;
        let (from, to) = group.ends[path % group.ends.len()];
        destinations.push(to as u32);
        let values = first.as_ref().filter(|(name, _)| *name == protocol.name()).map_or(&none, |(_, values)| values);
        for node in [from, to] {
            if !agents.contains_key(&node)
                && let Some(made) = agent(protocol, values, node)
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

/// Finds routes for agents' messages.
fn finder(scenario: &Scenario, mut routes: Routes) -> RouteFinder {
    let (nodes, bridges) = (scenario.nodes.len(), scenario.bridges.clone());
    Box::new(move |from: u32, to: u32| {
        // A forged address may belong to no node.
        let known = |node: u32| (node as usize) < nodes && !bridges.contains(&(node as usize));
        let path = (known(from) && known(to)).then(|| routes.path(from as usize, to as usize))?;
        path.filter(|links| !links.is_empty())
    })
}

/// The change of routes at the start of phase `k`.
fn add_reroute(
    engine: &mut Engine,
    scenario: &Scenario,
    k: usize,
    paths: &[Vec<FlowPaths>],
    finder: Option<RouteFinder>,
) {
    let path = |phase: usize, (group, i): (u32, u32)| {
        let paths = &paths[phase][group as usize];
        paths.get(i as usize % paths.len())
    };
    let moved = |id: usize| {
        let group = (engine.group_of(id) as u32, engine.ends[id].number);
        let (there, back) = path(k, group);
        ((there, back) != path(k - 1, group)).then_some(NewRoute { flow: id as u32, forward: there, back })
    };
    let flows: Vec<_> = (0..engine.ends.len()).filter_map(moved).collect();
    engine.reroute(scenario.reroutes[k - 1].at, &flows, finder);
}

/// A medium: the interfaces of its stations, and its links.
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
    let layout = Layout {
        name: &medium.name,
        values: &medium.values,
        stations: medium.stations.iter().map(|s| (scenario.nodes[s.node].as_str(), s.at)).collect(),
        interferers: &medium.interferers,
    };
    let interface = |(station, crossing): (&Station, u64)| {
        let mut port = port(&station.interface, 0, seed, crossing, None);
        port.make_interface();
        port
    };
    let ports = medium.stations.iter().zip(crosses).map(interface).collect();
    let links: Vec<u32> = over.iter().map(|o| o.link).collect();
    engine.add_medium(Medium::new(&layout, ports, &over, seed), &links);
}

/// For each link the queue of the host that sends over it, and its rate; nothing if no flow has one. A host's own link is the first
/// of a flow's, its port has no queue or class of the scenario's, and nothing comes over it from elsewhere: other ports are the network's.
fn host_queues(scenario: &Scenario, of_phases: &[Vec<FlowPaths>]) -> Vec<(HostQueue, Rate)> {
    let wanted = |group: &FlowGroup| Params::of(&group.values).host_queue;
    if scenario.flows.iter().all(|group| wanted(group) == HostQueue::None) {
        return Vec::new();
    }
    let mut kinds: Vec<(HostQueue, Rate)> = scenario.links.iter().map(|link| (HostQueue::None, link.rate)).collect();
    let groups = || of_phases.iter().flat_map(|paths| scenario.flows.iter().zip(paths));
    for (group, paths) in groups() {
        let kind = wanted(group);
        for &first in (0..paths.len()).filter_map(|i| paths.get(i).0.first()) {
            let (known, _) = &mut kinds[first as usize];
            if scenario.links[first as usize].is_unqueued() && (*known == HostQueue::None || kind.takes_turns()) {
                *known = kind;
            }
        }
    }
    for (_, paths) in groups() {
        for (there, back) in (0..paths.len()).map(|i| paths.get(i)) {
            for &later in there.iter().skip(1).chain(back.iter().skip(1)) {
                kinds[later as usize].0 = HostQueue::None;
            }
        }
    }
    kinds
}

fn add_group(
    engine: &mut Engine,
    paths: &FlowPaths,
    scenario: &Scenario,
    index: usize,
    seed: u64,
) -> Result<(), RunError> {
    let group = &scenario.flows[index];
    let routes: Vec<RoutePair> =
        (0..paths.len()).map(|i| paths.get(i)).map(|(there, back)| engine.add_routes(there, back)).collect();
    for (i, start) in flows::starts(group, seed, scenario.duration) {
        let name = format!("{}.{i}", group.name);
        let path = i as usize % paths.len();
        let interface = paths.get(path).0.first().map_or(Rate(0), |&l| scenario.links[l as usize].rate);
        let init = flows::init(group, engine.ends.len() as u32, interface).map_err(RunError::Fallback)?;
        debug_assert!(Params::of(&group.values).initial_window >= 1.0);
        let most = scenario.processing(group, paths.get(path).0);
        let own = Address(group.ends[i as usize % group.ends.len()].0 as u32);
        engine.add_flow(
            &init,
            routes[path],
            flows::source(group, &name, seed, &init, own, start, 0),
            Processing::new(most, seed, &format!("{name}/processing")),
            start,
            Member { group: index as u32, number: i },
        );
        engine.set_host_queue(Params::of(&group.values).host_queue);
        if let Some(ends) = engine.ends.last_mut() {
            ends.flow.attach(own);
        }
    }
    Ok(())
}

//! The nodes and links that the flows of every group use, and the traffic of every link.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use explicate_core::endpoint::header_bytes;
use explicate_core::units::Time;

use crate::document::Place;
use crate::flows::{FlowPath, Group};
use crate::graph::Graph;
use crate::model::{FlowGroup, Link, Size, Traffic};
use crate::reader::{Context, short};
use crate::routing::Routes;

/// Links of the data and of the acknowledgements.
pub(crate) type Via = (Vec<u32>, Vec<u32>);
/// Sources and destinations, and the path if it is given node by node.
pub(crate) type Ends = (Vec<(usize, usize)>, Option<Via>);

/// The traffic of a link: sums over flows.
#[derive(Clone, Copy, Default)]
pub(crate) struct Crossing {
    /// Number of flows whose data or acknowledgements cross, and the sum of their base RTTs, ns.
    flows: u64,
    rtt: u128,
    /// Number of flows whose data cross, and the sum of their packets' lengths.
    data: u64,
    data_bytes: u64,
    /// The longest of these packets.
    largest: u16,
    /// The same for flows whose acknowledgements cross.
    acks: u64,
    ack_bytes: u64,
    /// Demand of the data without other traffic: bit/s and packets/s.
    bits: f64,
    packets: f64,
}

impl Crossing {
    /// The traffic of either of two links.
    pub(crate) fn with(&self, other: &Crossing) -> Crossing {
        Crossing {
            flows: self.flows + other.flows,
            rtt: self.rtt + other.rtt,
            data: self.data + other.data,
            data_bytes: self.data_bytes + other.data_bytes,
            largest: self.largest.max(other.largest),
            acks: self.acks + other.acks,
            ack_bytes: self.ack_bytes + other.ack_bytes,
            bits: self.bits + other.bits,
            packets: self.packets + other.packets,
        }
    }
    /// Mean base RTT; `None` if nothing crosses.
    pub(crate) fn base_rtt(&self) -> Option<Time> {
        (self.flows > 0).then(|| Time((self.rtt / self.flows as u128) as u64))
    }
    /// Typical length of a packet: of data if any cross, else of acknowledgements.
    pub(crate) fn mean_packet(&self) -> Option<f64> {
        match (self.data, self.acks) {
            (0, 0) => None,
            (0, acks) => Some(self.ack_bytes as f64 / acks as f64),
            (data, _) => Some(self.data_bytes as f64 / data as f64),
        }
    }
    /// Length of the longest data packet that crosses, bytes.
    pub(crate) fn largest(&self) -> Option<f64> {
        (self.data > 0).then_some(self.largest as f64)
    }
    /// Whether the demand of data exceeds this rate, bit/s.
    pub(crate) fn wants_more_than(&self, rate: f64) -> bool {
        self.bits > rate
    }
    /// Upper bound of the packets per second, including acknowledgements.
    pub(crate) fn packets_per_second(&self, rate: f64) -> f64 {
        if self.bits > rate { 2.0 * self.packets * rate / self.bits } else { 2.0 * self.packets }
    }
}

/// Assigns ends to groups in the order of the file: each group on a path continues after the previous one.
#[derive(Default)]
pub(crate) struct NamedPaths {
    next: BTreeMap<String, usize>,
}

impl NamedPaths {
    /// Ends of a group, and its route if given node by node; `None` after an error was reported.
    pub(crate) fn ends(
        &mut self,
        ctx: &Context<'_>,
        graph: &Graph,
        links: &[Link],
        group: &Group,
        count: u32,
    ) -> Option<Ends> {
        let path = (graph.generator.default_path().to_string(), group.place);
        let (path, place) = match &group.path {
            Some(FlowPath::Nodes(names)) => return given_path(ctx, graph, links, names),
            Some(FlowPath::Ends(from, to)) => return Some((given_ends(ctx, graph, from, to)?, None)),
            Some(FlowPath::Named(path, place)) => (path.clone(), *place),
            None => path,
        };
        let all = graph.generator.named_path(&path).map_err(|m| ctx.error(place, format!("`path`: {m}"))).ok()?;
        let next = self.next.entry(path).or_default();
        let ends = (0..all.len().min(count as usize)).map(|i| all[(*next + i) % all.len()]).collect();
        *next = (*next + count as usize) % all.len();
        Some((ends, None))
    }
}

fn given_ends(
    ctx: &Context<'_>,
    graph: &Graph,
    from: &[(String, Place)],
    to: &[(String, Place)],
) -> Option<Vec<(usize, usize)>> {
    let find = |key: &str, names: &[(String, Place)]| -> Option<Vec<usize>> {
        let found: Vec<_> = names.iter().map(|(n, place)| ctx.checked(*place, key, graph.node(n))).collect();
        found.into_iter().collect()
    };
    let (sources, sinks) = (find("from", from), find("to", to));
    let (sources, sinks) = (sources?, sinks?);
    let n = sources.len().max(sinks.len());
    let ends: Vec<(usize, usize)> = (0..n).map(|i| (sources[i % sources.len()], sinks[i % sinks.len()])).collect();
    if let Some(i) = ends.iter().position(|(s, d)| s == d) {
        let place = to[i % to.len()].1;
        ctx.error(
            place,
            format!("a flow goes from `{0}` to `{0}`; `to` has to be another node", graph.nodes[ends[i].0]),
        );
        return None;
    }
    Some(ends)
}

fn given_path(ctx: &Context<'_>, graph: &Graph, links: &[Link], names: &[(String, Place)]) -> Option<Ends> {
    let found: Vec<_> = names.iter().map(|(n, place)| ctx.checked(*place, "path", graph.node(n))).collect();
    let nodes: Vec<usize> = found.into_iter().collect::<Option<_>>()?;
    let mut seen = BTreeSet::new();
    for (node, (name, place)) in nodes.iter().zip(names) {
        if !seen.insert(node) {
            ctx.error(*place, format!("`path` visits `{}` twice; a route has no cycles, remove one", short(name)));
            return None;
        }
    }
    let mut wanted: HashMap<(usize, usize), Option<u32>> = HashMap::new();
    for hop in nodes.windows(2) {
        wanted.insert((hop[0], hop[1]), None);
        wanted.insert((hop[1], hop[0]), None);
    }
    for (i, link) in links.iter().enumerate() {
        if let Some(best) = wanted.get_mut(&(link.from, link.to))
            && best.is_none_or(|b| link.delay < links[b as usize].delay)
        {
            *best = Some(i as u32);
        }
    }
    let mut data = Vec::new();
    for (hop, (_, place)) in nodes.windows(2).zip(&names[1..]) {
        let Some(link) = wanted[&(hop[0], hop[1])] else {
            let (a, b) = (&graph.nodes[hop[0]], &graph.nodes[hop[1]]);
            ctx.error(*place, format!("`path`: no link leads from `{a}` to `{b}`; name every node on the way"));
            return None;
        };
        data.push(link);
    }
    let back: Option<Vec<u32>> = nodes.windows(2).rev().map(|hop| wanted[&(hop[1], hop[0])]).collect();
    let ends = (nodes[0], nodes[nodes.len() - 1]);
    // If the path has no reverse direction, acknowledgements take the shortest one.
    Some((vec![ends], Some((data, back.unwrap_or_default()))))
}

/// Follows every flow's route, before and after each change of routes, and sums up the traffic of each link; reports
/// ends without a route.
pub(crate) fn crossings(
    ctx: &Context<'_>,
    graph: &Graph,
    links: &[Link],
    phases: &mut [Routes],
    groups: &mut [FlowGroup],
    places: &[Place],
    seconds: f64,
) -> Vec<Crossing> {
    let mut crossings = vec![Crossing::default(); links.len()];
    for (group, place) in groups.iter_mut().zip(places) {
        let mut unrouted = Unrouted::default();
        for (i, &ends) in group.ends.iter().enumerate() {
            for (phase, routes) in phases.iter_mut().enumerate() {
                let Some((data, acks)) = way(group.via.as_ref(), ends, routes) else {
                    unrouted.add(ends, phase);
                    break;
                };
                let header = group.resolved.protocol.congestion_header();
                let flows = group.flows_of_pair(i);
                let walk = Walk { data: &data, acks: &acks, flows, packet: group.packet, header };
                walk.add(links, &mut crossings, demand(&group.traffic, seconds));
                if let Some((_, back)) = &mut group.via {
                    *back = acks;
                }
            }
        }
        // A route that is always the shortest is not stored.
        if let ([routes], Some((data, acks)), Some(&(from, to))) = (&mut *phases, &group.via, group.ends.first())
            && routes.path(from, to).as_ref() == Some(data)
            && routes.path(to, from).as_ref() == Some(acks)
        {
            group.via = None;
        }
        unrouted.report(ctx, graph, &group.name, *place);
    }
    crossings
}

/// The links of a pair's data and acknowledgements: those that are given, else the shortest. `None` if there are none.
fn way(given: Option<&Via>, (from, to): (usize, usize), routes: &mut Routes) -> Option<Via> {
    let back = routes.path(to, from);
    match given {
        Some((data, acks)) if !acks.is_empty() => Some((data.clone(), acks.clone())),
        Some((data, _)) => Some((data.clone(), back?)),
        None => Some((routes.path(from, to)?, back?)),
    }
}

/// Pairs of a group without a route: the first, with the change of routes after which it has none, and their number.
#[derive(Default)]
struct Unrouted {
    first: Option<((usize, usize), usize)>,
    pairs: usize,
}

impl Unrouted {
    fn add(&mut self, ends: (usize, usize), phase: usize) {
        self.first.get_or_insert((ends, phase));
        self.pairs += 1;
    }
    fn report(&self, ctx: &Context<'_>, graph: &Graph, group: &str, place: Place) {
        let Some(((from, to), phase)) = self.first else { return };
        let (a, b) = (&graph.nodes[from], &graph.nodes[to]);
        let others = self.pairs - 1;
        let more = if others > 0 { format!(" (nor for {others} other pairs)") } else { String::new() };
        let when = if phase > 0 { format!(" after [[reroute]] number {phase}") } else { String::new() };
        let remedy = "add links, or `duplex = true` for the reverse direction";
        ctx.error(place, format!("[[flows]] `{group}`: no route from `{a}` to `{b}` and back{when}{more}; {remedy}"));
    }
}

/// Upper bound of the mean bit/s of one flow over a run.
fn demand(traffic: &Traffic, seconds: f64) -> f64 {
    match traffic {
        Traffic::Bulk | Traffic::OnOff { .. } | Traffic::Sessions { .. } => f64::INFINITY,
        Traffic::Sized(Size::Fixed(bytes)) => *bytes as f64 * 8.0 / seconds,
        Traffic::Sized(Size::Exponential(mean) | Size::Pareto { mean, .. }) => mean * 8.0 / seconds,
    }
}

struct Walk<'a> {
    data: &'a [u32],
    acks: &'a [u32],
    flows: u64,
    packet: u16,
    /// Packets carry a congestion header.
    header: bool,
}

impl Walk<'_> {
    fn add(&self, links: &[Link], crossings: &mut [Crossing], demand: f64) {
        let both = || self.data.iter().chain(self.acks);
        let rtt: u128 = both().map(|&l| links[l as usize].delay.0 as u128).sum();
        let least = self.data.iter().map(|&l| links[l as usize].rate.0).min().unwrap_or(0) as f64;
        let bits = least.min(demand) * self.flows as f64;
        for &l in both() {
            let c = &mut crossings[l as usize];
            c.flows += self.flows;
            c.rtt += rtt * self.flows as u128;
        }
        for &l in self.data {
            let c = &mut crossings[l as usize];
            c.data += self.flows;
            c.data_bytes += self.flows * self.packet as u64;
            c.largest = c.largest.max(self.packet);
            c.bits += bits;
            c.packets += bits / (8.0 * self.packet as f64);
        }
        for &l in self.acks {
            let c = &mut crossings[l as usize];
            c.acks += self.flows;
            c.ack_bytes += self.flows * header_bytes(self.header) as u64;
        }
    }
}

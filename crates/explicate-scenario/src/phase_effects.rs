//! Warns where phase effects are likely (Floyd and Jacobson 1992): packets of similar flows reach a full drop-tail
//! queue in the same order in every round trip, so it always drops packets of the same flow.
//!
//! A random processing time prevents that, unless links before the queue are full too: then packets leave them at equal
//! intervals. Where some of them fill the queue's link exactly, the others find no room.

use std::collections::{BTreeMap, BTreeSet};

use explicate_core::channel::ChannelInit;
use explicate_core::qdisc::common::Limit;
use explicate_core::rng::Rng;
use explicate_core::units::Time;

use crate::document::{Place, some};
use crate::ends::Crossing;
use crate::graph::Graph;
use crate::model::{ChannelSpec, FlowGroup, Link, Queue, Scenario, Size, Start, Traffic};
use crate::parts::DEFAULT_QUEUE;
use crate::reader::Context;
use crate::routing::Routes;

/// Links fill another exactly if their rates differ from it by less than this share: they then shift by one packet in 100,000.
const EXACT: f64 = 1e-5;

/// The traffic of a full queue.
#[derive(Default)]
struct Port<'a> {
    /// Whether any of it is random, or passes a random element.
    random: bool,
    /// Whether any of it is random apart from processing times and starts, which full links before this one hide.
    random_when_full: bool,
    /// Flows by their round-trip time without queues: their number, and their groups.
    flows: BTreeMap<Time, (u64, Vec<&'a str>)>,
    /// First links of the flows.
    first: BTreeSet<usize>,
    /// First links that are the narrowest of their flow before this port, by their rate in bit/s.
    narrow: BTreeMap<u64, BTreeSet<usize>>,
}

impl<'a> Port<'a> {
    /// Flows of a group with this round-trip time.
    fn add_flows(&mut self, rtt: Time, count: u64, group: &'a str) {
        let (flows, groups) = self.flows.entry(rtt).or_default();
        *flows += count;
        if groups.last() != Some(&group) {
            groups.push(group);
        }
    }
    /// The first link of flows, and all their links before this port.
    fn add_way(&mut self, scenario: &Scenario, first: usize, before: &[u32]) {
        self.first.insert(first);
        let narrowest = before.iter().map(|l| scenario.links[*l as usize].rate.0).min();
        if let Some(narrow) = narrowest.filter(|rate| *rate == scenario.links[first].rate.0) {
            self.narrow.entry(narrow).or_default().insert(first);
        }
    }
    /// A number of links, and all first links of one rate, if that number of them together has exactly `rate`, the port's rate in
    /// bit/s, and the flows have more first links than that.
    fn in_step(&self, rate: u64) -> Option<(usize, &BTreeSet<usize>)> {
        self.narrow.iter().find_map(|(narrow, links)| {
            let ratio = rate as f64 / *narrow as f64;
            let fill = ratio.round() as usize;
            let exact = fill > 0 && (ratio / fill as f64 - 1.0).abs() < EXACT;
            (exact && links.len() >= fill && self.first.len() > fill).then_some((fill, links))
        })
    }
}

/// Warns of drop-tail bottlenecks where flows have equal round-trip times and nothing on their path is random. `processing`
/// returns whether a group's senders have a random processing time.
pub(crate) fn check(
    ctx: &Context<'_>,
    graph: &Graph,
    scenario: &Scenario,
    crossings: &[Crossing],
    routes: &mut Routes,
    processing: impl Fn(&FlowGroup) -> bool,
) {
    let full = |(link, crossing): (&Link, &Crossing)| {
        link.over.is_none() && link.queues().any(drops_tail) && crossing.wants_more_than(link.rate.0 as f64)
    };
    let full: Vec<bool> = scenario.links.iter().zip(crossings).map(full).collect();
    if !full.contains(&true) {
        return;
    }
    let ports = traffic(scenario, &full, routes, processing);
    warn_of_equal_round_trips(ctx, graph, scenario, &ports);
    warn_of_full_links(ctx, graph, scenario, &ports);
}

/// The traffic of each full queue, by its link; `processing` is as in [`check`].
fn traffic<'a>(
    scenario: &'a Scenario,
    full: &[bool],
    routes: &mut Routes,
    processing: impl Fn(&FlowGroup) -> bool,
) -> BTreeMap<usize, Port<'a>> {
    let chance: Vec<bool> =
        scenario.links.iter().map(|l| l.over.is_some() || l.channel.iter().any(|c| draws(l, c))).collect();
    let mut ports: BTreeMap<usize, Port<'a>> = BTreeMap::new();
    for group in &scenario.flows {
        let random = processing(group) || starts_or_sends_at_random(group);
        for (i, &ends) in group.ends.iter().enumerate() {
            let count = group.flows_of_pair(i);
            let (data, acks) = group.ways(ends, routes);
            let way = || data.iter().chain(&acks).map(|l| *l as usize);
            let by_chance = way().any(|l| chance[l]);
            let (random, random_when_full) = (random || by_chance, has_random_traffic(group) || by_chance);
            let rtt = way().map(|l| scenario.links[l].delay).fold(Time::ZERO, |sum, delay| sum + delay);
            let clouds_are_controlled = group.resolved.protocol.bears_plain_routers()
                && data.iter().any(|l| scenario.port(&scenario.links[*l as usize]).controls(group));
            for (hop, link) in data.iter().map(|l| *l as usize).enumerate().filter(|(_, l)| full[*l]) {
                if !to_drop_tail(&scenario.links[link], group) {
                    continue;
                }
                let port = ports.entry(link).or_default();
                port.random |= random;
                port.random_when_full |= random_when_full;
                // With explicit rates, losses are rare.
                if !scenario.links[link].controls(group) && !clouds_are_controlled {
                    port.add_flows(rtt, count, &group.name);
                    port.add_way(scenario, data[0] as usize, &data[..hop]);
                }
            }
        }
    }
    ports
}

fn warn_of_equal_round_trips(ctx: &Context<'_>, graph: &Graph, scenario: &Scenario, ports: &BTreeMap<usize, Port<'_>>) {
    let likely = ports.iter().filter(|(_, port)| !port.random).find_map(|(link, port)| {
        let (flows, groups) = port.flows.values().find(|(flows, _)| *flows > 1)?;
        Some((*link, flows, groups))
    });
    if let Some((link, flows, groups)) = likely {
        let (place, link) = (graph.port(link).at("queue"), &scenario.links[link].name);
        let groups: Vec<String> = groups.iter().map(|name| format!("`{name}`")).collect();
        let groups = some(&groups.iter().map(String::as_str).collect::<Vec<_>>());
        let what = format!(
            "phase effects are likely on {link}: {flows} flows ({groups}) have the same round-trip time, the queue is drop-tail and \
             nothing on their path is random, so some may lose far more than others"
        );
        ctx.warn(place, what, "set `processing = \"auto\"`, or give them random starts or different delays");
    }
}

fn warn_of_full_links(ctx: &Context<'_>, graph: &Graph, scenario: &Scenario, ports: &BTreeMap<usize, Port<'_>>) {
    let in_step = ports.iter().filter(|(_, port)| !port.random_when_full).find_map(|(link, port)| {
        let link = &scenario.links[*link];
        port.in_step(link.rate.0).map(|(fill, links)| (link, fill, links))
    });
    if let Some((link, fill, links)) = in_step {
        let names: Vec<&str> = links.iter().map(|l| scenario.links[*l].name.as_str()).collect();
        let number = if fill == 1 { "one".to_string() } else { fill.to_string() };
        let what = format!(
            "flows may move in step on {}: the queue is drop-tail, and {number} of the senders' links ({}) fill it exactly. Full links hide \
             random processing times, so other flows may find no room for a whole run",
            link.name,
            some(&names),
        );
        let place = links.first().map_or(Place::Unwritten("link"), |first| graph.port(*first).at("rate"));
        ctx.warn(place, what, "change the rates of these links by 0.1 %");
    }
}

/// Whether a group's packets enter a drop-tail queue of the port.
fn to_drop_tail(port: &Link, group: &FlowGroup) -> bool {
    let class = port.class_of(group.resolved.protocol.congestion_header());
    port.classes.get(class).map_or(port.queue.as_ref(), |c| c.queue.as_ref()).is_some_and(drops_tail)
}

/// Whether it drops packets only when it is full.
fn drops_tail(queue: &Queue) -> bool {
    queue.kind.name() == DEFAULT_QUEUE && Limit::of(&queue.values).limit.is_finite()
}

/// Whether a channel has random effects.
fn draws(link: &Link, channel: &ChannelSpec) -> bool {
    let params = channel.kind.params();
    let value = |name: &str| params.iter().any(|p| p.name == name).then(|| channel.values.get(params, name));
    if let Some(random) = value("random") {
        return random != 0.0;
    }
    let strengths: Vec<f64> = ["rate", "mean", "bit_error_rate"].into_iter().filter_map(value).collect();
    if !strengths.is_empty() && strengths.iter().all(|x| *x == 0.0) {
        return false;
    }
    let stages = channel.kind.build(ChannelInit { values: &channel.values, rate: link.rate, rng: Rng::stream(0, "") });
    stages.before.is_some() || stages.on_air.is_some() || stages.after.is_some()
}

fn starts_or_sends_at_random(group: &FlowGroup) -> bool {
    matches!(group.start, Start::Uniform { .. } | Start::Poisson { .. }) || has_random_traffic(group)
}

fn has_random_traffic(group: &FlowGroup) -> bool {
    match group.traffic {
        Traffic::Bulk | Traffic::Sized(Size::Fixed(_)) => false,
        Traffic::Sized(Size::Exponential(_) | Size::Pareto { .. }) => true,
        Traffic::OnOff { random, .. } => random,
        Traffic::Sessions { pause: (from, to), random, .. } => random || from != to,
    }
}

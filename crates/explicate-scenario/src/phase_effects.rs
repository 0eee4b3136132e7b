//! Warns where phase effects are likely (Floyd and Jacobson 1992): packets of similar flows reach a full drop-tail
//! queue in the same order in every round trip, so it always drops packets of the same flow.

use std::collections::BTreeMap;

use explicate_core::channel::ChannelInit;
use explicate_core::qdisc::common::Limit;
use explicate_core::registry;
use explicate_core::rng::Rng;
use explicate_core::units::Time;

use crate::document::some;
use crate::ends::Crossing;
use crate::model::{ChannelSpec, FlowGroup, Link, Queue, Scenario, Size, Start, Traffic};
use crate::parts::DEFAULT_QUEUE;
use crate::reader::Context;
use crate::routing::Routes;

/// The traffic of a full queue.
#[derive(Default)]
struct Port<'a> {
    /// Whether any of it is random, or passes a random element.
    random: bool,
    /// Flows by their round-trip time without queues: their number, and their groups.
    flows: BTreeMap<Time, (u64, Vec<&'a str>)>,
}

/// Warns of drop-tail bottlenecks where flows have equal round-trip times and nothing on their path is random. `processing`
/// returns whether a group's senders have a random processing time.
pub(crate) fn check(
    ctx: &Context<'_>,
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
    let chance: Vec<bool> =
        scenario.links.iter().map(|l| l.over.is_some() || l.channel.iter().any(|c| draws(l, c))).collect();
    let mut ports: BTreeMap<usize, Port<'_>> = BTreeMap::new();
    for group in &scenario.flows {
        let random = processing(group) || starts_or_sends_at_random(group);
        let pairs = group.ends.len() as u64;
        for (i, &(from, to)) in group.ends.iter().enumerate() {
            let count = group.count as u64 / pairs + u64::from((i as u64) < group.count as u64 % pairs);
            let (data, acks) = match &group.via {
                Some(via) => via.clone(),
                None => (routes.path(from, to).unwrap_or_default(), routes.path(to, from).unwrap_or_default()),
            };
            let way = || data.iter().chain(&acks).map(|l| *l as usize);
            let random = random || way().any(|l| chance[l]);
            let rtt = way().map(|l| scenario.links[l].delay).fold(Time::ZERO, |sum, delay| sum + delay);
            let clouds_are_controlled = group.resolved.protocol.bears_plain_routers()
                && data.iter().any(|l| controls(scenario.port(&scenario.links[*l as usize]), group));
            for link in data.iter().map(|l| *l as usize).filter(|l| full[*l]) {
                if !to_drop_tail(&scenario.links[link], group) {
                    continue;
                }
                let port = ports.entry(link).or_default();
                port.random |= random;
                // With explicit rates, losses are rare.
                if !controls(&scenario.links[link], group) && !clouds_are_controlled {
                    let (flows, groups) = port.flows.entry(rtt).or_default();
                    *flows += count;
                    if groups.last() != Some(&group.name.as_str()) {
                        groups.push(&group.name);
                    }
                }
            }
        }
    }
    let likely = ports.iter().filter(|(_, port)| !port.random).find_map(|(link, port)| {
        let (flows, groups) = port.flows.values().find(|(flows, _)| *flows > 1)?;
        Some((&scenario.links[*link].name, flows, groups))
    });
    if let Some((link, flows, groups)) = likely {
        let groups: Vec<String> = groups.iter().map(|name| format!("`{name}`")).collect();
        let groups = some(&groups.iter().map(String::as_str).collect::<Vec<_>>());
        ctx.warn(format!(
            "phase effects are likely on {link}: {flows} flows ({groups}) have the same round-trip time, the queue is drop-tail and \
             nothing on their path is random, so some may lose far more than others; set `processing = \"auto\"`, or give them \
             random starts or different delays"
        ));
    }
}

/// Whether a group's packets enter a drop-tail queue of the port.
fn to_drop_tail(port: &Link, group: &FlowGroup) -> bool {
    let class = port.class_of(group.resolved.protocol.congestion_header());
    port.classes.get(class).map_or(port.queue.as_ref(), |c| c.queue.as_ref()).is_some_and(drops_tail)
}

/// Whether the port has a controller that sets the rate of a group.
fn controls(port: &Link, group: &FlowGroup) -> bool {
    let protocol = group.resolved.protocol;
    let routers = port.routers_of(port.class_of(protocol.congestion_header()));
    registry::controller(protocol).is_some_and(|mine| routers.iter().any(|r| r.protocol.name() == mine.name()))
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
    let start = matches!(group.start, Start::Uniform { .. } | Start::Poisson { .. });
    let traffic = match group.traffic {
        Traffic::Bulk | Traffic::Sized(Size::Fixed(_)) => false,
        Traffic::Sized(Size::Exponential(_) | Size::Pareto { .. }) => true,
        Traffic::OnOff { random, .. } => random,
        Traffic::Sessions { pause: (from, to), random, .. } => random || from != to,
    };
    start || traffic
}

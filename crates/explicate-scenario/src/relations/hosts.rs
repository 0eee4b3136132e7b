//! Hosts whose own links are the slowest of a path, with unlimited queues. A sender that backs off after losses only has none
//! there, and fills the queue until the end of the run.

use std::collections::BTreeSet;

use explicate_core::endpoint::{HostQueue, Params};
use explicate_core::units::Time;

use crate::document::Data;
use crate::ends::Crossing;
use crate::graph::Graph;
use crate::model::{FlowGroup, Scenario, Size, Start, Traffic};
use crate::reader::{Context, Reader};
use crate::routing::Routes;

/// Warns of such links, and returns them.
pub(crate) fn hosts(
    ctx: &Context<'_>,
    reader: &Reader<'_>,
    graph: &Graph,
    scenario: &Scenario,
    crossings: &[Crossing],
    phases: &mut [Routes],
) -> BTreeSet<usize> {
    let Some(routes) = phases.first_mut() else { return BTreeSet::new() };
    let mut slow = BTreeSet::new();
    for group in scenario.flows.iter().filter(|group| grows(group, scenario.duration)) {
        for &ends in &group.ends {
            let (data, _) = group.ways(ends, routes);
            if let Some((&first, rest)) = data.split_first()
                && fills(graph, scenario, group, first, rest)
                && crossings[first as usize].wants_more_than(0.9 * scenario.links[first as usize].rate.0 as f64)
            {
                slow.insert(first as usize);
            }
        }
    }
    warn(ctx, reader, graph, scenario, &slow);
    slow
}

/// Whether the flows of a group fill the queue of the first link of their way.
fn fills(graph: &Graph, scenario: &Scenario, group: &FlowGroup, first: u32, rest: &[u32]) -> bool {
    let link = &scenario.links[first as usize];
    let narrowest = rest.iter().map(|l| scenario.links[*l as usize].rate).min();
    let is_slowest = narrowest.is_some_and(|rate| link.rate <= rate);
    is_slowest && link.is_unqueued() && !link.controls(group) && !pushes_back(graph, scenario, group, first as usize)
}

/// Whether the queue of the flows' host holds them back. It needs a line of constant rate.
fn pushes_back(graph: &Graph, scenario: &Scenario, group: &FlowGroup, first: usize) -> bool {
    let link = &scenario.links[first];
    let mut channels = graph.props[graph.links[first].props].props.channel.iter().flatten();
    Params::of(&group.values).host_queue != HostQueue::None
        && link.shares_with.is_none()
        && channels.all(|c| c.stages(link.rate).service.is_none())
}

/// One warning for all such links, at the first.
fn warn(ctx: &Context<'_>, reader: &Reader<'_>, graph: &Graph, scenario: &Scenario, slow: &BTreeSet<usize>) {
    let Some(&first) = slow.first() else { return };
    let (link, draft) = (&scenario.links[first], &graph.links[first]);
    let host = &graph.nodes[link.from];
    let others = match slow.len() {
        1 => String::new(),
        2 => " (and of another host)".to_string(),
        n => format!(" (and of {} other hosts)", n - 1),
    };
    let generated = match reader.table.get("topology").map(|node| &node.data) {
        Some(Data::Table(table)) => Some(table.text("kind").unwrap_or("dumbbell")),
        _ if graph.media.is_empty() && reader.table.get("node").is_none() => Some("dumbbell"),
        _ => None,
    };
    let there = match generated {
        Some("explicit") | None => format!("for {}", link.name),
        Some("star") => "in `topology.link`".to_string(),
        Some(_) => "in `topology.access`".to_string(),
    };
    let what = format!(
        "the queue of host {host}{others} is unlimited and its link {} is the slowest of the path: packets may wait there \
         for seconds, without a loss",
        link.name
    );
    let write = format!("write `queue = {{ kind = \"droptail\", limit = \"1bdp\" }}` {there}");
    ctx.warn(graph.props[draft.props].props.at("queue"), what, write);
}

/// Whether only losses bound what a group sends.
fn grows(group: &FlowGroup, duration: Time) -> bool {
    let endless = match group.traffic {
        Traffic::Bulk | Traffic::OnOff { .. } | Traffic::Sessions { .. } => true,
        Traffic::Sized(Size::Fixed(bytes)) => bytes as f64 > 1e6,
        Traffic::Sized(_) => false,
    };
    let starts = match group.start {
        Start::At(at) => at,
        Start::Spread { from, .. } | Start::Uniform { from, .. } | Start::Poisson { from, .. } => from,
    };
    endless
        && starts < duration
        && group.values.number("rate").is_none()
        && group.values.number("receiver_window").is_none()
}

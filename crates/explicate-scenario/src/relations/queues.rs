//! Queues: parameters that make each other useless, and limits that hold no packet. Disciplines state theirs beside their parameters
//! ([`explicate_core::qdisc::QdiscKind::conflicts`]).

use std::collections::BTreeMap;

use explicate_core::params::Conflict;
use explicate_core::qdisc::ResolvedQueue;

use crate::document::{Place, some};
use crate::ends::Crossing;
use crate::graph::Graph;
use crate::model::{Link, Queue, Scenario};
use crate::params::Chosen;
use crate::parts;
use crate::props::Props;
use crate::reader::Context;

/// The queues of a port with what was written for them, and the share of the line that each has.
fn of_port<'a>(link: &'a Link, props: &'a Props) -> Vec<(&'a Queue, Option<&'a parts::Queue>, f64)> {
    let own = link.queue.iter().map(|queue| (queue, props.queue.as_ref(), 1.0));
    let sum: f64 = link.classes.iter().map(|class| class.weight).sum();
    let of_classes = link.classes.iter().zip(props.classes.iter().flatten()).filter_map(|(class, written)| {
        Some((class.queue.as_ref()?, written.queue.as_ref().or(props.queue.as_ref()), class.weight / sum))
    });
    own.chain(of_classes).collect()
}

/// All ports, with what crosses them. The links of a wireless station share one.
fn ports<'a>(
    graph: &'a Graph,
    scenario: &'a Scenario,
    crossings: &[Crossing],
) -> impl Iterator<Item = (&'a Link, &'a Props, Crossing)> {
    let mut at_station: BTreeMap<(usize, usize), Crossing> = BTreeMap::new();
    let mut wired = Vec::new();
    for ((link, draft), crossing) in scenario.links.iter().zip(&graph.links).zip(crossings) {
        match link.over {
            Some(over) => {
                let sum = at_station.entry((over.medium, over.from)).or_default();
                *sum = sum.with(crossing);
            }
            None => wired.push((link, &graph.props[draft.props].props, *crossing)),
        }
    }
    let of_stations = at_station.into_iter().map(|((medium, station), crossing)| {
        let port = &scenario.media[medium].stations[station].interface;
        (port, &graph.media[medium].stations[station].props, crossing)
    });
    wired.into_iter().chain(of_stations)
}

/// Parameters of disciplines that make each other useless, and limits that hold no packet, or one. A port that only
/// acknowledgements cross is not looked at.
pub(crate) fn queues(ctx: &Context<'_>, graph: &Graph, scenario: &Scenario, crossings: &[Crossing]) {
    let mut found: Vec<(Place, &str, Conflict, Vec<&str>)> = Vec::new();
    for (link, props, crossing) in ports(graph, scenario, crossings) {
        let Some(largest) = crossing.largest() else { continue };
        let full = crossing.wants_more_than(0.99 * link.rate.0 as f64);
        for (queue, given, share) in of_port(link, props) {
            let resolved = ResolvedQueue {
                values: &queue.values,
                capacity: share * link.rate.bytes_per_sec(),
                mean_packet: queue.mean_packet,
            };
            let room = room(queue, largest, full);
            let conflicts = if room.is_some() { room.into_iter().collect() } else { queue.kind.conflicts(&resolved) };
            for conflict in conflicts {
                let place = place_of(given, props, &conflict);
                let known = found.iter_mut().find(|(at, kind, known, _)| {
                    (*at, *kind, known.params) == (place, queue.kind.name(), conflict.params)
                });
                match known {
                    Some((.., names)) if names.contains(&link.name.as_str()) => {}
                    Some((.., names)) => names.push(&link.name),
                    None => found.push((place, queue.kind.name(), conflict, vec![&link.name])),
                }
            }
        }
    }
    for (place, kind, conflict, names) in found {
        let names = some(&names);
        let Conflict { params, what, write, refused } = conflict;
        match refused {
            true => ctx.error(place, format!("the {kind} queue of {names}: {what}; {write}")),
            false if params[1] == ROOM => ctx.warn(place, format!("the buffer of {names} {what}"), write),
            false => ctx.warn(place, format!("the {kind} queue of {names}: {what}"), write),
        }
    }
}

/// The other side of a limit that holds no packet, or one.
const ROOM: &str = "packet";

/// A limit that does not hold the longest packet, or only one where a sender would fill more.
fn room(queue: &Queue, largest: f64, full: bool) -> Option<Conflict> {
    let params = queue.kind.params();
    let limit = queue.values.get(params, params.iter().find(|p| p.name == "limit")?.name);
    if limit < largest {
        let what = format!(
            "is shorter than one packet: it is {limit:.0}B, and packets have up to {largest:.0}B, so they are dropped unless the \
             line is idle"
        );
        return Some(Conflict::new(["limit", ROOM], what, "write a `limit` of some packets, such as \"10pkt\""));
    }
    (limit < 2.0 * largest && full).then(|| {
        let what = "holds one packet: packets of one burst drop each other, and how many do depends on `processing`";
        Conflict::new(["limit", ROOM], what.to_string(), "write a `limit` of more packets unless that is the question")
    })
}

/// Where the first parameter of a conflict is written, else the other, else the queue or the link.
fn place_of(queue: Option<&parts::Queue>, props: &Props, conflict: &Conflict) -> Place {
    let chosen: &[Chosen] = match queue {
        Some(parts::Queue::Kind(_, chosen)) => chosen,
        _ => &[],
    };
    let of = |name: &str| chosen.iter().find(|c| c.param.name == name).map(|c| c.place);
    let [first, second] = conflict.params;
    of(first).or_else(|| of(second)).unwrap_or_else(|| props.at("queue"))
}

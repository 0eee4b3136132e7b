//! Links and media of the model: the controllers, classes, channels and queues of their ports.

use std::collections::{BTreeMap, BTreeSet};

use explicate_core::params::Values;
use explicate_core::registry;
use explicate_core::units::{Rate, Time};

use crate::classes;
use crate::document::Place;
use crate::ends::Crossing;
use crate::flows::Group;
use crate::graph::{Draft, Graph, MediumDraft, StationDraft};
use crate::model::{ChannelSpec, Class, Link, Match, Medium, Over, Queue, RouterSpec, Scenario, Station};
use crate::params::{self, Given};
use crate::parts::{self, INTERFACE_LIMIT, LINK_LIMIT, Router};
use crate::props::Props;
use crate::quantity::Length;
use crate::reader::Context;

/// Packet length of links without traffic, bytes.
const IDLE_PACKET: f64 = 1500.0;

/// Reports weights that move where there are no classes for them.
pub(crate) fn moving_weights(ctx: &Context<'_>, graph: &Graph) {
    for props in graph.props.iter().map(|shared| &shared.props) {
        if props.kappa() > 0.0 && props.classes.as_ref().map_or(0, Vec::len) != 2 {
            let message = "`kappa` moves the weights of two `classes`, `explicit` and `other`; add them";
            ctx.error(props.place.unwrap_or(Place::START), message);
        }
        if props.by_flows() && props.classes.as_ref().is_some_and(|classes| !classes.is_empty()) {
            let message = "`share_by_flows` makes its own classes, whose weights move; remove it or `classes`";
            ctx.error(props.place.unwrap_or(Place::START), message);
        }
    }
}

/// The controllers that the flows need, with the parameters from their presets; of two values the first is used.
fn controllers(groups: &[Group]) -> Vec<RouterSpec> {
    let mut all: Vec<RouterSpec> = Vec::new();
    for resolved in groups.iter().map(|g| &g.resolved) {
        let Some(protocol) = registry::controller(resolved.protocol) else { continue };
        let known = all.iter().position(|spec| spec.protocol.name() == protocol.name());
        let at = known.unwrap_or_else(|| {
            all.push(RouterSpec { protocol, values: Values::default() });
            all.len() - 1
        });
        let values = &mut all[at].values;
        for (name, value) in resolved.router {
            let param = protocol.router_params().iter().find(|p| p.name == *name);
            if let Some(param) = param.filter(|p| !values.given().iter().any(|(given, _)| *given == p.name)) {
                values.set(param, *value);
            }
        }
    }
    all
}

/// Reports controllers at nodes that have none.
pub(crate) fn bridges(ctx: &Context<'_>, graph: &Graph) {
    let stations = graph.media.iter().flat_map(|m| m.stations.iter().map(|s| (s.node, &s.props)));
    let links = graph.links.iter().map(|l| (l.from, &graph.props[l.props].props));
    let controls = |router: &Option<Router>| matches!(router, Some(Router::Of(..)));
    for (node, props) in links.chain(stations).filter(|(node, _)| graph.bridges.contains(node)) {
        if controls(&props.router) || props.classes.iter().flatten().any(|c| controls(&c.router)) {
            let message = "is a bridge and has no controllers; remove its `router`, or make it a router";
            ctx.error(props.place.unwrap_or(Place::START), format!("`{}` {message}", graph.nodes[node]));
            return;
        }
    }
}

/// Links and media except for their queues, which depend on the flows' round-trip times.
pub(crate) fn links_and_media(ctx: &Context<'_>, graph: &Graph, groups: &[Group]) -> (Vec<Link>, Vec<Medium>) {
    let present = controllers(groups);
    let routers = |router: &Option<Router>, node: usize| -> Vec<RouterSpec> {
        match router {
            None | Some(Router::Auto) if graph.bridges.contains(&node) => Vec::new(),
            None | Some(Router::Auto) => present.clone(),
            Some(Router::None) => Vec::new(),
            Some(Router::Of(protocol, chosen)) => {
                vec![RouterSpec { protocol: *protocol, values: params::values(chosen) }]
            }
        }
    };
    // The owner of a port: a link, or an interface to a medium.
    let link = |name: String, (from, to): (usize, usize), delay: Time, props: &Props, rate: Rate| {
        let channels = props.channel.iter().flatten();
        let written_classes = || props.classes.iter().flatten();
        let class = |class: &classes::Class| {
            let written = class.router.clone().or_else(|| props.router.clone());
            let mut routers = routers(&written, from);
            if let None | Some(Router::Auto) = written {
                // Those that answer packets of the class.
                let apart = written_classes().any(|c| c.matches == Match::Explicit);
                routers.retain(|r| (r.protocol.congestion_header() && apart) == (class.matches == Match::Explicit));
            }
            Class { matches: class.matches, queue: None, routers, weight: class.weight }
        };
        let classes: Vec<Class> = written_classes().map(class).collect();
        let (capacity, capacity_steps) = props.configured_capacity(rate);
        Link {
            name,
            part: "",
            from,
            to,
            rate,
            delay,
            capacity,
            capacity_steps,
            measured: props.measured_capacity(),
            shares_with: None,
            queue: None,
            routers: if classes.is_empty() { routers(&props.router, from) } else { Vec::new() },
            classes,
            kappa: props.kappa(),
            by_flows: props.by_flows(),
            channel: channels.map(|c| ChannelSpec { kind: c.kind, values: c.values() }).collect(),
            clock_tick: props.clock_tick(),
            scone: props.scone(),
            over: None,
        }
    };
    let medium = |draft: &MediumDraft| {
        let rate = draft.kind.rate(&draft.values);
        let station = |s: &StationDraft| {
            let name = format!("{}/{}", draft.name, graph.nodes[s.node]);
            Station { node: s.node, at: s.at, interface: link(name, (s.node, s.node), Time::ZERO, &s.props, rate) }
        };
        Medium {
            name: draft.name.clone(),
            kind: draft.kind,
            values: draft.values.clone(),
            stations: draft.stations.iter().map(station).collect(),
            interferers: draft.interferers.clone(),
        }
    };
    let media: Vec<Medium> = graph.media.iter().map(medium).collect();
    let rates: Vec<Rate> = graph.props.iter().map(|s| s.props.nominal(s.rate)).collect();
    let of_draft = |draft: &Draft| {
        let props = &graph.props[draft.props].props;
        let mut link = link(draft.name.clone(), (draft.from, draft.to), draft.delay, props, rates[draft.props]);
        link.part = draft.part;
        if let Some((medium, from, to)) = draft.over {
            link.over = Some(Over { medium, from, to, rate: props.rate });
            link.capacity = media[medium].stations[from].interface.capacity;
            link.routers = Vec::new();
        }
        link
    };
    let mut links: Vec<Link> = graph.links.iter().map(of_draft).collect();
    share_lines(ctx, graph, &mut links);
    (links, media)
}

/// Pairs the directions of half-duplex links.
fn share_lines(ctx: &Context<'_>, graph: &Graph, links: &mut [Link]) {
    let props = |link: usize| &graph.props[graph.links[link].props].props;
    let mut between: BTreeMap<(usize, usize), Vec<usize>> = BTreeMap::new();
    if graph.props.iter().any(|shared| shared.props.half_duplex()) {
        for (index, link) in links.iter().enumerate() {
            between.entry((link.from, link.to)).or_default().push(index);
        }
    }
    for index in 0..links.len() {
        if !props(index).half_duplex() || links[index].shares_with.is_some() {
            continue;
        }
        let back = between.get(&(links[index].to, links[index].from)).into_iter().flatten().copied();
        match back.into_iter().find(|&twin| links[twin].shares_with.is_none()) {
            Some(twin) => (links[index].shares_with, links[twin].shares_with) = (Some(twin), Some(index)),
            None => {
                let place = props(index).place.unwrap_or(Place::START);
                let message = "says `half_duplex`, but no link leads back; add `duplex = true`";
                ctx.error(place, format!("the link `{}` {message}", links[index].name));
            }
        }
    }
}

/// Sets the queues of all ports; a length in packets or products depends on the flows that cross the port.
pub(crate) fn fill_queues(ctx: &Context<'_>, graph: &Graph, scenario: &mut Scenario, crossings: &[Crossing]) {
    let (standard, interface) = (parts::Queue::standard(LINK_LIMIT), parts::Queue::standard(INTERFACE_LIMIT));
    let mut reported = BTreeSet::new();
    let mut at_station: BTreeMap<(usize, usize), Crossing> = BTreeMap::new();
    for ((link, draft), crossing) in scenario.links.iter_mut().zip(&graph.links).zip(crossings) {
        if let Some(over) = link.over {
            let sum = at_station.entry((over.medium, over.from)).or_default();
            *sum = sum.with(crossing);
            continue;
        }
        let auto = (!graph.host[draft.from]).then_some(&standard);
        let rtt = crossing.base_rtt().unwrap_or(link.delay + link.delay);
        fill(ctx, &mut reported, link, &graph.props[draft.props].props, auto, (crossing, rtt));
    }
    for (m, medium) in scenario.media.iter_mut().enumerate() {
        for (i, station) in medium.stations.iter_mut().enumerate() {
            let crossing = at_station.get(&(m, i)).copied().unwrap_or_default();
            let rtt = crossing.base_rtt().unwrap_or(Time::ZERO);
            let props = &graph.media[m].stations[i].props;
            fill(ctx, &mut reported, &mut station.interface, props, Some(&interface), (&crossing, rtt));
        }
    }
}

/// Sets the queues of a port; `auto` is the meaning of "auto", and `None` is unlimited.
fn fill(
    ctx: &Context<'_>,
    reported: &mut BTreeSet<Place>,
    link: &mut Link,
    props: &Props,
    auto: Option<&parts::Queue>,
    (crossing, rtt): (&Crossing, Time),
) {
    let mean_packet = crossing.mean_packet().unwrap_or(IDLE_PACKET);
    let bdp = link.rate.0 as f64 * rtt.0 as f64 / 8e9;
    let mut fill = |written: &parts::Queue| {
        let meant = if let parts::Queue::Auto = written { auto? } else { written };
        let parts::Queue::Kind(kind, chosen) = meant else { return None };
        let mut values = params::values(chosen);
        for c in chosen {
            let Given::Length(length) = c.given else { continue };
            let bytes = match length {
                Length::Bytes(x) => x,
                Length::Packets(x) => x * mean_packet,
                Length::Bdp(x) => x * bdp,
            };
            // One message per place, not one per generated link.
            if !(c.param.min..=c.param.max).contains(&bytes) && reported.insert(c.place) {
                params::in_bounds(ctx, c.place, c.param, bytes);
            }
            values.set(c.param, bytes);
        }
        Some(Queue { kind: *kind, values, mean_packet })
    };
    let of_link = props.queue.as_ref().unwrap_or(&parts::Queue::Auto);
    if link.classes.is_empty() {
        link.queue = fill(of_link);
    }
    for (class, written) in link.classes.iter_mut().zip(props.classes.iter().flatten()) {
        class.queue = fill(written.queue.as_ref().unwrap_or(of_link));
    }
}

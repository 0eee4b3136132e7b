//! Settings that nothing uses: of links that no such packet crosses, of flows that have no use for them, and what comes after
//! the end of the run.

use std::collections::{BTreeMap, BTreeSet};

use explicate_core::endpoint::Params;
use explicate_core::params::Param;
use explicate_core::registry;
use explicate_core::scone::Advises;
use explicate_core::units::Time;

use crate::document::some;
use crate::ends::Crossing;
use crate::graph::Graph;
use crate::model::{FlowGroup, Link, Match, Scenario};
use crate::needs::{self, Part};
use crate::parts::{DEFAULT_QUEUE, Queue, Router};
use crate::props::{Delay, Props};
use crate::quantity::{self, show};
use crate::reader::{Context, Reader};
use crate::routing::Routes;

mod channels;
mod flows;

pub(crate) use self::flows::flows;

fn written(time: Time) -> String {
    show(time.0 as f64, &quantity::TIME)
}

fn seconds(x: f64) -> String {
    written(Time::from_secs_f64(x))
}

/// Whether nothing is returned to the flows of a group.
pub(crate) fn one_way(group: &FlowGroup) -> bool {
    !group.resolved.protocol.needs_feedback() && group.resolved.recovery.build_one_way().is_some()
}

/// What crosses a link.
#[derive(Clone, Default)]
pub(crate) struct Load {
    data: bool,
    acks: bool,
    /// Packets with a congestion header.
    headers: bool,
    /// Flows that a controller answers.
    controlled: bool,
    /// Data of flows that follow advice.
    follows: bool,
}

/// What crosses each link, at any time.
pub(crate) fn loads(scenario: &Scenario, phases: &mut [Routes]) -> Vec<Load> {
    let mut loads = vec![Load::default(); scenario.links.len()];
    for group in &scenario.flows {
        let protocol = group.resolved.protocol;
        let controlled = registry::controller(protocol).is_some();
        let returns = !one_way(group);
        let follows = returns && !protocol.explicit() && Params::of(&group.values).scone;
        for routes in phases.iter_mut() {
            for &ends in &group.ends {
                let (data, acks) = group.ways(ends, routes);
                for link in data {
                    let load = &mut loads[link as usize];
                    load.data = true;
                    load.headers |= protocol.congestion_header();
                    load.controlled |= controlled;
                    load.follows |= follows;
                }
                for link in acks.into_iter().filter(|_| returns) {
                    let load = &mut loads[link as usize];
                    load.acks = true;
                    load.headers |= protocol.congestion_header();
                }
            }
        }
    }
    loads
}

/// Settings of links and stations.
pub(crate) fn links(
    ctx: &Context<'_>,
    reader: &Reader<'_>,
    graph: &Graph,
    scenario: &Scenario,
    crossings: &[Crossing],
    loads: &[Load],
) {
    // Links that share their settings, or their interface.
    let mut sharing: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    let mut stations: BTreeMap<(usize, usize), Vec<usize>> = BTreeMap::new();
    for (number, draft) in graph.links.iter().enumerate() {
        sharing.entry(draft.props).or_default().push(number);
        if let Some((medium, from, _)) = draft.over {
            stations.entry((medium, from)).or_default().push(number);
        }
    }
    let mut seen = BTreeSet::new();
    for (shared, links) in &sharing {
        let (props, rate) = (&graph.props[*shared].props, graph.props[*shared].rate);
        channels::check(ctx, scenario, props, links, crossings, loads);
        if graph.links[links[0]].over.is_none() {
            port(ctx, scenario, props, links, &scenario.links[links[0]], loads);
            if props.rate_is_replaced(rate) {
                let what = "`rate` has no effect beside a channel with a rate of its own";
                ctx.unused(props.at("rate"), "rate", what, "remove one of them");
            }
        }
    }
    for (medium, station) in stations.keys() {
        let props = &graph.media[*medium].stations[*station].props;
        // Stations share the settings of their medium: an entry of its own is said once.
        if seen.insert(props.place) {
            let all: Vec<usize> = stations
                .iter()
                .filter(|((m, s), _)| m == medium && graph.media[*m].stations[*s].props.place == props.place)
                .flat_map(|(_, links)| links.iter().copied())
                .collect();
            port(ctx, scenario, props, &all, &scenario.media[*medium].stations[*station].interface, loads);
        }
    }
    let generator = &graph.generator;
    if let Some(Delay::Range(..)) = graph.props.get(1).and_then(|access| access.props.delay)
        && generator.pairs == 1
        && generator.cross < 2
    {
        let what = "the range of `delay` has no effect, because there is one pair of hosts: its first end counts";
        ctx.unused(graph.props[1].props.at("delay"), "delay", what, "write one time, or more `pairs`");
    }
    if generator.cross > 1 {
        let first = generator.beside(0, 0).0;
        let hosts = first..first + 2 * generator.cross * generator.hops;
        if !scenario.flows.iter().any(|g| g.ends.iter().any(|(from, to)| hosts.contains(from) || hosts.contains(to))) {
            let what = "`cross` makes hosts, but no flow begins or ends there";
            ctx.unused(
                reader.at(&["topology", "cross"]),
                "cross",
                what,
                "add [[flows]] with `path = \"cross\"`, or remove it",
            );
        }
    }
}

/// Names of links in a message.
fn names(scenario: &Scenario, links: &[usize]) -> String {
    some(&links.iter().map(|link| scenario.links[*link].name.as_str()).collect::<Vec<_>>())
}

/// Settings of a port, `made`, or of several with the same settings.
fn port(ctx: &Context<'_>, scenario: &Scenario, props: &Props, links: &[usize], made: &Link, loads: &[Load]) {
    let any = |what: fn(&Load) -> bool| links.iter().any(|link| what(&loads[*link]));
    let there = names(scenario, links);
    let classes = props.classes.as_deref().unwrap_or_default();
    let controllers = made.controllers().next().is_some();
    if let Some(Router::Of(protocol, _)) = &props.router
        && props.scone() != Some(Advises::Fair)
        && any(|load| load.data)
        && !any(|load| load.controlled)
    {
        let name = protocol.name();
        let what = format!("the {name} router of {there} has nothing to do: no flow with a router's feedback crosses");
        ctx.unused(
            props.at("router"),
            "router",
            what,
            format!("write `protocol = {name:?}` for a flow there, or remove it"),
        );
    }
    // Disciplines that drop at the tail do not know the capacity, and have no timers.
    let plain = made.queues().all(|queue| queue.kind.name() == DEFAULT_QUEUE);
    if props.sets_capacity(made.rate) && !controllers && plain {
        let what = format!("`capacity` has no effect on {there}: no router and no queue there uses it");
        ctx.unused(props.at("capacity"), "capacity", what, "remove it, or use a protocol with a router");
    }
    if props.clock_tick() > Time::ZERO && !controllers && plain {
        let what = format!("`clock_tick` has no effect on {there}: no router and no queue there has a timer");
        ctx.unused(props.at("clock_tick"), "clock_tick", what, "remove it, or use a protocol with a router");
    }
    if props.by_flows() && !controllers {
        let what = format!("`share_by_flows` has no effect on {there}: no router there tells flows apart");
        ctx.unused(props.at("share_by_flows"), "share_by_flows", what, "remove it, or use a protocol with a router");
    }
    if props.scone().is_some() && any(|load| load.data) && !any(|load| load.follows) {
        let what = format!("`scone` has no effect on {there}: no flow there follows advice");
        let write = "write `params = { scone = true }` for a flow there, or remove it";
        ctx.unused(props.at("scone"), "scone", what, write);
    }
    let own = [
        (
            "queue",
            matches!(props.queue, Some(Queue::Unlimited | Queue::Kind(..))),
            classes.iter().all(|c| c.queue.is_some()),
        ),
        (
            "router",
            matches!(props.router, Some(Router::None | Router::Of(..))),
            classes.iter().all(|c| c.router.is_some()),
        ),
    ];
    for (key, _, _) in own.iter().filter(|(_, given, all)| !classes.is_empty() && *given && *all) {
        let what = format!("`{key}` has no effect on {there}, because every one of its `classes` has its own");
        ctx.unused(props.at(key), key, what, format!("remove it, or the `{key}` of a class"));
    }
    if classes.len() > 1 && classes.iter().any(|c| c.matches == Match::Explicit) && !any(|load| load.headers) {
        let what = format!("no packet is of the class `explicit` on {there}: no flow there has a congestion header");
        ctx.unused(props.at("classes"), "classes", what, "use an explicit protocol, or remove the classes");
    }
}

/// Parameters of controllers and media.
pub(crate) fn params(ctx: &Context<'_>, graph: &Graph, scenario: &Scenario, crossings: &[Crossing]) {
    let stations = graph.media.iter().flat_map(|m| m.stations.iter().map(|s| &s.props));
    let mut seen = BTreeSet::new();
    for props in graph.props.iter().map(|shared| &shared.props).chain(stations) {
        let routers = props.router.iter().chain(props.classes.iter().flatten().filter_map(|c| c.router.as_ref()));
        for router in routers {
            let Router::Of(protocol, chosen) = router else { continue };
            let given = |name: &str| chosen.iter().find(|c| c.param.name == name).map(|c| c.place);
            if !chosen.first().is_none_or(|c| seen.insert(c.place)) {
                continue;
            }
            let declared: Vec<&'static Param> = protocol.router_params().iter().collect();
            let title = format!("the {} router", protocol.name());
            needs::check(ctx, Part::Router, &title, &declared, &crate::params::values(chosen), &given);
        }
    }
    for (number, medium) in graph.media.iter().enumerate() {
        let kind = medium.kind.name();
        let declared: Vec<&'static Param> = medium.kind.params().iter().collect();
        let given = |name: &str| medium.chosen.iter().find(|c| c.param.name == name).map(|c| c.place);
        let title = format!("`{}`", medium.name);
        needs::check(ctx, Part::Medium(kind), &title, &declared, &medium.values, &given);
        let longest =
            scenario.links.iter().zip(crossings).filter(|(link, _)| link.over.is_some_and(|o| o.medium == number));
        let longest = longest.filter_map(|(_, crossing)| crossing.largest()).fold(0.0, f64::max);
        if let (Some(place), Some(threshold)) = (given("rts_threshold"), medium.values.number("rts_threshold"))
            && longest > 0.0
            && threshold.is_finite()
            && threshold >= longest + explicate_core::medium::dcf::FRAMING as f64
        {
            let what =
                format!("no frame of {title} is announced by RTS: none is longer than `rts_threshold` ({threshold}B)");
            ctx.unused(place, "rts_threshold", what, "write a smaller one, or remove it");
        }
        if let (Some(place), Some(_), true) =
            (given("energy_detect"), medium.values.number("energy_detect"), medium.interferers.is_empty())
        {
            let what = format!("`energy_detect` of {title} has no effect without an interferer");
            ctx.unused(place, "energy_detect", what, "add [[medium.interferer]], or remove it");
        }
    }
}

/// Changes of routes that change no flow's, and variables that nothing has.
pub(crate) fn run(ctx: &Context<'_>, reader: &Reader<'_>, scenario: &Scenario, phases: &mut [Routes]) {
    for phase in 1..phases.len() {
        if scenario.reroutes[phase - 1].at >= scenario.duration {
            break; // said elsewhere
        }
        let (before, after) = phases.split_at_mut(phase);
        let (Some(before), Some(after)) = (before.last_mut(), after.first_mut()) else { continue };
        let same = |group: &FlowGroup, before: &mut Routes, after: &mut Routes| {
            group.via.is_some() || group.ends.iter().all(|&ends| group.ways(ends, before) == group.ways(ends, after))
        };
        if scenario.flows.iter().all(|group| same(group, before, after)) {
            let index = (phase - 1).to_string();
            let at = written(scenario.reroutes[phase - 1].at);
            let what = format!("the change of routes at {at} changes the route of no flow");
            let write = "write other links in `without`, or remove it";
            ctx.unused(reader.at(&["reroute", &index, "without"]), "without", what, write);
        }
    }
    if scenario.sampling.every.is_none() {
        return;
    }
    let controllers = || scenario.links.iter().flat_map(|link| scenario.port(link).controllers());
    let agents = controllers().any(|spec| !spec.protocol.agent_params().is_empty())
        || scenario.flows.iter().any(|g| !g.resolved.protocol.agent_params().is_empty());
    // Variables of controllers, of queue disciplines, and of media.
    let ports = controllers().next().is_some()
        || !scenario.media.is_empty()
        || scenario.links.iter().any(|link| scenario.port(link).scone.is_some())
        || scenario.links.iter().flat_map(Link::queues).any(|queue| queue.kind.name() != DEFAULT_QUEUE);
    let lacking = [
        ("router", !ports, "no port has a router, or a queue with variables"),
        ("agent", !agents, "no protocol here has agents"),
    ];
    for (word, lacks, why) in lacking {
        if lacks && scenario.sampling.of.iter().any(|of| of == word) {
            let what = format!("`{word}` samples nothing: {why}");
            ctx.unused(
                reader.at(&["sampling", "of"]),
                word,
                what,
                format!("remove {word:?} from `of`, or use an explicit protocol"),
            );
        }
    }
}

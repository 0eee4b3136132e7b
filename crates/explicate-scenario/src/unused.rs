//! Settings that nothing uses: of links that no such packet crosses, of flows that have no use for them, and what comes after
//! the end of the run.

use std::collections::{BTreeMap, BTreeSet};

use explicate_core::api::SenderInit;
use explicate_core::endpoint::Params;
use explicate_core::params::{Param, Unit};
use explicate_core::recovery::Common;
use explicate_core::registry;
use explicate_core::units::{Rate, Time};

use crate::document::{Place, some};
use crate::ends::Crossing;
use crate::flows::Group;
use crate::graph::Graph;
use crate::model::{FlowGroup, Link, Match, Processing, Scenario, Start, Traffic};
use crate::needs::{self, Part};
use crate::parts::{Channel, DEFAULT_QUEUE, Queue, Router};
use crate::props::{Delay, Props};
use crate::quantity::{self, show};
use crate::reader::{Context, Reader};
use crate::routing::Routes;

fn written(time: Time) -> String {
    show(time.0 as f64, &quantity::TIME)
}

fn seconds(x: f64) -> String {
    written(Time::from_secs_f64(x))
}

/// Links of the data and of the acknowledgements of a pair of nodes.
fn ways(group: &FlowGroup, (from, to): (usize, usize), routes: &mut Routes) -> (Vec<u32>, Vec<u32>) {
    match &group.via {
        Some(via) => via.clone(),
        None => (routes.path(from, to).unwrap_or_default(), routes.path(to, from).unwrap_or_default()),
    }
}

/// Whether nothing is returned to the flows of a group.
pub(crate) fn one_way(group: &FlowGroup) -> bool {
    !group.resolved.protocol.needs_feedback() && group.resolved.recovery.build_one_way().is_some()
}

// ---------------------------------------------------------------------------------------------------- links

/// What crosses a link.
#[derive(Clone, Default)]
pub(crate) struct Load {
    data: bool,
    acks: bool,
    /// Packets with a congestion header.
    headers: bool,
    /// Flows that a controller answers.
    controlled: bool,
}

/// What crosses each link, at any time.
pub(crate) fn loads(scenario: &Scenario, phases: &mut [Routes]) -> Vec<Load> {
    let mut loads = vec![Load::default(); scenario.links.len()];
    for group in &scenario.flows {
        let protocol = group.resolved.protocol;
        let controlled = registry::controller(protocol).is_some();
        let returns = !one_way(group);
        for routes in phases.iter_mut() {
            for &ends in &group.ends {
                let (data, acks) = ways(group, ends, routes);
                for link in data {
                    let load = &mut loads[link as usize];
                    load.data = true;
                    load.headers |= protocol.congestion_header();
                    load.controlled |= controlled;
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
        channels(ctx, scenario, props, links, crossings, loads);
        if graph.links[links[0]].over.is_none() {
            port(ctx, scenario, props, links, &scenario.links[links[0]], loads);
            if props.rate_is_replaced(rate) {
                let what = "`rate` has no effect beside a channel with a rate of its own";
                ctx.warn(props.at("rate"), what, "remove one of them");
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
        ctx.warn(graph.props[1].props.at("delay"), what, "write one time, or more `pairs`");
    }
    if generator.cross > 1 {
        let first = generator.beside(0, 0).0;
        let hosts = first..first + 2 * generator.cross * generator.hops;
        if !scenario.flows.iter().any(|g| g.ends.iter().any(|(from, to)| hosts.contains(from) || hosts.contains(to))) {
            let what = "`cross` makes hosts, but no flow begins or ends there";
            ctx.warn(reader.at(&["topology", "cross"]), what, "add [[flows]] with `path = \"cross\"`, or remove it");
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
        && any(|load| load.data)
        && !any(|load| load.controlled)
    {
        let name = protocol.name();
        let what = format!("the {name} router of {there} has nothing to do: no flow with a router's feedback crosses");
        ctx.warn(props.at("router"), what, format!("write `protocol = {name:?}` for a flow there, or remove it"));
    }
    // Disciplines that drop at the tail do not know the capacity, and have no timers.
    let plain = made.queues().all(|queue| queue.kind.name() == DEFAULT_QUEUE);
    if props.sets_capacity(made.rate) && !controllers && plain {
        let what = format!("`capacity` has no effect on {there}: no router and no queue there uses it");
        ctx.warn(props.at("capacity"), what, "remove it, or use a protocol with a router");
    }
    if props.clock_tick() > Time::ZERO && !controllers && plain {
        let what = format!("`clock_tick` has no effect on {there}: no router and no queue there has a timer");
        ctx.warn(props.at("clock_tick"), what, "remove it, or use a protocol with a router");
    }
    if props.by_flows() && !controllers {
        let what = format!("`share_by_flows` has no effect on {there}: no router there tells flows apart");
        ctx.warn(props.at("share_by_flows"), what, "remove it, or use a protocol with a router");
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
        ctx.warn(props.at(key), what, format!("remove it, or the `{key}` of a class"));
    }
    if classes.len() > 1 && classes.iter().any(|c| c.matches == Match::Explicit) && !any(|load| load.headers) {
        let what = format!("no packet is of the class `explicit` on {there}: no flow there has a congestion header");
        ctx.warn(props.at("classes"), what, "use an explicit protocol, or remove the classes");
    }
}

/// Channels of links with the same settings, of which none has such packets; and those whose effect does not fit into the run.
fn channels(
    ctx: &Context<'_>,
    scenario: &Scenario,
    props: &Props,
    links: &[usize],
    crossings: &[Crossing],
    loads: &[Load],
) {
    let any = |what: fn(&Load) -> bool| links.iter().any(|link| what(&loads[*link]));
    for channel in props.channel.iter().flatten() {
        let kind = channel.kind.name();
        let declared: Vec<&'static Param> = channel.kind.params().iter().collect();
        let values = channel.values();
        let given = |name: &str| channel.chosen.iter().find(|c| c.param.name == name).map(|c| c.place);
        needs::check(ctx, Part::Channel(kind), &format!("`{kind}`"), &declared, &values, &given);
        let there = names(scenario, links);
        let of = word(channel, "of");
        let (crosses, which) = match of {
            Some("data") => (any(|load| load.data), "data"),
            Some("acks") => (any(|load| load.acks), "acknowledgements"),
            _ => (any(|load| load.data || load.acks), "packets"),
        };
        if !crosses {
            let place = given("of").unwrap_or_else(|| props.at("channel"));
            let what = format!("the channel `{kind}` has no effect on {there}: no {which} cross");
            let write = if which == "packets" { "move it to a link that flows cross" } else { "remove `of`" };
            ctx.warn(place, what, format!("{write}, or use the link of the other direction"));
            continue;
        }
        longer(ctx, scenario, channel, &given);
        budget(ctx, scenario, channel, links, crossings, given("most"));
        states(ctx, channel, &given);
    }
}

/// The word of a channel's parameter.
fn word(channel: &Channel, name: &str) -> Option<&'static str> {
    let params = channel.kind.params();
    let Unit::Choice(words) = params.iter().find(|p| p.name == name)?.unit else { return None };
    words.get(channel.values().get(params, name) as usize).copied()
}

/// Delays that are longer than the run, or none.
fn longer(ctx: &Context<'_>, scenario: &Scenario, channel: &Channel, given: &dyn Fn(&str) -> Option<Place>) {
    let (kind, params, values) = (channel.kind.name(), channel.kind.params(), channel.values());
    let run = written(scenario.duration);
    for (name, what) in [("after", "copies"), ("by", "delayed packets"), ("mean", "packets")] {
        let (Some(place), Some(param)) = (given(name), params.iter().find(|p| p.name == name)) else { continue };
        let x = values.get(params, name);
        if param.unit == Unit::Seconds && x >= scenario.duration.as_secs_f64() {
            let what = format!(
                "the {what} of `{kind}` arrive after the end of the run ({run}): its `{name}` is {}",
                seconds(x)
            );
            ctx.warn(place, what, format!("write a shorter `{name}`"));
        } else if param.unit == Unit::Seconds && x == 0.0 && name != "after" {
            let what = format!("the channel `{kind}` has no effect: its `{name}` is 0");
            ctx.warn(place, what, format!("write a longer `{name}`, such as \"5ms\", or remove the channel"));
        }
    }
    if let (Some(place), Some(_)) = (given("period"), params.iter().find(|p| p.name == "period")) {
        let period = values.get(params, "period");
        if period.is_finite() && period >= scenario.duration.as_secs_f64() {
            let what = format!(
                "the steps of `{kind}` do not repeat: its `period` ({}) is as long as the run ({run})",
                seconds(period)
            );
            ctx.warn(place, what, "write a shorter `period` or a longer `duration`");
        }
    }
}

/// A number of losses that is used up before anything is measured, or never reached.
fn budget(
    ctx: &Context<'_>,
    scenario: &Scenario,
    channel: &Channel,
    links: &[usize],
    crossings: &[Crossing],
    place: Option<Place>,
) {
    let (params, values) = (channel.kind.params(), channel.values());
    let (Some(place), true) = (place, params.iter().any(|p| p.name == "most")) else { return };
    let of = |name: &str| values.get(params, name);
    let (most, rate, start) = (of("most"), of("rate"), of("start"));
    if most == 0.0 || rate == 0.0 {
        return;
    }
    let crossing = |link: &&usize| &crossings[**link];
    let bits = |link: usize| scenario.links[link].rate.0 as f64;
    // Packets per second of the busiest link: at most, and where it is always full.
    let upper = links.iter().map(|link| crossing(&link).packets_per_second(bits(*link))).fold(0.0, f64::max);
    let full = links.iter().filter(|link| crossing(link).wants_more_than(0.9 * bits(**link)));
    let full = full.filter_map(|link| Some(bits(*link) / 8.0 / crossing(&link).largest()?)).fold(0.0, f64::max);
    let (warmup, end) = (scenario.warmup.as_secs_f64(), scenario.duration.as_secs_f64());
    let lost = rate * upper * (end - start).max(0.0);
    if full > 0.0 && start + most / (rate * full) < warmup {
        let when = seconds((1e3 * (start + most / (rate * full))).ceil() / 1e3);
        let warmup = written(scenario.warmup);
        let what = format!(
            "the {most} losses of `most` are over about {when} after the start, in the warm-up ({warmup}), which is not measured"
        );
        ctx.warn(place, what, "write a `start` after the warm-up, or a larger `most`");
    } else if upper > 0.0 && 2.0 * lost < most {
        let what = format!("`most` ({most}) has no effect: about {lost:.0} packets are lost in the run");
        ctx.warn(place, what, "write a smaller `most`, or remove it");
    }
}

/// States of a channel that differ in nothing, or that it never reaches.
fn states(ctx: &Context<'_>, channel: &Channel, given: &dyn Fn(&str) -> Option<Place>) {
    let (kind, params, values) = (channel.kind.name(), channel.kind.params(), channel.values());
    let of = |name: &str| values.get(params, name);
    let set = |name: &&&str| values.number(name).is_some();
    let first = |names: &[&'static str]| -> Option<(&'static str, Place)> {
        let name = names.iter().find(set)?;
        Some((*name, given(name)?))
    };
    match kind {
        "gilbert_elliott" if of("loss_good") == of("loss_bad") => {
            let place = given("loss_bad").or_else(|| given("loss_good"));
            if let Some(place) = place {
                let what = format!("the states of `{kind}` do not differ: `loss_good` and `loss_bad` are the same");
                ctx.warn(place, what, "write a larger `loss_bad`, or the channel `random_loss`");
            }
        }
        "fading" => {
            let (clear, blocked) = (word(channel, "good") == Some("clear"), word(channel, "bad") == Some("blocked"));
            if clear && blocked {
                let radio = first(&["snr", "antennas", "interference"]);
                if let Some((name, place)) = radio {
                    let what =
                        format!("`{name}` of `{kind}` has no effect with `good = \"clear\"` and `bad = \"blocked\"`");
                    ctx.warn(place, what, "remove it, or write `good = \"fading\"`");
                }
            }
            if of("gamma") == 1.0
                && let Some((name, place)) = first(&["fade", "beta", "bad", "rician_bad"])
            {
                let what = format!("`{name}` of `{kind}` has no effect: with `gamma = 1` the good state never ends");
                ctx.warn(place, what, "write a smaller `gamma`, or remove it");
            }
            let same = !clear && !blocked && of("fade") == 0.0 && of("rician_good") == of("rician_bad");
            if same && let Some((name, place)) = first(&["gamma", "beta"]) {
                let what = format!("`{name}` of `{kind}` has no effect: the states do not differ with `fade = 0`");
                ctx.warn(place, what, "write a larger `fade`, or remove it");
            }
            if of("fec_data") == 1.0
                && of("fec_ack") == 1.0
                && let Some((name, place)) = first(&["code"])
            {
                let what =
                    format!("`{name}` of `{kind}` has no effect: with `fec_data` and `fec_ack` 1 there is no code");
                ctx.warn(place, what, "write a smaller `fec_data`, or remove it");
            }
        }
        _ => {}
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
            ctx.warn(place, what, "write a smaller one, or remove it");
        }
        if let (Some(place), true) = (given("energy_detect"), medium.interferers.is_empty()) {
            if medium.values.number("energy_detect").is_some() {
                let what = format!("`energy_detect` of {title} has no effect without an interferer");
                ctx.warn(place, what, "add [[medium.interferer]], or remove it");
            }
        }
    }
}

// ---------------------------------------------------------------------------------------------------- flows

/// What only matters if something is returned.
const OF_RETURNS: &[&str] = &[
    "initial_window",
    "receiver_window",
    "ack_every",
    "ack_delay",
    "quick_acks",
    "ecn",
    "rtt_resolution",
    "min_rto",
    "initial_rto",
    "max_rto",
    "backoff_until",
    "dupackthreshold",
];
/// What only matters to explicit flows.
const OF_EXPLICIT: &[&str] = &["guard", "air_loss", "refuse_explicit"];

/// The first start of a group's flows.
fn first_start(group: &FlowGroup) -> Time {
    match group.start {
        Start::At(at) => at,
        Start::Spread { from, .. } | Start::Uniform { from, .. } | Start::Poisson { from, .. } => from,
    }
}

/// Settings of flows.
pub(crate) fn flows(ctx: &Context<'_>, reader: &Reader<'_>, scenario: &Scenario, phases: &mut [Routes]) {
    for (index, group) in scenario.flows.iter().enumerate() {
        let number = index.to_string();
        let path = |keys: &[&'static str]| -> Vec<String> {
            ["flows", &number].into_iter().chain(keys.iter().copied()).map(str::to_string).collect()
        };
        let at = |keys: &[&'static str]| {
            let path = path(keys);
            reader.at(&path.iter().map(String::as_str).collect::<Vec<_>>())
        };
        let of_preset =
            |name: &str| group.resolved.params.iter().any(|(n, x)| *n == name && group.values.number(name) == Some(*x));
        // Where the scenario sets a parameter to another value than the default or the preset does.
        let given = |name: &str| -> Option<Place> {
            group.values.number(name).filter(|_| !of_preset(name))?;
            let in_params = reader.find(&["flows", &number, "params", name]);
            in_params.or_else(|| reader.find(&["flows", &number, name]).filter(|_| name == "paced"))
        };
        let declared = Group::declared(&group.resolved);
        let title = format!("the flows of `{}`", group.name);
        let protocol = group.resolved.protocol;
        for part in [Part::Flow, Part::Sender(protocol.name())] {
            needs::check(ctx, part, &title, &declared, &group.values, &given);
        }
        in_time(ctx, scenario, group, &at);
        if group.ends.len() > group.count as usize {
            let (pairs, count) = (group.ends.len(), group.count);
            let what = format!(
                "`from` and `to` of `{}` name {pairs} pairs of nodes, but there are flows for {count} of them",
                group.name
            );
            let longer = if reader.find(&["flows", &number, "to", "1"]).is_some() { "to" } else { "from" };
            ctx.warn(at(&[longer]), what, format!("write `count = {pairs}`, or fewer nodes"));
        }
        if !protocol.explicit() {
            for (name, place) in OF_EXPLICIT.iter().filter_map(|name| Some((name, given(name)?))) {
                let what = format!("`{name}` has no effect on {title}: {} is not explicit", protocol.name());
                ctx.warn(place, what, "use an explicit protocol, or remove it");
            }
        }
        if one_way(group) {
            for (name, place) in OF_RETURNS.iter().filter_map(|name| Some((name, given(name)?))) {
                let what = format!("`{name}` has no effect on {title}: nothing returns to {}", protocol.name());
                ctx.warn(place, what, "remove it, or use another protocol");
            }
        }
        let params = Params::of(&group.values);
        let threshold = Common::of(&group.values).dupackthreshold;
        if let Some(place) = given("dupackthreshold").filter(|_| threshold >= params.receiver_window) {
            let room = params.receiver_window;
            let what = format!(
                "{title} never retransmit before a timeout: `dupackthreshold` ({threshold}) is not below `receiver_window` ({room})"
            );
            ctx.warn(place, what, "write a smaller one, or a larger `receiver_window`");
        }
        let Some(&ends) = group.ends.first() else { continue };
        let Some(routes) = phases.first_mut() else { continue };
        let (data, acks) = ways(group, ends, routes);
        let interface = data.first().map_or(Rate(1), |link| scenario.links[*link as usize].rate);
        if let Some(place) = given("paced") {
            let init = SenderInit {
                values: &group.values,
                packet: group.packet as f64,
                initial_window: params.initial_window,
                interface,
            };
            if let Some(rate) = protocol.sender(&init).allowance().pacing {
                let own = if group.values.number("rate").is_some() || declared.iter().any(|p| p.name == "rate") {
                    format!(" at its `rate` ({})", show(rate.0 as f64, &quantity::RATE))
                } else {
                    String::new()
                };
                let what = format!("`paced` has no effect on {title}: {} paces its packets{own}", protocol.name());
                ctx.warn(place, what, "remove it");
            }
        }
        if data.is_empty() {
            continue;
        }
        arrival(ctx, scenario, group, (&data, &acks), &at);
        let narrow = data.iter().map(|l| scenario.links[*l as usize].rate.0).min().unwrap_or(0) as f64;
        let flows: u64 = scenario.flows.iter().map(|g| g.count as u64).sum();
        if let Processing::UpTo(most) = group.processing {
            // Half of it on average.
            let each = 16.0 * group.packet as f64 / most.as_secs_f64();
            let wanted = group.values.number("rate").unwrap_or(f64::INFINITY);
            if matches!(group.traffic, Traffic::Bulk) && each * (flows as f64) < narrow && each < wanted {
                let (each, narrow) = (show(each.round(), &quantity::RATE), show(narrow, &quantity::RATE));
                let what = format!(
                    "`processing` holds {title} to {each} each, and all flows together below the narrowest link ({narrow})"
                );
                let place = reader.find(&["flows", &number, "processing"]).or_else(|| reader.find(&["processing"]));
                ctx.warn(
                    place.unwrap_or(Place::Unwritten("processing")),
                    what,
                    "write a shorter one, or `processing = \"auto\"`",
                );
            }
        }
        goal(ctx, scenario, group, phases, &given, &at);
    }
    let own = |index: usize| reader.find(&["flows", &index.to_string(), "processing"]).is_some();
    if let Some(place) = reader.find(&["processing"]).filter(|_| (0..scenario.flows.len()).all(own)) {
        let what = "`processing` of the scenario has no effect: every group of flows has its own";
        ctx.warn(place, what, "remove it, or those of the groups");
    }
}

/// Times of a group that do not fit into the run, or into each other.
fn in_time(ctx: &Context<'_>, scenario: &Scenario, group: &FlowGroup, at: &dyn Fn(&[&'static str]) -> Place) {
    let (name, end, start) = (&group.name, scenario.duration, first_start(group));
    if start >= end || group.stop.is_some_and(|stop| stop <= start) {
        return; // said elsewhere
    }
    if let Some(stop) = group.stop.filter(|stop| *stop > end) {
        let what = format!("`stop` ({}) has no effect on the flows of `{name}`: the run ends before it", written(stop));
        ctx.warn(at(&["stop"]), what, "write an earlier `stop` or a longer `duration`");
    }
    match group.start {
        Start::Spread { over, .. } if group.count == 1 && over > Time::ZERO => {
            let what = format!("`spread` has no effect on `{name}`, which is one flow: it starts at the beginning");
            ctx.warn(at(&["start"]), what, "write a larger `count`, or `uniform` in place of `spread`");
        }
        Start::Spread { from, over } | Start::Uniform { from, over } => {
            let last = match group.start {
                Start::Spread { .. } => from + Time(over.0 - over.0 / group.count as u64),
                _ => from + over,
            };
            if let Some(stop) = group.stop.filter(|stop| *stop <= last && last > from) {
                let (stop, last) = (written(stop), written(last));
                let what = format!(
                    "some flows of `{name}` stop before they start: starts go up to {last}, and `stop` is {stop}"
                );
                ctx.warn(at(&["stop"]), what, "write a later `stop` or a shorter span");
            }
        }
        _ => {}
    }
    let left = group.stop.unwrap_or(end).min(end).since(start);
    match group.traffic {
        Traffic::OnOff { on, random: false, .. } if on >= left && on < end => {
            let what = format!(
                "`on_off` has no effect on the flows of `{name}`: the first on-period lasts longer than the flows ({})",
                written(left)
            );
            ctx.warn(at(&["on_off"]), what, "write a shorter `on` or a longer `duration`");
        }
        Traffic::Sessions { timeouts, pause, duration, random } => {
            let common = Common::of(&group.values);
            // The least time of that many timeouts in a row.
            let doubled = |i: u32| (common.least_rto() * 2f64.powi(i.min(60) as i32)).min(common.most_rto());
            let least: f64 = (0..timeouts.min(100_000)).map(doubled).sum();
            let lasts = duration.filter(|_| !random);
            let one_way = one_way(group);
            let aborted = !one_way && least < left.as_secs_f64();
            if !aborted && duration.is_none() {
                let why = if one_way {
                    "nothing returns to its flows, so they have no timeouts".to_string()
                } else {
                    format!("{timeouts} timeouts in a row take at least {}", seconds(least))
                };
                let what = format!("`session` has no effect on the flows of `{name}`: {why}");
                ctx.warn(at(&["session"]), what, "write fewer `timeouts`, or a `duration` of sessions");
            } else if !aborted && lasts.is_some_and(|lasts| lasts >= left) {
                let what = format!(
                    "`session` has no effect on the flows of `{name}`: its `duration` is as long as they last ({})",
                    written(left)
                );
                ctx.warn(at(&["session", "duration"]), what, "write a shorter `duration` of sessions");
            } else if pause.0 + lasts.unwrap_or(Time::ZERO) >= left {
                let (pause, left) = (written(pause.0), written(left));
                let what = format!(
                    "no second session of `{name}` begins: the `pause` ({pause}) lasts beyond the flows ({left})"
                );
                ctx.warn(at(&["session", "pause"]), what, "write a shorter `pause` or a longer `duration`");
            }
        }
        _ => {}
    }
}

/// Flows of which nothing arrives before the end, because the path is too long.
fn arrival(
    ctx: &Context<'_>,
    scenario: &Scenario,
    group: &FlowGroup,
    (data, acks): (&[u32], &[u32]),
    at: &dyn Fn(&[&'static str]) -> Place,
) {
    let delay = |links: &[u32]| links.iter().fold(Time::ZERO, |sum, l| sum + scenario.links[*l as usize].delay);
    let (there, back) = (delay(data), delay(acks));
    let first = if one_way(group) { there } else { there + back + there };
    let start = first_start(group);
    let end = group.stop.unwrap_or(scenario.duration).min(scenario.duration);
    if start < end && start + first >= end {
        let name = &group.name;
        let opens = if one_way(group) { "" } else { ", of which the connection takes a round trip" };
        let what = format!(
            "nothing of `{name}` arrives before the end: its first packet needs {}{opens}, and the flow lasts {}",
            written(first),
            written(end.since(start))
        );
        ctx.warn(at(&["name"]), what, "write a longer `duration`, or shorter `delay`s of the links of its path");
    }
}

/// Controllers that aim at a number of packets in the queue which it does not hold.
fn goal(
    ctx: &Context<'_>,
    scenario: &Scenario,
    group: &FlowGroup,
    phases: &mut [Routes],
    given: &dyn Fn(&str) -> Option<Place>,
    at: &dyn Fn(&[&'static str]) -> Place,
) {
    let protocol = group.resolved.protocol;
    if !["fast", "vegas"].contains(&protocol.name()) || !matches!(group.traffic, Traffic::Bulk) {
        return;
    }
    let Some(routes) = phases.first_mut() else { return };
    let alpha = group.values.get(protocol.params(), "alpha");
    let mut crossing: BTreeMap<u32, u64> = BTreeMap::new();
    for (i, &ends) in group.ends.iter().enumerate() {
        let (data, _) = ways(group, ends, routes);
        let pairs = group.ends.len() as u64;
        let flows = group.count as u64 / pairs + u64::from((i as u64) < group.count as u64 % pairs);
        if let Some(link) = data.iter().min_by_key(|l| scenario.links[**l as usize].rate) {
            *crossing.entry(*link).or_default() += flows;
        }
    }
    for (link, flows) in crossing {
        let link = &scenario.links[link as usize];
        let Some(queue) = scenario.port(link).queue.as_ref() else { continue };
        let params = queue.kind.params();
        if !params.iter().any(|p| p.name == "limit") {
            continue;
        }
        let limit = queue.values.get(params, "limit") / group.packet as f64;
        let wanted = alpha * flows as f64;
        if wanted >= limit {
            let what = format!(
                "the flows of `{}` aim at {wanted} packets in the queue of {} (`alpha` times {flows}), which holds {limit:.0}: losses \
                 set their rate",
                group.name, link.name
            );
            let place = given("alpha").unwrap_or_else(|| at(&["protocol"]));
            ctx.warn(place, what, "write a smaller `alpha`, or a longer `limit` of the queue");
            return;
        }
    }
}

// ------------------------------------------------------------------------------------------------- the run

/// Changes of routes that change no flow's, and variables that nothing has.
pub(crate) fn run(ctx: &Context<'_>, reader: &Reader<'_>, scenario: &Scenario, phases: &mut [Routes]) {
    for phase in 1..phases.len() {
        if scenario.reroutes[phase - 1].at >= scenario.duration {
            break; // said elsewhere
        }
        let (before, after) = phases.split_at_mut(phase);
        let (Some(before), Some(after)) = (before.last_mut(), after.first_mut()) else { continue };
        let same = |group: &FlowGroup, before: &mut Routes, after: &mut Routes| {
            group.via.is_some() || group.ends.iter().all(|&ends| ways(group, ends, before) == ways(group, ends, after))
        };
        if scenario.flows.iter().all(|group| same(group, before, after)) {
            let index = (phase - 1).to_string();
            let at = written(scenario.reroutes[phase - 1].at);
            let what = format!("the change of routes at {at} changes the route of no flow");
            let write = "write other links in `without`, or remove it";
            ctx.warn(reader.at(&["reroute", &index, "without"]), what, write);
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
        || scenario.links.iter().flat_map(Link::queues).any(|queue| queue.kind.name() != DEFAULT_QUEUE);
    let lacking = [
        ("router", !ports, "no port has a router, or a queue with variables"),
        ("agent", !agents, "no node has an agent; only XCP-i has"),
    ];
    for (word, lacks, why) in lacking {
        if lacks && scenario.sampling.of.iter().any(|of| of == word) {
            let what = format!("`{word}` samples nothing: {why}");
            ctx.warn(
                reader.at(&["sampling", "of"]),
                what,
                format!("remove {word:?} from `of`, or use an explicit protocol"),
            );
        }
    }
}

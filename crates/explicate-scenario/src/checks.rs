//! Checks of a scenario: errors for impossible settings, warnings for questionable ones.

use std::collections::BTreeSet;

use explicate_core::registry;
use explicate_core::units::Time;

use crate::agents::{controller_ports, differing};
use crate::classes::Class;
use crate::document::{Place, some};
use crate::ends::Crossing;
use crate::graph::Graph;
use crate::limits;
use crate::model::{FlowGroup, Link, Match, Processing, Scenario, Start};
use crate::parts::Router;
use crate::phase_effects;
use crate::quantity;
use crate::reader::Context;
use crate::reader::Reader;
use crate::routing::Routes;

/// Checks the duration, before it is used.
pub(crate) fn duration(reader: &Reader<'_>, scenario: &Scenario) {
    let place = reader.get("duration").map_or(Place::Unwritten("duration"), |n| n.place);
    if scenario.duration < Time::micros(1) {
        reader.ctx.error(place, "`duration` has to be at least 1us");
    }
    if scenario.warmup >= scenario.duration {
        let (warmup, duration) = (written(scenario.warmup), written(scenario.duration));
        let place = reader.get("warmup").map_or(place, |n| n.place);
        let what = format!("nothing is measured: the warmup ({warmup}) is not shorter than the duration ({duration})");
        reader.ctx.warn(place, what, "write a shorter `warmup` or a longer `duration`");
    }
}

/// The seed of every run must be a valid seed, so that the run can be repeated.
pub(crate) fn seeds(reader: &Reader<'_>, scenario: &Scenario) {
    let more = scenario.runs as u64 - 1;
    if scenario.seed > limits::SEED - more {
        let place = reader.get("seed").map_or(reader.place, |n| n.place);
        let (most, runs) = (limits::SEED - more, scenario.runs);
        reader.ctx.error(place, format!("`seed` counts up with the runs: for {runs} of them it is at most {most}"));
    }
}

/// Checks the resolved scenario as a whole.
pub(crate) fn whole(
    ctx: &Context<'_>,
    reader: &Reader<'_>,
    graph: &Graph,
    scenario: &Scenario,
    crossings: &[Crossing],
    declined: &Declined,
    phases: &mut [Routes],
) {
    sizes(ctx, reader, scenario, crossings);
    routers(ctx, reader, graph, scenario, declined, phases);
    agents(ctx, graph, scenario);
    if let (false, Some(routes)) = (ctx.fluid, phases.first_mut()) {
        let processing = |group: &FlowGroup| group.processing != Processing::None;
        phase_effects::check(ctx, graph, scenario, crossings, routes, processing);
        intervals(ctx, reader, graph, scenario, routes);
    }
    if let Some(index) = scenario.reroutes.iter().position(|r| r.at >= scenario.duration) {
        let place = reader.at(&["reroute", &index.to_string(), "at"]);
        let at = written(scenario.reroutes[index].at);
        let what = format!("the change of routes at {at} comes after the end of the run");
        ctx.warn(place, what, "write an earlier `at` or a longer `duration`");
    }
    for (index, group) in scenario.flows.iter().enumerate() {
        let first = match group.start {
            Start::At(t) => t,
            Start::Spread { from, .. } | Start::Uniform { from, .. } | Start::Poisson { from, .. } => from,
        };
        let place = |key: &str| reader.at(&["flows", &index.to_string(), key]);
        if first >= scenario.duration {
            let what = format!("the flows of `{}` start after the end of the run", group.name);
            ctx.warn(place("start"), what, "write an earlier `start` or a longer `duration`");
        } else if group.stop.is_some_and(|stop| stop <= first) {
            let what = format!("the flows of `{}` stop before they start", group.name);
            ctx.warn(place("stop"), what, "write a later `stop` or an earlier `start`");
        }
    }
}

/// A time as a scenario writes it.
fn written(time: Time) -> String {
    quantity::show(time.0 as f64, &quantity::TIME)
}

/// Limits on the total work.
fn sizes(ctx: &Context<'_>, reader: &Reader<'_>, scenario: &Scenario, crossings: &[Crossing]) {
    let place = |key: &str| reader.get(key).map_or(Place::START, |n| n.place);
    let flows: u64 = scenario.flows.iter().map(|g| g.count as u64).sum();
    let most = if ctx.fluid { limits::FLUID_FLOWS } else { limits::FLOWS };
    if flows > most {
        ctx.error(place("flows"), format!("there are {flows} flows; the maximum is {most}"));
    }
    let seconds = scenario.duration.as_secs_f64();
    let rates = scenario.links.iter().map(|l| l.rate.0 as f64);
    let hops: f64 = crossings.iter().zip(rates).map(|(c, rate)| c.packets_per_second(rate) * seconds).sum();
    if hops > limits::PACKET_HOPS && !ctx.fluid {
        let most = "shorten `duration`, lower rates or take larger packets";
        ctx.error(place("duration"), format!("a run would move about {hops:.0e} packets over links; {most}"));
    }
    // A fluid samples classes only: at most one per route.
    let ways = scenario.flows.iter().map(|g| g.ends.len() as u64).sum();
    let samples = scenario.sample_rows(if ctx.fluid { flows.min(ways) } else { flows }) * scenario.runs as f64;
    if samples > limits::SAMPLES {
        let message = format!("[sampling] would write about {samples:.0e} rows; lengthen `every` or shorten `of`");
        ctx.error(place("sampling"), message);
    }
}

/// Links and classes for which the scenario sets `router = "none"`: these get no warning.
pub(crate) type Declined = BTreeSet<(usize, usize)>;

/// Collects them.
pub(crate) fn declined(graph: &Graph) -> Declined {
    let mut declined = Declined::new();
    for (link, draft) in graph.links.iter().enumerate() {
        let props = match draft.over {
            Some((medium, from, _)) => &graph.media[medium].stations[from].props,
            None => &graph.props[draft.props].props,
        };
        let none = |router: &Option<Router>| matches!(router, Some(Router::None));
        match props.classes.as_deref() {
            None | Some([]) if none(&props.router) => {
                declined.insert((link, 0));
            }
            None | Some([]) => {}
            Some(classes) => {
                let of = |class: &Class| none(if class.router.is_some() { &class.router } else { &props.router });
                declined.extend(classes.iter().enumerate().filter(|(_, c)| of(c)).map(|(class, _)| (link, class)));
            }
        }
    }
    declined
}

/// Warns about explicit flows that cross ports without a controller of their protocol.
fn routers(
    ctx: &Context<'_>,
    reader: &Reader<'_>,
    graph: &Graph,
    scenario: &Scenario,
    declined: &Declined,
    phases: &mut [Routes],
) {
    let mut needed: Vec<[Vec<&str>; Match::ALL.len()]> = vec![Default::default(); scenario.links.len()];
    for group in &scenario.flows {
        let protocol = group.resolved.protocol;
        let Some(controller) = registry::controller(protocol) else { continue };
        let mut silent: Vec<bool> = vec![false; scenario.links.len()];
        for &ends in &group.ends {
            for link in phases.iter_mut().flat_map(|routes| group.ways(ends, routes).0) {
                let at = scenario.port(&scenario.links[link as usize]);
                let class = at.class_of(protocol.congestion_header());
                let routers = at.routers_of(class);
                silent[link as usize] = !declined.contains(&(link as usize, class))
                    && !routers.iter().any(|r| r.protocol.name() == controller.name());
                let all = &mut needed[link as usize][class];
                if !all.contains(&controller.name()) {
                    all.push(controller.name());
                }
            }
        }
        let mute: Vec<usize> = (0..silent.len()).filter(|link| silent[*link]).collect();
        let names: Vec<&str> = mute.iter().map(|link| scenario.links[*link].name.as_str()).collect();
        if let (Some(first), false) = (mute.first(), protocol.bears_plain_routers()) {
            let (group, protocol) = (&group.name, protocol.name());
            let props = graph.port(*first);
            let key = if props.classes.iter().flatten().any(|c| c.router.is_some()) { "classes" } else { "router" };
            let what =
                format!("the flows of `{group}` use {protocol}, but no {protocol} router runs on {}", some(&names));
            let write = format!("write `router = {:?}` there, or \"none\" if that is meant", controller.name());
            ctx.warn(props.at(key), what, write);
        }
    }
    // A class has one controller: of several it takes the first of the list.
    let mut torn: Vec<(&Link, usize, &Vec<&str>)> = Vec::new();
    for (link, needed) in scenario.links.iter().zip(&needed) {
        let all = needed.iter().enumerate().filter(|(class, n)| n.len() > 1 && link.routers_of(*class).len() > 1);
        torn.extend(all.map(|(class, needed)| (link, class, needed)));
    }
    if let Some((link, class, needed)) = torn.first() {
        let first = link
            .routers_of(*class)
            .iter()
            .map(|r| r.protocol.name())
            .find(|name| needed.contains(name))
            .unwrap_or("none");
        let names: Vec<&str> = torn.iter().map(|(l, ..)| l.name.as_str()).collect();
        // The first group whose controller does not run.
        let asks = |group: &FlowGroup| {
            registry::controller(group.resolved.protocol)
                .is_some_and(|c| c.name() != first && needed.contains(&c.name()))
        };
        let index = scenario.flows.iter().position(asks).unwrap_or(0).to_string();
        let needed = needed.join(" and ");
        let what = format!("a port has one router, but flows need {needed} on {}: {first} runs", some(&names));
        let write = format!("choose protocols that {first} answers, or a path of its own for the others");
        ctx.warn(reader.at(&["flows", &index, "protocol"]), what, write);
    }
}

/// Warns about flows whose round trip takes two of the longest control intervals, or more, of controllers at their hosts. No
/// other flow's packets pass there, so the interval after that of a window is empty, and there is nothing to give to the next
/// window.
fn intervals(ctx: &Context<'_>, reader: &Reader<'_>, graph: &Graph, scenario: &Scenario, routes: &mut Routes) {
    const BOUND: &str = "max_interval";
    for (index, group) in scenario.flows.iter().enumerate() {
        let protocol = group.resolved.protocol;
        let Some(controller) = registry::controller(protocol) else { continue };
        let params = controller.router_params();
        if !params.iter().any(|p| p.name == BOUND) {
            continue;
        }
        for &ends in &group.ends {
            let (data, acks) = group.ways(ends, routes);
            let rtt = data.iter().chain(&acks).fold(Time::ZERO, |sum, l| sum + scenario.links[*l as usize].delay);
            let short = data.first().into_iter().chain(data.last()).find_map(|number| {
                let link = &scenario.links[*number as usize];
                let port = scenario.port(link);
                let mut routers = port.routers_of(port.class_of(protocol.congestion_header())).iter();
                let mine = routers.find(|r| r.protocol.name() == controller.name())?;
                let bound = Time::from_secs_f64(mine.values.get(params, BOUND));
                (rtt >= bound + bound).then_some((*number as usize, bound))
            });
            if let Some((link, bound)) = short {
                let props = graph.port(link);
                // The flow is what asks for a router that is not written.
                let place = match props.router {
                    Some(Router::Of(..)) => props.at("router"),
                    _ => reader.at(&["flows", &index.to_string(), "protocol"]),
                };
                let (name, router, link) = (&group.name, controller.name(), &scenario.links[link].name);
                let long = written(Time::secs(rtt.0.div_ceil(1_000_000_000)));
                let (rtt, bound) = (written(rtt), written(bound));
                let what = format!(
                    "the flows of `{name}` may never grow: their round trip ({rtt}) takes at least twice the `{BOUND}` ({bound}) of \
                     the {router} router on {link}"
                );
                let write = format!(
                    "set a longer one there and on the rest of the path, like `router = {{ kind = {router:?}, {BOUND} = {long:?} }}`"
                );
                ctx.warn(place, what, write);
                break;
            }
        }
    }
}

/// Ports of one router that set different parameters of its agent: the first port is used. A port without settings
/// sets none.
fn agents(ctx: &Context<'_>, graph: &Graph, scenario: &Scenario) {
    for ((node, protocol), ports) in controller_ports(scenario) {
        if let Some((param, first, link)) = differing(&ports) {
            let (node, first, link) = (&scenario.nodes[node], &first.name, &link.name);
            let number = scenario.links.iter().position(|l| l.name == *link || scenario.port(l).name == *link);
            let place = number.map_or(Place::Unwritten("link"), |number| graph.port(number).at("router"));
            let what = format!(
                "`{node}` has one agent for all its ports, but {first} and {link} differ in `{param}` of {protocol}: \
                 {first} goes"
            );
            return ctx.warn(place, what, format!("write the same `{param}` at both"));
        }
    }
}

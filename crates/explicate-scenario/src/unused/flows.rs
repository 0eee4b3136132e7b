//! Parameters and times of flows that change nothing.

use std::collections::BTreeMap;

use explicate_core::api::SenderInit;
use explicate_core::endpoint::Params;
use explicate_core::params::{Param, Unit};
use explicate_core::recovery::Common;
use explicate_core::units::{Rate, Time};

use super::{one_way, seconds, written};
use crate::document::Place;
use crate::flows::Group;
use crate::model::{FlowGroup, Processing, Scenario, Start, Traffic};
use crate::needs::{self, Part};
use crate::quantity::{self, show};
use crate::reader::{Context, Reader};
use crate::routing::Routes;

/// What only matters if something is returned.
const OF_RETURNS: &[&str] = &[
    "initial_window",
    "receiver_window",
    "ack_every",
    "ack_delay",
    "quick_acks",
    "ecn",
    "scone",
    "scone_every",
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
        let at = |keys: &[&'static str]| {
            let path: Vec<&str> = ["flows", &number].into_iter().chain(keys.iter().copied()).collect();
            reader.at(&path)
        };
        let of_preset =
            |name: &str| group.resolved.params.iter().any(|(n, x)| *n == name && group.values.number(name) == Some(*x));
        // Where the scenario sets a parameter to another value than the default or the preset does.
        let given = |name: &str| -> Option<Place> {
            group.values.number(name).filter(|_| !of_preset(name))?;
            let in_params = reader.find(&["flows", &number, "params", name]);
            in_params.or_else(|| reader.find(&["flows", &number, name]).filter(|_| name == "paced"))
        };
        for part in [Part::Flow, Part::InPackets] {
            needs::check(ctx, part, &title(group), &Group::declared(&group.resolved), &group.values, &given);
        }
        in_time(ctx, scenario, group, &at);
        if group.ends.len() > group.count as usize {
            let (pairs, count) = (group.ends.len(), group.count);
            let what = format!(
                "`from` and `to` of `{}` name {pairs} pairs of nodes, but there are flows for {count} of them",
                group.name
            );
            let longer = if reader.find(&["flows", &number, "to", "1"]).is_some() { "to" } else { "from" };
            ctx.unused(at(&[longer]), longer, what, format!("write `count = {pairs}`, or fewer nodes"));
        }
        params(ctx, group, &given);
        let Some(&ends) = group.ends.first() else { continue };
        let Some(routes) = phases.first_mut() else { continue };
        let (data, acks) = group.ways(ends, routes);
        if let Some(place) = given("paced") {
            paced(ctx, scenario, group, data.first(), place);
        }
        if data.is_empty() {
            continue;
        }
        arrival(ctx, scenario, group, (&data, &acks), &at);
        let written = reader.find(&["flows", &number, "processing"]).or_else(|| reader.find(&["processing"]));
        processing(ctx, scenario, group, &data, written.unwrap_or(Place::Unwritten("processing")));
        goal(ctx, scenario, group, phases, &given, &at);
    }
    let own = |index: usize| reader.find(&["flows", &index.to_string(), "processing"]).is_some();
    if let Some(place) = reader.find(&["processing"]).filter(|_| (0..scenario.flows.len()).all(own)) {
        let what = "`processing` of the scenario has no effect: every group of flows has its own";
        ctx.unused(place, "processing", what, "remove it, or those of the groups");
    }
}

/// Parameters that the protocol of a group, or another parameter, makes useless.
fn params(ctx: &Context<'_>, group: &FlowGroup, given: &dyn Fn(&str) -> Option<Place>) {
    let (protocol, title) = (group.resolved.protocol, title(group));
    if !protocol.explicit() {
        for (name, place) in OF_EXPLICIT.iter().filter_map(|name| Some((name, given(name)?))) {
            let what = format!("`{name}` has no effect on {title}: {} is not explicit", protocol.name());
            ctx.unused(place, name, what, "use an explicit protocol, or remove it");
        }
    }
    if one_way(group) {
        for (name, place) in OF_RETURNS.iter().filter_map(|name| Some((name, given(name)?))) {
            let what = format!("`{name}` has no effect on {title}: nothing returns to {}", protocol.name());
            ctx.unused(place, name, what, "remove it, or use another protocol");
        }
    }
    let room = Params::of(&group.values).receiver_window;
    let threshold = Common::of(&group.values).dupackthreshold;
    if let Some(place) = given("dupackthreshold").filter(|_| threshold >= room) {
        let what = format!(
            "{title} never retransmit before a timeout: `dupackthreshold` ({threshold}) is not below `receiver_window` ({room})"
        );
        ctx.warn(place, what, "write a smaller one, or a larger `receiver_window`");
    }
}

/// A group, in messages.
fn title(group: &FlowGroup) -> String {
    format!("the flows of `{}`", group.name)
}

/// `paced` of a protocol that paces by itself.
fn paced(ctx: &Context<'_>, scenario: &Scenario, group: &FlowGroup, first: Option<&u32>, place: Place) {
    let protocol = group.resolved.protocol;
    let init = SenderInit {
        values: &group.values,
        packet: group.packet as f64,
        initial_window: Params::of(&group.values).initial_window,
        interface: first.map_or(Rate(1), |link| scenario.links[*link as usize].rate),
    };
    let Some(rate) = protocol.sender(&init).allowance().pacing else { return };
    let declares_rate = || Group::declared(&group.resolved).iter().any(|p| p.name == "rate");
    let own = if group.values.number("rate").is_some() || declares_rate() {
        format!(" at its `rate` ({})", show(rate.0 as f64, &quantity::RATE))
    } else {
        String::new()
    };
    let what = format!("`paced` has no effect on {}: {} paces its packets{own}", title(group), protocol.name());
    ctx.unused(place, "paced", what, "remove it");
}

/// Processing that takes so long that no link is full.
fn processing(ctx: &Context<'_>, scenario: &Scenario, group: &FlowGroup, data: &[u32], place: Place) {
    let Processing::UpTo(most) = group.processing else { return };
    let narrow = data.iter().map(|l| scenario.links[*l as usize].rate.0).min().unwrap_or(0) as f64;
    let flows: u64 = scenario.flows.iter().map(|g| g.count as u64).sum();
    // Half of it on average.
    let each = 16.0 * group.packet as f64 / most.as_secs_f64();
    let wanted = group.values.number("rate").unwrap_or(f64::INFINITY);
    if matches!(group.traffic, Traffic::Bulk) && each * (flows as f64) < narrow && each < wanted {
        let (each, narrow) = (show(each.round(), &quantity::RATE), show(narrow, &quantity::RATE));
        let title = title(group);
        let what = format!(
            "`processing` holds {title} to {each} each, and all flows together below the narrowest link ({narrow})"
        );
        ctx.warn(place, what, "write a shorter one, or `processing = \"auto\"`");
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
        ctx.unused(at(&["stop"]), "stop", what, "write an earlier `stop` or a longer `duration`");
    }
    match group.start {
        Start::Spread { over, .. } if group.count == 1 && over > Time::ZERO => {
            let what = format!("`spread` has no effect on `{name}`, which is one flow: it starts at the beginning");
            ctx.unused(at(&["start"]), "start", what, "write a larger `count`, or `uniform` in place of `spread`");
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
            ctx.unused(at(&["on_off"]), "on_off", what, "write a shorter `on` or a longer `duration`");
        }
        Traffic::Sessions { .. } => sessions(ctx, group, left, at),
        _ => {}
    }
}

/// Sessions that no end follows, or no other session. The flows last for `left`.
fn sessions(ctx: &Context<'_>, group: &FlowGroup, left: Time, at: &dyn Fn(&[&'static str]) -> Place) {
    let Traffic::Sessions { timeouts, pause, duration, random } = group.traffic else { return };
    let name = &group.name;
    let common = Common::of(&group.values);
    // The least time of that many timeouts in a row.
    let doubled = |i: u32| (common.least_rto() * (1u64 << i.min(60)) as f64).min(common.most_rto());
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
        ctx.unused(at(&["session"]), "session", what, "write fewer `timeouts`, or a `duration` of sessions");
    } else if !aborted && lasts.is_some_and(|lasts| lasts >= left) {
        let what = format!(
            "`session` has no effect on the flows of `{name}`: its `duration` is as long as they last ({})",
            written(left)
        );
        ctx.unused(at(&["session", "duration"]), "duration", what, "write a shorter `duration` of sessions");
    } else if pause.0 + lasts.unwrap_or(Time::ZERO) >= left {
        let (pause, left) = (written(pause.0), written(left));
        let what =
            format!("no second session of `{name}` begins: the `pause` ({pause}) lasts beyond the flows ({left})");
        ctx.unused(at(&["session", "pause"]), "pause", what, "write a shorter `pause` or a longer `duration`");
    }
}

/// Flows whose first packet does not arrive before the end, because the path is too long.
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
    let counts_packets = |p: &Param| p.name == "alpha" && p.unit == Unit::Packets;
    if !protocol.params().iter().any(counts_packets) || !matches!(group.traffic, Traffic::Bulk) {
        return;
    }
    let Some(routes) = phases.first_mut() else { return };
    let alpha = group.values.get(protocol.params(), "alpha");
    let mut crossing: BTreeMap<u32, u64> = BTreeMap::new();
    for (i, &ends) in group.ends.iter().enumerate() {
        let (data, _) = group.ways(ends, routes);
        let flows = group.flows_of_pair(i);
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

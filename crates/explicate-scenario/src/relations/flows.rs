//! Flows: settings that the traffic, the times or the path of a group make useless.

use explicate_core::endpoint::{self, Acks, Params};

use super::written;
use crate::document::Place;
use crate::model::{FlowGroup, Link, Queue, Scenario, Start, Traffic};
use crate::quantity::{self, show};
use crate::reader::{Context, Reader};
use crate::routing::Routes;
use crate::unused;

/// All groups of flows.
pub(crate) fn flows(ctx: &Context<'_>, reader: &Reader<'_>, scenario: &Scenario, phases: &mut [Routes]) {
    let end = scenario.duration;
    for (index, group) in scenario.flows.iter().enumerate() {
        let number = index.to_string();
        let place = |keys: &[&str]| {
            let path: Vec<&str> = ["flows", &number].into_iter().chain(keys.iter().copied()).collect();
            reader.at(&path)
        };
        let name = &group.name;
        if let (Traffic::Sized(_), Some(_)) = (group.traffic, group.stop) {
            let what = format!("`stop` has no effect on the flows of `{name}`, which end with their `size`");
            ctx.unused(place(&["stop"]), "stop", what, "remove one of them");
        }
        if let Start::Spread { from, over } | Start::Uniform { from, over } = group.start
            && from < end
            && from + over > end
            && group.count > 1
        {
            let last = written(from + over);
            let what = format!("some flows of `{name}` start after the end of the run: starts go up to {last}");
            ctx.warn(place(&["start"]), what, "write a shorter span or a longer `duration`");
        }
        if let Traffic::OnOff { on, random: false, .. } = group.traffic
            && on >= end
        {
            let what =
                format!("`on_off` has no effect on the flows of `{name}`: the first on-period is as long as the run");
            ctx.unused(place(&["on_off"]), "on_off", what, "write a shorter `on` or a longer `duration`");
        }
        of_params(ctx, scenario, group, phases, &|param| place(&["params", param]));
        of_marks(ctx, scenario, group, phases, &place);
        if let Some(written) = reader.find(&["flows", &number, "params", "host_queue"]) {
            of_host_queue(ctx, scenario, group, phases, written);
        }
    }
}

/// A host's queue where each link that the flows begin with has one of the scenario's.
fn of_host_queue(ctx: &Context<'_>, scenario: &Scenario, group: &FlowGroup, phases: &mut [Routes], written: Place) {
    let given = group.values.number("host_queue");
    let mut of_stack = group.resolved.stack.into_iter().flat_map(|stack| stack.sets(group.resolved.protocol));
    // A resolved scenario writes what the stack sets, too.
    if given.is_none() || of_stack.any(|(name, value)| name == "host_queue" && given == Some(value)) {
        return;
    }
    let Some(routes) = phases.first_mut() else { return };
    let first = |&ends: &(usize, usize)| group.ways(ends, routes).0.first().copied();
    let links: Vec<&Link> = group.ends.iter().filter_map(first).map(|l| &scenario.links[l as usize]).collect();
    if let Some(link) = links.first().filter(|_| links.iter().all(|link| !link.is_unqueued())) {
        let what = format!(
            "`host_queue` has no effect on the flows of `{}`: {} has a `queue` of the scenario's",
            group.name, link.name
        );
        ctx.unused(written, "host_queue", what, "remove one of them");
    }
}

/// Parameters of the ends of a group's connections.
fn of_params(
    ctx: &Context<'_>,
    scenario: &Scenario,
    group: &FlowGroup,
    phases: &mut [Routes],
    place: &dyn Fn(&str) -> Place,
) {
    if unused::one_way(group) {
        return;
    }
    let (name, params) = (&group.name, Params::of(&group.values));
    if params.initial_window > params.receiver_window {
        let (first, room) = (params.initial_window, params.receiver_window);
        let what =
            format!("the flows of `{name}` begin with {room} packets, not {first}: `receiver_window` is smaller");
        ctx.warn(place("initial_window"), what, "write a smaller `initial_window` or a larger `receiver_window`");
    }
    of_acks(ctx, group, &params, place);
    if params.scone && group.resolved.protocol.explicit() {
        let protocol = group.resolved.protocol.name();
        let what = format!("`scone` has no effect on the flows of `{name}`: {protocol}'s routers give them their rate");
        ctx.unused(place("scone"), "scone", what, "remove it, or use a protocol without explicit feedback");
        return;
    }
    let (Some(&ends), Some(routes)) = (group.ends.first(), phases.first_mut()) else { return };
    let (data, acks) = group.ways(ends, routes);
    let advises = |link: &u32| scenario.port(&scenario.links[*link as usize]).scone.is_some();
    if params.scone && !data.iter().any(advises) {
        let what = format!("`scone` has no effect on the flows of `{name}`: no port on their path advises");
        ctx.unused(place("scone"), "scone", what, "write `scone = { advise = \"measured\" }` for a link of it");
    }
    if is_given(group, "receiver_window") && matches!(group.traffic, Traffic::Bulk) {
        let rtt: f64 = data.iter().chain(&acks).map(|l| scenario.links[*l as usize].delay.as_secs_f64()).sum();
        let narrow = data.iter().map(|l| scenario.links[*l as usize].rate.0).min().unwrap_or(0) as f64;
        let share = params.receiver_window * group.packet as f64 * 8.0 / rtt;
        let others: u64 = scenario.flows.iter().map(|g| g.count as u64).sum();
        if share * (others as f64) < narrow {
            let (most, narrow) = (show(share.round(), &quantity::RATE), show(narrow, &quantity::RATE));
            let what = format!(
                "`receiver_window` holds the flows of `{name}` to {most} each, and all flows together below the narrowest link \
                 ({narrow})"
            );
            ctx.warn(place("receiver_window"), what, "write a larger one");
        }
    }
}

/// Marks of queues, and what makes the packets of a group ECN-capable.
fn of_marks(
    ctx: &Context<'_>,
    scenario: &Scenario,
    group: &FlowGroup,
    phases: &mut [Routes],
    place: &dyn Fn(&[&str]) -> Place,
) {
    if unused::one_way(group) {
        return;
    }
    let (Some(&ends), Some(routes)) = (group.ends.first(), phases.first_mut()) else { return };
    let marked = group.ways(ends, routes).0.iter().any(|link| marks(scenario, group, *link));
    let (name, protocol, params) = (&group.name, group.resolved.protocol, Params::of(&group.values));
    // TCP takes the place of a protocol that is refused.
    let own = protocol.own_ecn() && !params.refuse_explicit;
    let write = "write one that does on their path, like `queue = \"red\"`";
    for (key, _) in [("ecn", params.ecn), ("l4s", params.l4s)].into_iter().filter(|(_, set)| *set) {
        let place = place(&["params", key]);
        let no_effect = format!("`{key}` has no effect on the flows of `{name}`");
        if own {
            let what = format!("{no_effect}: {} writes ECN codes of its own", protocol.name());
            ctx.unused(place, key, what, "remove it, or use another protocol");
        } else if !marked {
            ctx.unused(place, key, format!("{no_effect}: no queue on their path marks"), write);
        }
    }
    if own && !protocol.explicit() && !marked {
        let what = format!(
            "the flows of `{name}` see losses only: {} follows marks, and no queue on their path marks",
            protocol.name()
        );
        ctx.warn(place(&["protocol"]), what, write);
    }
}

/// Whether the scenario sets this parameter of a group's ends.
fn is_given(group: &FlowGroup, param: &str) -> bool {
    endpoint::PARAMS.iter().any(|p| p.name == param) && group.values.number(param).is_some()
}

/// How receivers acknowledge.
fn of_acks(ctx: &Context<'_>, group: &FlowGroup, params: &Params, place: &dyn Fn(&str) -> Place) {
    let name = &group.name;
    let by_linux = params.acks == Acks::Linux;
    for param in ["ack_every", "ack_delay", "quick_acks"].into_iter().filter(|p| is_given(group, p) && by_linux) {
        let what = format!("`{param}` has no effect on the flows of `{name}` with `acks = \"linux\"`");
        ctx.unused(place(param), param, what, "remove it, or write `acks = \"counted\"`");
    }
    let at_once = params.ack_every <= 1.0 && !by_linux;
    for param in ["ack_delay", "quick_acks"].into_iter().filter(|p| is_given(group, p) && at_once) {
        let what = format!("`{param}` has no effect on the flows of `{name}` without `ack_every` above 1");
        ctx.unused(place(param), param, what, "write `ack_every = 2`, or remove it");
    }
}

/// Whether the port of a link marks packets of a group.
fn marks(scenario: &Scenario, group: &FlowGroup, link: u32) -> bool {
    let port = scenario.port(&scenario.links[link as usize]);
    let class = port.class_of(group.resolved.protocol.congestion_header());
    let queue = port.classes.get(class).map_or(port.queue.as_ref(), |c| c.queue.as_ref());
    let marking = |q: &Queue| {
        let params = q.kind.params();
        q.kind.marks() && params.iter().all(|p| p.name != "mark" || q.values.get(params, "mark") != 0.0)
    };
    queue.is_some_and(marking) || !port.routers_of(class).is_empty()
}

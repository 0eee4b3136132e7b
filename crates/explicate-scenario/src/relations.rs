//! Settings of which one makes another useless. The run would say nothing: a discipline whose target its queue never reaches
//! is drop-tail under another name. They are looked for when `auto` and `bdp` have values; queue disciplines state theirs
//! beside their parameters ([`explicate_core::qdisc::QdiscKind::conflicts`]). One warning a cause, with its line and what to
//! write.

use std::collections::{BTreeMap, BTreeSet};

use explicate_core::endpoint::{self, Acks, HostQueue, Params};
use explicate_core::medium::Obstacle;
use explicate_core::params::{Conflict, Param, Unit};
use explicate_core::qdisc::ResolvedQueue;
use explicate_core::units::{Rate, Time};

use crate::document::{Data, Place, some};
use crate::ends::Crossing;
use crate::graph::Graph;
use crate::model::{FlowGroup, Link, Queue, Scenario, Size, Start, Traffic};
use crate::params::{Chosen, Given};
use crate::parts::{self, Router};
use crate::props::Props;
use crate::quantity::{self, show};
use crate::reader::{Context, Reader};
use crate::routing::Routes;
use crate::unused;

fn written(time: Time) -> String {
    show(time.0 as f64, &quantity::TIME)
}

// ------------------------------------------------------------------------------------------------- queues

/// The queues of a port with what was written for them, and the share of the line that each has.
fn of_port<'a>(link: &'a Link, props: &'a Props) -> Vec<(&'a Queue, Option<&'a parts::Queue>, f64)> {
    let own = link.queue.iter().map(|queue| (queue, props.queue.as_ref(), 1.0));
    let sum: f64 = link.classes.iter().map(|class| class.weight).sum();
    let of_classes = link.classes.iter().zip(props.classes.iter().flatten()).filter_map(|(class, written)| {
        Some((class.queue.as_ref()?, written.queue.as_ref().or(props.queue.as_ref()), class.weight / sum))
    });
    own.chain(of_classes).collect()
}

/// Parameters of disciplines that make each other useless, and limits that hold no packet, or one. A port that only
/// acknowledgements cross is not looked at.
pub(crate) fn queues(ctx: &Context<'_>, graph: &Graph, scenario: &Scenario, crossings: &[Crossing]) {
    let mut at_station: BTreeMap<(usize, usize), Crossing> = BTreeMap::new();
    let mut ports: Vec<(&Link, &Props, Crossing)> = Vec::new();
    for ((link, draft), crossing) in scenario.links.iter().zip(&graph.links).zip(crossings) {
        match link.over {
            Some(over) => {
                let sum = at_station.entry((over.medium, over.from)).or_default();
                *sum = sum.with(crossing);
            }
            None => ports.push((link, &graph.props[draft.props].props, *crossing)),
        }
    }
    for ((medium, station), crossing) in &at_station {
        let port = &scenario.media[*medium].stations[*station].interface;
        ports.push((port, &graph.media[*medium].stations[*station].props, *crossing));
    }
    let mut found: Vec<(Place, &str, Conflict, Vec<&str>)> = Vec::new();
    for (link, props, crossing) in ports {
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

// ---------------------------------------------------------------------------------------------------- times

/// Settings that begin after the end of the run, or end before they begin.
pub(crate) fn over_time(ctx: &Context<'_>, reader: &Reader<'_>, graph: &Graph, scenario: &Scenario) {
    let end = scenario.duration;
    let run = written(end);
    if let Some(every) = scenario.sampling.every.filter(|every| *every > end) {
        let what = format!("nothing is sampled: `every` ({}) is longer than the run ({run})", written(every));
        ctx.warn(reader.at(&["sampling", "every"]), what, "write a shorter `every` or a longer `duration`");
    }
    let stations = graph.media.iter().flat_map(|m| m.stations.iter().map(|s| &s.props));
    let mut seen = BTreeSet::new();
    for props in graph.props.iter().map(|shared| &shared.props).chain(stations) {
        if !props.place.is_none_or(|place| seen.insert(place)) {
            continue;
        }
        let after = |time: &Time| *time >= end;
        for channel in props.channel.iter().flatten() {
            of_channel(ctx, channel, end);
        }
        if let Some(late) = props.capacity.iter().flat_map(|c| c.over(Rate(1), Rate(1)).1).map(|s| s.0).find(after) {
            let what = format!("the step of `capacity` at {} comes after the end of the run ({run})", written(late));
            ctx.warn(props.at("capacity"), what, "write an earlier `at` or a longer `duration`");
        }
        let written_queues = props.queue.iter().chain(props.classes.iter().flatten().filter_map(|c| c.queue.as_ref()));
        for chosen in
            written_queues.filter_map(|q| if let parts::Queue::Kind(_, chosen) = q { Some(chosen) } else { None })
        {
            intervals(ctx, chosen, end);
        }
        let routers = props.router.iter().chain(props.classes.iter().flatten().filter_map(|c| c.router.as_ref()));
        for chosen in routers.filter_map(|r| if let Router::Of(_, chosen) = r { Some(chosen) } else { None }) {
            intervals(ctx, chosen, end);
        }
        if let [only] = props.classes.as_deref().unwrap_or_default()
            && only.weight != 1.0
        {
            let what = "`weight` has no effect, because there is one class";
            ctx.unused(props.at("classes"), "weight", what, "add another, or remove it");
        }
    }
    for (m, medium) in graph.media.iter().enumerate() {
        let Some(i) = medium.interferers.iter().position(|i| !i.random && i.off >= end) else { continue };
        let name = &medium.name;
        let what =
            format!("an interferer of `{name}` never sends: its first pause, `off`, lasts as long as the run ({run})");
        let place = reader.at(&["medium", &m.to_string(), "interferer", &i.to_string(), "off"]);
        ctx.warn(place, what, "write a shorter `off` or a longer `duration`");
    }
}

/// Intervals of queues and controllers that do not end within the run.
fn intervals(ctx: &Context<'_>, chosen: &[Chosen], end: Time) {
    let long = chosen.iter().filter(|c| c.param.unit == Unit::Seconds && c.param.name.ends_with("interval"));
    for c in long.filter(|c| !c.param.name.starts_with("max")) {
        if let Given::Number(seconds) = c.given
            && seconds >= end.as_secs_f64()
        {
            let name = c.param.name;
            let what = format!("nothing happens at the end of an `{name}` that is as long as the run");
            ctx.warn(c.place, what, format!("write a shorter `{name}` or a longer `duration`"));
        }
    }
}

/// A channel that never applies, or always.
fn of_channel(ctx: &Context<'_>, channel: &parts::Channel, end: Time) {
    let (kind, params) = (channel.kind.name(), channel.kind.params());
    let given = |name: &str| channel.chosen.iter().find(|c| c.param.name == name);
    let number = |name: &str| match given(name)?.given {
        Given::Number(x) => Some(x),
        _ => None,
    };
    let warn = |name: &str, what: String, write: &str| {
        if let Some(c) = given(name) {
            ctx.warn(c.place, format!("the channel `{kind}` {what}"), write);
        }
    };
    let seconds = end.as_secs_f64();
    let run = written(end);
    if number("start").is_some_and(|start| start >= seconds) {
        let what = format!("never begins: its `start` is not before the end of the run ({run})");
        return warn("start", what, "write an earlier `start` or a longer `duration`");
    }
    let declared = |name: &str| params.iter().any(|p: &Param| p.name == name);
    if declared("up") && declared("down") {
        let up = channel.values().get(params, "up");
        if channel.values().get(params, "random") == 0.0 && up >= seconds {
            let name = if given("up").is_some() { "up" } else { "down" };
            let what = format!(
                "never applies: its first outage comes after `up`, which is not before the end of the run ({run})"
            );
            warn(name, what, "write a shorter `up` or a longer `duration`");
        }
    }
    if number("rate") == Some(0.0) && number("bit_error_rate").is_none_or(|rate| rate == 0.0) {
        // A resolved scenario writes defaults, too.
        let set = |c: &Chosen| !matches!(c.given, Given::Number(x) if x == c.param.default);
        let others = channel.chosen.iter().filter(|c| !["rate", "bit_error_rate"].contains(&c.param.name));
        if others.into_iter().any(set) {
            let what = "applies to no packet, so its other parameters have no effect: its `rate` is 0".to_string();
            warn("rate", what, "write a `rate` above 0, such as \"1%\", or remove the channel");
        }
    }
    for c in &channel.chosen {
        let Given::Steps(steps) = &c.given else { continue };
        if let Some((late, _)) = steps.iter().find(|(at, _)| *at >= end) {
            let late = written(*late);
            let what = format!("the step of `{kind}` at {late} comes after the end of the run ({run})");
            ctx.warn(c.place, what, "write an earlier `at` or a longer `duration`");
        }
    }
}

// ---------------------------------------------------------------------------------------------------- flows

/// Settings of flows of which one makes another useless.
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
    let given = |param: &str| endpoint::PARAMS.iter().any(|p| p.name == param) && group.values.number(param).is_some();
    if params.initial_window > params.receiver_window {
        let (first, room) = (params.initial_window, params.receiver_window);
        let what =
            format!("the flows of `{name}` begin with {room} packets, not {first}: `receiver_window` is smaller");
        ctx.warn(place("initial_window"), what, "write a smaller `initial_window` or a larger `receiver_window`");
    }
    let by_linux = params.acks == Acks::Linux;
    for param in ["ack_every", "ack_delay", "quick_acks"].into_iter().filter(|p| given(p) && by_linux) {
        let what = format!("`{param}` has no effect on the flows of `{name}` with `acks = \"linux\"`");
        ctx.unused(place(param), param, what, "remove it, or write `acks = \"counted\"`");
    }
    let at_once = params.ack_every <= 1.0 && !by_linux;
    for param in ["ack_delay", "quick_acks"].into_iter().filter(|p| given(p) && at_once) {
        let what = format!("`{param}` has no effect on the flows of `{name}` without `ack_every` above 1");
        ctx.unused(place(param), param, what, "write `ack_every = 2`, or remove it");
    }
    let (Some(&ends), Some(routes)) = (group.ends.first(), phases.first_mut()) else { return };
    let (data, acks) = group.ways(ends, routes);
    let header = group.resolved.protocol.congestion_header();
    let port = |link: &u32| scenario.port(&scenario.links[*link as usize]);
    if params.ecn {
        let marks = |link: &u32| {
            let port = port(link);
            let class = port.class_of(header);
            let queue = port.classes.get(class).map_or(port.queue.as_ref(), |c| c.queue.as_ref());
            let marking = |q: &Queue| {
                let params = q.kind.params();
                params.iter().any(|p| p.name == "mark") && q.values.get(params, "mark") != 0.0
            };
            queue.is_some_and(marking) || !port.routers_of(class).is_empty()
        };
        if !data.iter().any(marks) {
            let what = format!("`ecn` has no effect on the flows of `{name}`: no queue on their path marks");
            ctx.unused(place("ecn"), "ecn", what, "write one that does on their path, like `queue = \"red\"`");
        }
    }
    if given("receiver_window") && matches!(group.traffic, Traffic::Bulk) {
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

// ---------------------------------------------------------------------------------------------------- hosts

/// Hosts whose own links are the slowest of a path, with unlimited queues. A sender that backs off after losses only has none
/// there, and fills the queue until the end of the run. Returns these links.
pub(crate) fn hosts(
    ctx: &Context<'_>,
    reader: &Reader<'_>,
    graph: &Graph,
    scenario: &Scenario,
    crossings: &[Crossing],
    phases: &mut [Routes],
) -> BTreeSet<usize> {
    let mut slow: BTreeSet<usize> = BTreeSet::new();
    let Some(routes) = phases.first_mut() else { return slow };
    for group in &scenario.flows {
        if !grows(group, scenario.duration) {
            continue;
        }
        for &ends in &group.ends {
            let (data, _) = group.ways(ends, routes);
            let Some((&first, rest)) = data.split_first() else { continue };
            let link = &scenario.links[first as usize];
            let narrowest = rest.iter().map(|l| scenario.links[*l as usize].rate).min();
            let steady = || {
                let channels = graph.props[graph.links[first as usize].props].props.channel.iter().flatten();
                link.shares_with.is_none() && channels.into_iter().all(|c| c.stages(link.rate).service.is_none())
            };
            let pushes_back = Params::of(&group.values).host_queue != HostQueue::None && steady();
            let slowest = narrowest.is_some_and(|rate| link.rate <= rate);
            let unlimited = link.is_unqueued();
            if slowest
                && unlimited
                && !link.controls(group)
                && !pushes_back
                && crossings[first as usize].wants_more_than(0.9 * link.rate.0 as f64)
            {
                slow.insert(first as usize);
            }
        }
    }
    let Some(&first) = slow.first() else { return slow };
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
    slow
}

// --------------------------------------------------------------------------------------------------- media

/// Links over a medium that carry nothing: stations too far apart, rates that noise destroys, packets longer than a frame.
pub(crate) fn media(ctx: &Context<'_>, reader: &Reader<'_>, scenario: &Scenario, crossings: &[Crossing]) {
    let mut said = BTreeSet::new();
    for (link, crossing) in scenario.links.iter().zip(crossings) {
        let (Some(over), Some(largest)) = (link.over, crossing.largest()) else { continue };
        let (medium, name) = (&scenario.media[over.medium], &link.name);
        let place = |keys: &[&str]| {
            let number = over.medium.to_string();
            let path: Vec<&str> = ["medium", &number].into_iter().chain(keys.iter().copied()).collect();
            reader.at(&path)
        };
        let longest = medium.kind.longest_packet() as f64;
        if largest > longest && said.insert((over.medium, "packet")) {
            let what = format!(
                "packets of up to {largest:.0}B cross {name}, but a frame of `{}` carries {longest:.0}B (802.11 does not allow \
                 longer ones)",
                medium.name
            );
            ctx.warn(place(&[]), what, "write a smaller `packet` for the flows there");
        }
        let (a, b) = (medium.stations[over.from].at, medium.stations[over.to].at);
        let metres = libm::hypot(a.0 - b.0, a.1 - b.1);
        let far = show(metres.round(), &quantity::DISTANCE);
        match medium.kind.obstacle(&medium.values, metres, link.rate, largest as u16) {
            Some(Obstacle::Distance(range)) if said.insert((over.medium, "range")) => {
                let range = show(range, &quantity::DISTANCE);
                let why = format!(
                    "{name}: no frame arrives, because the stations are {far} apart and `decode_range` is {range}"
                );
                // A longer `reach` asks for such links.
                if metres <= medium.kind.reach(&medium.values) {
                    ctx.warn(place(&["reach"]), why, "write a shorter `reach`, or a longer `decode_range`");
                } else {
                    let message = format!("{why}; write a shorter `spacing`, or a longer `decode_range`");
                    ctx.error(place(&["layout", "spacing"]), message);
                }
            }
            Some(Obstacle::Noise) if said.insert((over.medium, "noise")) => {
                let rate = show(link.rate.0 as f64, &quantity::RATE);
                let what = format!("{name}: noise destroys nearly every frame at {rate} over {far}");
                ctx.warn(place(&["rate"]), what, "write a lower `rate`, a shorter distance, or `adaptation = \"arf\"`");
            }
            _ => {}
        }
    }
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

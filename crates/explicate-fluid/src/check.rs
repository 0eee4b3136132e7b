//! Rejects settings that no fluid model covers, with their location in the scenario.

use explicate_core::api::AnyProtocol;
use explicate_core::channel::common::placing::{Of, Place};
use explicate_core::channel::random_loss::{self, Distribution};
use explicate_core::endpoint;
use explicate_core::qdisc::red;
use explicate_core::recovery;
use explicate_core::registry;
use explicate_scenario::model::{FlowGroup, Link, Queue, Scenario, Size, Start, Traffic};
use explicate_scenario::problem::{Problem, Problems};
use explicate_scenario::{is_written, locate};

use crate::models::{MODELS, model};

/// An unsupported setting: possible paths of its key, the most likely first, and a message.
struct Refusal(Vec<String>, String);

/// Reports what the models do not support. `text`, `origin` and `overrides` are the source of the scenario.
///
/// # Errors
/// All unsupported settings, each with its location.
pub fn check(scenario: &Scenario, text: &str, origin: &str, overrides: &[(String, String)]) -> Result<(), Problems> {
    let mut refusals = Vec::new();
    if !scenario.media.is_empty() {
        refusals.push(Refusal(vec!["medium".into()], "a shared medium has no fluid model; use wired links".into()));
    }
    if !scenario.reroutes.is_empty() {
        refusals.push(Refusal(vec!["reroute".into()], "a fluid's routes do not change; remove [[reroute]]".into()));
    }
    let is_written = |key: &str| is_written(text, overrides, key);
    scenario.flows.iter().for_each(|group| of_group(group, &is_written, &mut refusals));
    scenario.links.iter().filter(|l| l.over.is_none()).for_each(|link| of_link(scenario, link, &mut refusals));
    // A generated topology has the same line for each of its links: one message is enough.
    let mut problems: Vec<Problem> = Vec::new();
    for Refusal(keys, message) in refusals {
        let site = locate(text, origin, overrides, &keys);
        if !problems.iter().any(|p| p.site == site) {
            problems.push(Problem { site, message: format!("--fluid: {message}") });
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(Problems(problems)) }
}

/// Whether a parameter has its value from the group's stack: the models use what they can of a stack, and leave out the rest. A
/// group that names its stack may repeat what that sets, as resolved scenarios do.
fn is_of_stack(group: &FlowGroup, param: &str, is_written: &dyn Fn(&str) -> bool) -> bool {
    let at = |key: &str| is_written(&format!("flows.{}.{key}", group.name));
    let mut sets = group.resolved.stack.into_iter().flat_map(|stack| stack.sets(group.resolved.protocol));
    let same = sets.any(|(name, value)| name == param && group.values.number(param) == Some(value));
    same && (at("stack") || !at(&format!("params.{param}")))
}

fn of_group(group: &FlowGroup, is_written: &dyn Fn(&str) -> bool, refusals: &mut Vec<Refusal>) {
    let mut refuse = |key: &str, message: String| {
        let keys = vec![format!("flows.{}.{key}", group.name), format!("flows.{}", group.name)];
        refusals.push(Refusal(keys, message));
    };
    let protocol = group.resolved.protocol;
    let Some(model) = model(protocol.name()) else {
        let known: Vec<&str> = MODELS.iter().map(|m| m.protocol()).collect();
        let known = known.join(", ");
        return refuse("protocol", format!("`{}` has no fluid model; there are {known}", protocol.name()));
    };
    if !group.resolved.recovery.reliable() {
        refuse("protocol", "flows without retransmission have no fluid model".to_string());
    }
    if let Some((param, remedy)) = model.refuses(&group.values) {
        refuse(&format!("params.{param}"), format!("`{param}` is not covered: {remedy}"));
    }
    let flow = endpoint::Params::of(&group.values);
    let tick = recovery::Common::of(&group.values).clock();
    // A rule of the timer has a clock of its own.
    let clock = if group.values.number("clock_tick").is_some() { "clock_tick" } else { "rto" };
    let given = [
        ("acks", flow.acks != endpoint::Acks::Counted, "every packet is acknowledged"),
        ("ack_every", flow.ack_every != 1.0, "every packet is acknowledged"),
        ("refuse_explicit", flow.refuse_explicit, "in a fluid both ends support the protocol"),
        ("scone", flow.scone, "no element advises a fluid"),
        ("ecn", flow.ecn && !model.reacts_to_marks(), "its model does not react to marks"),
        ("rtt_resolution", flow.rtt_resolution.is_some_and(|span| span > 0.0), "round trips are exact"),
        (clock, tick != 0.0, "clocks are exact"),
        ("host_queue", flow.host_queue != endpoint::HostQueue::None, "hosts have no queues"),
    ];
    for (param, wrong, what) in given {
        if wrong && !is_of_stack(group, param, is_written) {
            refuse(&format!("params.{param}"), format!("`{param}` is not covered: {what}"));
        }
    }
    for param in ["variant", "hystart", "growth", "after_idle"] {
        let set = group.values.number(param).is_some_and(|word| word != 0.0);
        if set && !is_of_stack(group, param, is_written) {
            refuse(&format!("params.{param}"), format!("`{param}` is not covered: the model has its own rules"));
        }
    }
    match group.traffic {
        Traffic::Bulk | Traffic::Sized(Size::Fixed(_)) => {}
        Traffic::Sized(_) => refuse("size", "random sizes are not covered; give one size".to_string()),
        Traffic::OnOff { .. } => refuse("on_off", "on-periods are not covered; use `start` and `stop`".to_string()),
        Traffic::Sessions { .. } => refuse("session", "sessions are not covered".to_string()),
    }
    if let Start::Poisson { .. } = group.start {
        refuse("arrivals", "random arrivals are not covered; use `count` and `start`".to_string());
    }
}

fn of_link(scenario: &Scenario, link: &Link, refusals: &mut Vec<Refusal>) {
    let mut refuse = |key: &str, message: String| refusals.push(Refusal(places(scenario, link, key), message));
    let name = &link.name;
    if !link.classes.is_empty() {
        refuse("classes", format!("`{name}` has classes of packets; a fluid's ports have one queue"));
    }
    if link.divides() {
        refuse("share_by_flows", format!("`{name}` has two queues; a fluid's ports have one"));
    }
    if link.shares_with.is_some() {
        refuse("half_duplex", format!("`{name}` is half duplex; the links of a fluid are independent"));
    }
    if !link.capacity_steps.is_empty() {
        refuse("capacity", format!("the capacity configured at `{name}` changes; in a fluid it is constant"));
    }
    if link.measured.is_some() {
        refuse("capacity", format!("`{name}` measures its capacity; in a fluid it is configured"));
    }
    if link.clock_tick.0 > 0 {
        refuse("clock_tick", format!("`{name}` has a `clock_tick`; a fluid's clock is exact"));
    }
    if link.scone.is_some() {
        refuse("scone", format!("`{name}` has a SCONE element; a fluid has no packets that it could write into"));
    }
    for channel in &link.channel {
        let kind = channel.kind.name();
        if kind == "random_loss" {
            let params = random_loss::Params::of(&channel.values);
            let set = [
                ("distribution", params.distribution != Distribution::Uniform),
                ("correlation", params.correlation != 0.0),
                ("start", params.start != 0.0),
                ("most", params.most != 0.0),
                ("place", params.placing.place != Place::Air),
            ];
            for (param, _) in set.iter().filter(|(_, set)| *set) {
                refuse("channel", format!("`{name}` sets `{param}`; a fluid loses a constant share"));
            }
        } else if kind != "wire" {
            refuse("channel", format!("the channel `{kind}` of `{name}` has no fluid model; there is `random_loss`"));
        }
    }
    if let Some(queue) = &link.queue {
        of_queue(name, queue, scenario, &mut refuse);
    }
    if let [spec] = &link.routers[..] {
        let has = |p: &AnyProtocol| p.name() == spec.protocol.name();
        let answered = |g: &&FlowGroup| {
            let protocol = g.resolved.protocol;
            protocol.congestion_header() && !registry::controller(protocol).is_some_and(has)
        };
        if spec.protocol.congestion_header() && scenario.flows.iter().any(|g| answered(&g)) {
            let router = spec.protocol.name();
            refuse(
                "router",
                format!("`{name}` has the router `{router}`; a fluid model needs the router of its own protocol"),
            );
        }
    }
}

fn of_queue(name: &str, queue: &Queue, scenario: &Scenario, refuse: &mut dyn FnMut(&str, String)) {
    let kind = queue.kind.name();
    let red = red::Params::of(&queue.values);
    // The load codes of the protocol use the bits of ECN.
    let is_coded = |g: &&FlowGroup| g.resolved.protocol.explicit() && !g.resolved.protocol.congestion_header();
    let coded = || scenario.flows.iter().find(is_coded);
    match kind {
        "droptail" => {}
        "red" if red.ns2 => refuse("queue", format!("`ns2` of `{name}`'s queue has no fluid model")),
        "red" => {
            if red.mark && red.drop_above < 1.0 {
                refuse("queue", format!("`drop_above` of `{name}`'s queue has no fluid model"));
            }
            if let Some(group) = coded().filter(|_| red.mark) {
                let (group, protocol) = (&group.name, &group.protocol);
                refuse("queue", format!("`{name}` marks `{group}`'s {protocol} packets; set `mark = false`"));
            }
        }
        "step" => {
            if let Some(group) = coded() {
                let (group, protocol) = (&group.name, &group.protocol);
                refuse("queue", format!("`{name}` marks `{group}`'s {protocol} packets; use another queue"));
            }
        }
        _ => {
            let known = "there are droptail, red and step";
            refuse("queue", format!("the queue `{kind}` of `{name}` has no fluid model; {known}"));
        }
    }
}

/// Possible paths of a key of a link.
fn places(scenario: &Scenario, link: &Link, key: &str) -> Vec<String> {
    let (from, to) = (&scenario.nodes[link.from], &scenario.nodes[link.to]);
    let router = |name: &str| name.strip_prefix('r').is_some_and(|n| n.parse::<u32>().is_ok());
    let middle = router(from) && router(to);
    let generated = if middle { ["bottleneck", "link", "access"] } else { ["access", "bottleneck", "link"] };
    let own = [format!("link.{}.{key}", link.name), format!("link.{to}->{from}.{key}")];
    let of_generator = generated.iter().map(|section| format!("topology.{section}.{key}"));
    own.into_iter().chain(of_generator).chain([format!("link.{}", link.name), "topology".to_string()]).collect()
}

/// Shares of data and of acknowledgements that a link's channels lose.
pub(crate) fn losses(link: &Link) -> (f64, f64) {
    let mut passes = (1.0, 1.0);
    for channel in link.channel.iter().filter(|c| c.kind.name() == "random_loss") {
        let params = random_loss::Params::of(&channel.values);
        let of = params.placing.selection.of;
        passes.0 *= if of == Of::Acks { 1.0 } else { 1.0 - params.rate };
        passes.1 *= if of == Of::Data { 1.0 } else { 1.0 - params.rate };
    }
    (1.0 - passes.0, 1.0 - passes.1)
}

//! Settings that begin after the end of the run, or end before they begin.

use std::collections::BTreeSet;

use explicate_core::params::{Param, Unit};
use explicate_core::units::{Rate, Time};

use super::written;
use crate::graph::Graph;
use crate::model::Scenario;
use crate::params::{Chosen, Given};
use crate::parts::{self, Router};
use crate::props::Props;
use crate::reader::{Context, Reader};

/// All of a scenario.
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
        of_props(ctx, props, end);
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

/// Steps, channels and intervals of a link, and a weight beside no other.
fn of_props(ctx: &Context<'_>, props: &Props, end: Time) {
    let after = |time: &Time| *time >= end;
    for channel in props.channel.iter().flatten() {
        of_channel(ctx, channel, end);
    }
    if let Some(late) = props.capacity.iter().flat_map(|c| c.over(Rate(1), Rate(1)).1).map(|s| s.0).find(after) {
        let what =
            format!("the step of `capacity` at {} comes after the end of the run ({})", written(late), written(end));
        ctx.warn(props.at("capacity"), what, "write an earlier `at` or a longer `duration`");
    }
    let written_queues = props.queue.iter().chain(props.classes.iter().flatten().filter_map(|c| c.queue.as_ref()));
    for chosen in written_queues.filter_map(|q| if let parts::Queue::Kind(_, chosen) = q { Some(chosen) } else { None })
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

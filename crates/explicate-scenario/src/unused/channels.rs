//! Channels that no such packet crosses, whose effect does not fit into the run, or whose states do not differ.

use explicate_core::params::{Param, Unit};

use super::{Load, names, seconds, written};
use crate::document::Place;
use crate::ends::Crossing;
use crate::model::Scenario;
use crate::needs::{self, Part};
use crate::parts::Channel;
use crate::props::Props;
use crate::reader::Context;

/// Channels of links with the same settings, of which none has such packets; and those whose effect does not fit into the run.
pub(super) fn check(
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
            ctx.unused(place, kind, what, format!("{write}, or use the link of the other direction"));
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
            ctx.unused(place, name, what, format!("write a longer `{name}`, such as \"5ms\", or remove the channel"));
        }
    }
    if let (Some(place), Some(_)) = (given("period"), params.iter().find(|p| p.name == "period")) {
        let period = values.get(params, "period");
        if period.is_finite() && period >= scenario.duration.as_secs_f64() {
            let what = format!(
                "the steps of `{kind}` do not repeat: its `period` ({}) is as long as the run ({run})",
                seconds(period)
            );
            ctx.unused(place, "period", what, "write a shorter `period` or a longer `duration`");
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
        ctx.unused(place, "most", what, "write a smaller `most`, or remove it");
    }
}

/// States of a channel that differ in nothing, or that it never reaches.
fn states(ctx: &Context<'_>, channel: &Channel, given: &dyn Fn(&str) -> Option<Place>) {
    let (kind, params, values) = (channel.kind.name(), channel.kind.params(), channel.values());
    let of = |name: &str| values.get(params, name);
    match kind {
        "gilbert_elliott" if of("loss_good") == of("loss_bad") => {
            if let Some(place) = given("loss_bad").or_else(|| given("loss_good")) {
                let what = format!("the states of `{kind}` do not differ: `loss_good` and `loss_bad` are the same");
                ctx.unused(place, "loss_bad", what, "write a larger `loss_bad`, or the channel `random_loss`");
            }
        }
        "fading" => {
            // Of some parameters the first that is written.
            let unused = |names: &[&'static str], why: &str, write: &str| {
                let written = names.iter().find(|name| values.number(name).is_some());
                if let Some((name, place)) = written.and_then(|name| Some((*name, given(name)?))) {
                    ctx.unused(place, name, format!("`{name}` of `{kind}` has no effect{why}"), write);
                }
            };
            let (clear, blocked) = (word(channel, "good") == Some("clear"), word(channel, "bad") == Some("blocked"));
            if clear && blocked {
                let why = " with `good = \"clear\"` and `bad = \"blocked\"`";
                unused(&["snr", "antennas", "interference"], why, "remove it, or write `good = \"fading\"`");
            }
            if of("gamma") == 1.0 {
                let why = ": with `gamma = 1` the good state never ends";
                unused(&["fade", "beta", "bad", "rician_bad"], why, "write a smaller `gamma`, or remove it");
            }
            if !clear && !blocked && of("fade") == 0.0 && of("rician_good") == of("rician_bad") {
                let why = ": the states do not differ with `fade = 0`";
                unused(&["gamma", "beta"], why, "write a larger `fade`, or remove it");
            }
            if of("fec_data") == 1.0 && of("fec_ack") == 1.0 {
                let why = ": with `fec_data` and `fec_ack` 1 there is no code";
                unused(&["code"], why, "write a smaller `fec_data`, or remove it");
            }
        }
        _ => {}
    }
}

//! The links of a resolved scenario with every setting, as JSON: what an exporter has to write, or to report as lost.

use explicate_core::params::{Param, Values};
use explicate_core::units::{Rate, Time};
use serde_json::{Value, json};

use crate::document::quoted;
use crate::model::{ChannelSpec, Class, Link, Medium, Queue, RouterSpec, Scenario};
use crate::{params, quantity, scone, steps};

/// Every link with its settings, and the settings of the scenario that concern all links. Each parameter and each
/// further setting has its name, its text as a scenario writes it, and whether it is the default; lengths of queues
/// are in bytes, as the link resolves them. Automatic queues and controllers are those that a run has.
pub fn links(scenario: &Scenario) -> Value {
    let names: Vec<&str> = scenario.links.iter().map(|l| l.name.as_str()).collect();
    let without = |indices: &[usize]| -> Vec<&str> { indices.iter().map(|i| names[*i]).collect() };
    json!({
        "links": scenario.links.iter().map(|l| link(scenario, l)).collect::<Vec<_>>(),
        "reroutes": scenario.reroutes.iter().map(|r| json!({
            "at": time_text(r.at), "without": without(&r.without),
        })).collect::<Vec<_>>(),
        "sweep": scenario.sweep.iter().map(|(key, _)| key).collect::<Vec<_>>(),
    })
}

fn link(scenario: &Scenario, link: &Link) -> Value {
    // Every field by its name: a new one has to be written here.
    let Link {
        name,
        part,
        from,
        to,
        rate,
        delay,
        capacity,
        capacity_steps,
        measured,
        shares_with,
        queue,
        routers,
        classes,
        kappa,
        by_flows,
        channel,
        clock_tick,
        scone,
        over,
    } = link;
    let mut configured = vec![rate_text(*capacity)];
    configured.extend(capacity_steps.iter().map(|(at, rate)| format!("{} from {}", rate_text(*rate), time_text(*at))));
    configured.extend(measured.map(|params| steps::Capacity::Measured(params).written()));
    json!({
        "name": name,
        "part": part,
        "from": scenario.nodes[*from],
        "to": scenario.nodes[*to],
        "rate_bps": rate.0,
        "delay_ns": delay.0,
        "queue": queue.as_ref().map(queue_of),
        "routers": routers.iter().map(router).collect::<Vec<_>>(),
        "classes": classes.iter().map(class).collect::<Vec<_>>(),
        "channels": channel.iter().map(channel_of).collect::<Vec<_>>(),
        "medium": over.as_ref().map(|over| medium(&scenario.media[over.medium])),
        "settings": [
            setting("capacity", configured.join(", "), capacity == rate && capacity_steps.is_empty() && measured.is_none()),
            setting("half_duplex", shares_with.is_some().to_string(), shares_with.is_none()),
            setting("kappa", kappa.to_string(), *kappa == 0.0),
            setting("share_by_flows", by_flows.to_string(), !by_flows),
            setting("clock_tick", time_text(*clock_tick), *clock_tick == Time::ZERO),
            setting("scone", scone.map_or_else(|| "none".to_string(), scone::text), scone.is_none()),
        ],
    })
}

fn time_text(time: Time) -> String {
    quantity::show(time.0 as f64, &quantity::TIME)
}

fn rate_text(rate: Rate) -> String {
    quantity::show(rate.0 as f64, &quantity::RATE)
}

fn setting(name: &str, text: String, default: bool) -> Value {
    json!({ "name": name, "text": text, "default": default })
}

fn queue_of(queue: &Queue) -> Value {
    let Queue { kind, values, mean_packet } = queue;
    json!({ "kind": kind.name(), "mean_packet": mean_packet, "params": parameters(kind.params(), values) })
}

fn router(router: &RouterSpec) -> Value {
    let RouterSpec { protocol, values } = router;
    json!({ "kind": protocol.name(), "params": parameters(protocol.router_params(), values) })
}

fn class(class: &Class) -> Value {
    let Class { matches, queue, routers, weight } = class;
    json!({
        "match": matches.word(),
        "weight": weight,
        "queue": queue.as_ref().map(queue_of),
        "routers": routers.iter().map(router).collect::<Vec<_>>(),
    })
}

fn channel_of(channel: &ChannelSpec) -> Value {
    let ChannelSpec { kind, values } = channel;
    json!({ "kind": kind.name(), "params": parameters(kind.params(), values) })
}

fn medium(medium: &Medium) -> Value {
    json!({ "name": medium.name, "kind": medium.kind.name() })
}

/// Every parameter; `value` is null if it is no finite number.
fn parameters(declared: &[Param], values: &Values) -> Vec<Value> {
    let one = |param: &Param| {
        if params::is_content(param) {
            let recorded = values.file.as_ref().map(|lines| quoted(&format!("{} lines", lines.len())));
            let text = values.steps.as_ref().map(|list| steps::written(list)).or(recorded).unwrap_or_default();
            return json!({ "name": param.name, "value": null, "text": text, "default": false });
        }
        let value = values.get(declared, param.name);
        json!({
            "name": param.name,
            "value": value,
            "text": params::in_unit(param, value),
            "default": !params::differs(value, param.default),
        })
    };
    declared.iter().map(one).collect()
}

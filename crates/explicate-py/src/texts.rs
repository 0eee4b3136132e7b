//! Structured values as JSON.

use explicate_build::tables::TABLES;
use explicate_build::variables::VARIABLES;
use explicate_core::channel::ChannelInit;
use explicate_core::endpoint::data_header_bytes;
use explicate_core::params::{Param, Unit};
use explicate_core::registry::{self, Entry};
use explicate_core::rng::Rng;
use explicate_core::wire::{Packet, flag};
use explicate_scenario::model::Scenario;
use explicate_scenario::queue_default;
use explicate_sim::simulation::Run;
use serde_json::{Map, Value, json};

fn parameter(param: &Param) -> Value {
    json!({
        "name": param.name,
        "default": default(param),
        "unit": unit(param.unit),
        "source": param.source,
        "doc": param.doc,
    })
}

/// A default as a scenario writes it.
fn default(param: &Param) -> String {
    let value = param.default;
    match param.unit {
        Unit::File | Unit::Steps => "required".to_string(),
        _ if value.is_nan() => "auto".to_string(),
        _ if value.is_infinite() => "unlimited".to_string(),
        Unit::Seconds if value < 1e-3 && value > 0.0 => format!("{}us", value * 1e6),
        Unit::Seconds if value < 1.0 => format!("{}ms", value * 1e3),
        Unit::Seconds => format!("{value}s"),
        Unit::BitsPerSecond => format!("{value}bit/s"),
        Unit::Bytes | Unit::QueueLength => format!("{value}B"),
        Unit::Metres => format!("{value}m"),
        Unit::Flag => (value != 0.0).to_string(),
        Unit::Choice(words) => words.get(value as usize).copied().unwrap_or_default().to_string(),
        Unit::Decibels => format!("{value}dB"),
        Unit::Packets | Unit::Number | Unit::Fraction => value.to_string(),
    }
}

fn unit(unit: Unit) -> String {
    match unit {
        Unit::Seconds => "time".to_string(),
        Unit::BitsPerSecond => "rate".to_string(),
        Unit::Bytes => "bytes".to_string(),
        Unit::Packets => "packets".to_string(),
        Unit::QueueLength => "bytes, pkt or bdp".to_string(),
        Unit::Metres => "distance".to_string(),
        Unit::Number => String::new(),
        Unit::Fraction => "fraction".to_string(),
        Unit::Flag => "true or false".to_string(),
        Unit::Choice(words) => words.join(" | "),
        Unit::Decibels => "dB".to_string(),
        Unit::Steps => "rates over time".to_string(),
        Unit::File => "file".to_string(),
    }
}

/// A row of the registry; for a protocol also the bytes of headers before a data packet's payload.
pub(crate) fn entry(entry: &Entry) -> Value {
    let mut row = json!({
        "kind": entry.kind,
        "name": entry.name,
        "summary": entry.summary,
        "source": entry.source,
        "parameters": entry.params.iter().map(parameter).collect::<Vec<_>>(),
    });
    if registry::qdisc(entry.name).is_some_and(|_| entry.kind == "qdisc")
        && let Some(parameters) = row["parameters"].as_array_mut()
    {
        for one in parameters {
            // The default in force is the scenario's.
            let Some([at_link, at_interface]) = one["name"].as_str().and_then(queue_default) else { continue };
            let doc = one["doc"].as_str().unwrap_or_default();
            one["doc"] = json!(format!("{doc} At an interface to a medium the default is {at_interface}."));
            one["default"] = json!(at_link);
        }
    }
    if let Some(protocol) = registry::protocol(entry.name).filter(|_| entry.kind == "protocol") {
        row["header_bytes"] = json!(data_header_bytes(protocol));
    }
    row
}

/// Columns of all tables, followed by the variables of `samples`.
pub(crate) fn columns() -> Value {
    let columns = |list: &[explicate_build::tables::Column]| -> Value {
        list.iter().map(|c| json!({ "name": c.name, "unit": c.unit, "doc": c.doc })).collect()
    };
    let all = TABLES.iter().copied().chain([("samples.variable", VARIABLES)]);
    Value::Object(all.map(|(name, list)| (name.to_string(), columns(list))).collect::<Map<_, _>>())
}

/// A template by name; the error lists them.
pub(crate) fn template(kind: &str) -> Result<String, String> {
    use explicate_scenario::templates::{TEMPLATES, template};
    let names = || TEMPLATES.iter().map(|t| t.name).collect::<Vec<_>>().join(", ");
    template(kind)
        .map(|t| t.text.to_string())
        .ok_or_else(|| format!("no template is called `{kind}`; there are {}", names()))
}

/// All templates, with a sentence about each.
pub(crate) fn templates() -> Value {
    use explicate_scenario::templates::TEMPLATES;
    Value::Object(TEMPLATES.iter().map(|t| (t.name.to_string(), json!(t.summary))).collect())
}

/// Additional files of a template: contents by name.
pub(crate) fn companions(kind: &str) -> Value {
    let companion = explicate_scenario::templates::template(kind).and_then(|t| t.companion);
    companion.map_or_else(|| json!({}), |(name, text)| json!({ name: text }))
}

/// The warnings of settings that nothing uses, each with its setting.
pub(crate) fn unused(s: &Scenario) -> Vec<(String, String)> {
    s.unused.iter().map(|(number, setting)| (s.warnings[*number].clone(), setting.clone())).collect()
}

/// The report of `check` on a scenario.
pub(crate) fn checked(s: &Scenario) -> Value {
    let group =
        |g: &explicate_scenario::model::FlowGroup| json!({ "name": g.name, "count": g.count, "protocol": g.protocol });
    json!({
        "resolved": s.resolved,
        "warnings": s.warnings,
        "unused": unused(s),
        "runs": s.runs,
        "seed": s.seed,
        "duration_s": s.duration.to_seconds(),
        "warmup_s": s.warmup.to_seconds(),
        "name": s.name,
        "sweep": s.sweep,
        "flows": s.flows.iter().map(group).collect::<Vec<_>>(),
        "links": s.links.len(),
    })
}

/// The predictions of a link's channels, and the measurements over `trials` drawn packets: a row for each length and
/// channel.
pub(crate) fn curves(
    scenario: &Scenario,
    link: &str,
    lengths: &[u16],
    acks: bool,
    trials: u64,
    seed: u64,
) -> Result<Value, String> {
    let found = scenario.links.iter().find(|l| l.name == link).ok_or_else(|| format!("no link is called `{link}`"))?;
    let mut rows = Vec::new();
    for (spec, &bytes) in found.channel.iter().flat_map(|spec| lengths.iter().map(move |bytes| (spec, bytes))) {
        let mut packet = Packet { ip_len: bytes, ..Packet::EMPTY };
        packet.transport.set_flags(if acks { flag::ACK } else { 0 });
        let mut row = Map::new();
        row.insert("channel".to_string(), json!(spec.kind.name()));
        row.insert("bytes".to_string(), json!(bytes));
        spec.kind.predict(&spec.values, &packet, &mut |name, value| {
            row.insert(name.to_string(), json!(value));
        });
        if trials > 0 {
            let rng = Rng::stream(seed, &format!("curves/{bytes}"));
            let init = ChannelInit { values: &spec.values, rate: found.rate, rng };
            spec.kind.observe(init, &packet, trials, &mut |name, value| {
                row.insert(format!("observed_{name}"), json!(value));
            });
        }
        rows.push(Value::Object(row));
    }
    Ok(Value::Array(rows))
}

/// The fluid models.
pub(crate) fn fluid_models() -> Value {
    let model = |m: &&dyn explicate_fluid::model::Model| json!({ "protocol": m.protocol(), "summary": m.summary() });
    explicate_fluid::models::MODELS.iter().map(model).collect()
}

/// Cost of a run of a fluid model.
pub(crate) fn fluid_timing(done: &explicate_fluid::run::Done) -> Value {
    let (set_up, wall) = done.wall_s;
    json!({
        "set_up_s": set_up,
        "wall_s": wall,
        "steps": done.steps,
        "classes": done.classes,
        "class_hops": done.hops,
        "bytes": done.bytes,
    })
}

/// Cost of a run.
pub(crate) fn timing(run: &Run) -> Value {
    json!({ "wall_s": run.wall_s, "events": run.engine.events(), "hops": run.engine.hops() })
}

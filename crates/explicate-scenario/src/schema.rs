//! The JSON Schema (2020-12) of scenario files, made from the declared keys and the registry.

use explicate_core::endpoint;
use explicate_core::medium::AnyMediumKind;
use explicate_core::params::{Param, Unit};
use explicate_core::presets::PRESETS;
use explicate_core::recovery::COMMON;
use explicate_core::registry::{CHANNELS, MEDIA, QDISCS, RECOVERIES, protocols};
use serde_json::{Map, Value, json};

use crate::keys::{Form, Key, MEDIUM, ROOT};
use crate::renamed;

const NUMBER: &str = r"^\s*\+?[0-9]*\.?[0-9]+([eE][+-]?[0-9]+)?\s*";

/// The schema. It covers shape, words and names; conditions that involve two keys (a range, a route) are checked by
/// parsing only.
pub fn schema() -> Value {
    let mut root = table(ROOT);
    root["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    root["title"] = json!("Explicate scenario");
    root["$defs"] = json!({
        "time": quantity("(ns|us|µs|\u{3bc}s|ms|s|min)", "80ms"),
        "rate": quantity("([kMGT]?(bit/s|bps)|[kMG]?B/s|[KM]iB/s)", "54Mbit/s"),
        "bytes": quantity("([kMG]?B|[KMG]iB)", "1500B"),
        "distance": quantity("(km|m|cm)", "250m"),
        "coordinate": json!({ "type": "string", "pattern": format!("^-?{}(km|m|cm)\\s*$", &NUMBER[1..]), "examples": ["-250m"] }),
        "frequency": quantity("/(s|ms|min)", "50/s"),
        "length": quantity("(bdp|pkt|[kMG]?B|[KM]iB)", "1.0bdp"),
        "percentage": quantity("%", "1%"),
        "decibels": json!({ "type": "string", "pattern": r"^\s*[+-]?[0-9]*\.?[0-9]+\s*dB\s*$", "examples": ["20dB"] }),
        "packets": quantity("pkt", "50pkt"),
        "queue": named(&["auto", "unlimited"], QDISCS.iter().map(|q| (q.name(), q.summary(), q.params())), false),
        "router": named(&["auto", "none"], routers(), true),
        "channel": named(&[], CHANNELS.iter().map(|c| (c.name(), c.summary(), c.params())), true),
        "protocol": protocol(),
        "flow_params": flow_params(),
    });
    root
}

fn routers() -> impl Iterator<Item = (&'static str, &'static str, &'static [Param])> {
    let with = protocols().filter(|p| p.has_router());
    with.map(|p| (p.name(), p.summary(), p.router_params()))
}

fn quantity(unit: &str, example: &str) -> Value {
    json!({ "type": "string", "pattern": format!("{NUMBER}{unit}\\s*$"), "examples": [example] })
}

fn table(keys: &[Key]) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for key in keys {
        let mut value = form(&key.form);
        let doc = match key.default {
            "" => key.doc.to_string(),
            default => format!("{} Default: {default}", key.doc),
        };
        value["description"] = json!(doc);
        if !key.old_name.is_empty() {
            properties.insert(key.old_name.to_string(), deprecated(&value, key.name));
        }
        properties.insert(key.name.to_string(), value);
        // A key without default is required, except the ends of links and flows, which another key may give.
        if key.default.is_empty() && !optional(key, keys) {
            required.push(key.name);
        }
    }
    let mut value = json!({ "type": "object", "properties": properties, "additionalProperties": false });
    if !required.is_empty() {
        value["required"] = json!(required);
    }
    value
}

/// The old name of a key, with the same form.
fn deprecated(value: &Value, name: &str) -> Value {
    let mut value = value.clone();
    value["deprecated"] = json!(true);
    value["description"] = json!(format!("Old name of `{name}`."));
    value
}

/// Keys without default that are not required in other forms of the same table.
fn optional(key: &Key, keys: &[Key]) -> bool {
    matches!(key.name, "from" | "to") && keys.iter().any(|k| k.name == "name")
}

fn form(form: &Form) -> Value {
    let reference = |name: &str| json!({ "$ref": format!("#/$defs/{name}") });
    match form {
        Form::Text => json!({ "type": "string" }),
        Form::Words(words) => json!({ "enum": words }),
        Form::Time => reference("time"),
        Form::Rate => reference("rate"),
        Form::Bytes => reference("bytes"),
        Form::Frequency => reference("frequency"),
        Form::Whole(least, most) => json!({ "type": "integer", "minimum": least, "maximum": most }),
        Form::Number(least, most) => json!({ "type": "number", "minimum": least, "maximum": most }),
        Form::Flag => json!({ "type": "boolean" }),
        Form::Protocol => reference("protocol"),
        Form::FlowParams => reference("flow_params"),
        Form::Queue => reference("queue"),
        Form::Router => reference("router"),
        Form::Coordinate => reference("coordinate"),
        Form::Distance => reference("distance"),
        Form::Medium => medium(),
        Form::Channels => json!({ "type": "array", "items": reference("channel") }),
        Form::Axes => json!({ "type": "object", "additionalProperties": { "type": "array", "minItems": 1 } }),
        Form::OneOf(forms) => json!({ "anyOf": forms.iter().map(self::form).collect::<Vec<_>>() }),
        Form::List(item) => json!({ "type": "array", "items": self::form(item) }),
        Form::Table(keys) => table(keys),
    }
}

/// The keys of every medium and the parameters of its kind; without `kind` it is the first.
fn medium() -> Value {
    let kind = |(i, m): (usize, &&'static AnyMediumKind)| {
        let mut value = table(MEDIUM);
        value["description"] = json!(m.summary());
        let Some(all) = value["properties"].as_object_mut() else { return value };
        all.extend(properties(m.params().iter()));
        all.insert("kind".to_string(), json!({ "enum": [m.name()], "description": "Which medium." }));
        if i > 0
            && let Some(required) = value["required"].as_array_mut()
        {
            required.push(json!("kind"));
        }
        value
    };
    json!({ "anyOf": MEDIA.iter().enumerate().map(kind).collect::<Vec<_>>() })
}

/// A word, a registered name, or a table whose `kind` is the name.
fn named<'a>(words: &[&str], kinds: impl Iterator<Item = (&'a str, &'a str, &'a [Param])>, needs_kind: bool) -> Value {
    let mut names: Vec<String> = words.iter().map(|w| w.to_string()).collect();
    let mut tables = Vec::new();
    for (name, summary, params) in kinds {
        names.push(name.to_string());
        let mut properties = properties(params.iter());
        for param in params {
            if let Some(old) = renamed::old_channel_param(name, param.name) {
                properties.insert(old.to_string(), deprecated(&properties[param.name], param.name));
            }
        }
        properties.insert("kind".to_string(), json!({ "const": name }));
        let default = !needs_kind && name == crate::parts::DEFAULT_QUEUE;
        let mut table = json!({
            "type": "object", "description": summary, "properties": properties, "additionalProperties": false,
        });
        if !default {
            table["required"] = json!(["kind"]);
        }
        tables.push(table);
    }
    let mut any = vec![json!({ "enum": names })];
    any.extend(tables);
    json!({ "anyOf": any })
}

fn properties<'a>(params: impl Iterator<Item = &'a Param>) -> Map<String, Value> {
    params.map(|p| (p.name.to_string(), param(p))).collect()
}

fn param(param: &Param) -> Value {
    let reference = |name: &str| json!({ "$ref": format!("#/$defs/{name}") });
    let mut number = json!({ "type": "number" });
    if param.min.is_finite() {
        number["minimum"] = json!(param.min);
    }
    if param.max.is_finite() {
        number["maximum"] = json!(param.max);
    }
    let mut forms = match param.unit {
        Unit::Seconds => vec![reference("time")],
        Unit::BitsPerSecond => vec![reference("rate")],
        Unit::Metres => vec![reference("distance")],
        Unit::Bytes => vec![reference("bytes")],
        Unit::QueueLength => vec![reference("length")],
        Unit::Packets => vec![number, reference("packets")],
        Unit::Fraction => vec![number, reference("percentage")],
        Unit::Number => vec![number],
        Unit::Flag => vec![json!({ "type": "boolean" })],
        Unit::Choice(words) if crate::params::has_rates(words) => vec![json!({ "enum": words }), reference("rate")],
        Unit::Choice(words) => vec![json!({ "enum": words })],
        Unit::Decibels => vec![number, reference("decibels")],
        Unit::Steps => vec![form(&Form::List(&Form::Table(crate::keys::STEP)))],
        Unit::File => vec![json!({ "type": "string" })],
    };
    if param.default == f64::INFINITY {
        forms.push(json!({ "const": "unlimited" }));
    }
    if param.default.is_nan() && !crate::params::is_content(param) {
        forms.push(json!({ "const": "auto" }));
    }
    let mut value = if forms.len() == 1 { forms.swap_remove(0) } else { json!({ "anyOf": forms }) };
    value["description"] = json!(format!("{} ({})", param.doc, param.source));
    value
}

/// A preset, a protocol, or protocol/recovery.
fn protocol() -> Value {
    let mut names: Vec<&str> = PRESETS.iter().map(|p| p.name).chain(protocols().map(|p| p.name())).collect();
    names.sort_unstable();
    names.dedup();
    let either = |names: Vec<&str>| names.join("|");
    let laws = either(protocols().map(|p| p.name()).collect());
    let repairs = either(RECOVERIES.iter().map(|r| r.name()).collect());
    json!({ "anyOf": [{ "enum": names }, { "type": "string", "pattern": format!("^({laws})/({repairs})$") }] })
}

/// Parameters of any protocol, any recovery and the flow; parsing checks which belong together. Two protocols may
/// give a name different meanings, so a name that several declare accepts the values of any of them.
fn flow_params() -> Value {
    let laws = protocols().flat_map(|p| p.params());
    let repairs = RECOVERIES.iter().flat_map(|r| r.params());
    let mut all: Map<String, Value> = Map::new();
    for p in laws.chain(repairs).chain(COMMON).chain(endpoint::PARAMS) {
        let value = param(p);
        let merged = match all.remove(p.name) {
            None => value,
            Some(before) if before == value => value,
            Some(before) => json!({ "anyOf": [before, value] }),
        };
        all.insert(p.name.to_string(), merged);
    }
    json!({ "type": "object", "properties": all, "additionalProperties": false })
}

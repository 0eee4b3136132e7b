//! The JSON Schema: examples validate, mistakes do not. The validator below implements the keywords that the schema uses, and
//! fails on any other.

use crate::support;
use explicate_scenario::schema::schema;
use serde_json::{Map, Value};

struct Validator(Value);

impl Validator {
    fn valid(&self, schema: &Value, x: &Value) -> bool {
        schema.as_object().expect("schemas are objects").iter().all(|(keyword, arg)| match keyword.as_str() {
            "$schema" | "title" | "$defs" | "description" | "examples" => true,
            "$ref" => {
                let pointer = arg.as_str().unwrap().strip_prefix('#').unwrap();
                self.valid(self.0.pointer(pointer).expect("the reference leads somewhere"), x)
            }
            "anyOf" => arg.as_array().unwrap().iter().any(|s| self.valid(s, x)),
            "enum" => arg.as_array().unwrap().contains(x),
            "const" => arg == x,
            "type" => match arg.as_str().unwrap() {
                "object" => x.is_object(),
                "array" => x.is_array(),
                "string" => x.is_string(),
                "boolean" => x.is_boolean(),
                "integer" => x.is_i64() || x.is_u64(),
                "number" => x.is_number(),
                other => panic!("type {other}"),
            },
            "minimum" => x.as_f64().is_none_or(|x| x >= arg.as_f64().unwrap()),
            "maximum" => x.as_f64().is_none_or(|x| x <= arg.as_f64().unwrap()),
            "minItems" => x.as_array().is_none_or(|x| x.len() as u64 >= arg.as_u64().unwrap()),
            "items" => x.as_array().is_none_or(|x| x.iter().all(|i| self.valid(arg, i))),
            "properties" => x.as_object().is_none_or(|x| self.properties(arg, x)),
            "additionalProperties" => x.as_object().is_none_or(|x| {
                let known = schema.get("properties").and_then(Value::as_object);
                let mut rest = x.iter().filter(|(k, _)| known.is_none_or(|p| !p.contains_key(*k)));
                if arg == &Value::Bool(false) { rest.next().is_none() } else { rest.all(|(_, v)| self.valid(arg, v)) }
            }),
            "required" => x
                .as_object()
                .is_none_or(|x| arg.as_array().unwrap().iter().all(|k| x.contains_key(k.as_str().unwrap()))),
            "pattern" => x.as_str().is_none_or(|x| matches(arg.as_str().unwrap(), x)),
            other => panic!("the validator of this test does not know `{other}`"),
        })
    }
    fn properties(&self, schemas: &Value, x: &Map<String, Value>) -> bool {
        x.iter().all(|(k, v)| schemas.get(k).is_none_or(|s| self.valid(s, v)))
    }
}

/// A quantity ends with one of the pattern's units behind a number; a protocol is one of the pairs.
fn matches(pattern: &str, x: &str) -> bool {
    let groups: Vec<Vec<&str>> =
        pattern.split('(').skip(1).filter_map(|g| g.split(')').next()).map(|g| g.split('|').collect()).collect();
    if pattern.starts_with("^(") {
        let (law, repair) = x.split_once('/').unwrap_or((x, ""));
        return groups[0].contains(&law) && groups[1].contains(&repair);
    }
    let x = if pattern.starts_with("^-?") { x.strip_prefix('-').unwrap_or(x) } else { x };
    x.starts_with(|c: char| c.is_ascii_digit() || c == '.') && !x.ends_with(|c: char| c.is_ascii_digit())
}

/// TOML as JSON, by the way that the format's own tools would go.
fn json(text: &str) -> Value {
    fn convert(value: &toml::de::DeValue<'_>) -> Value {
        use toml::de::DeValue;
        match value {
            DeValue::String(s) => Value::from(s.to_string()),
            DeValue::Integer(i) => Value::from(i64::from_str_radix(i.as_str(), i.radix()).unwrap()),
            DeValue::Float(x) => Value::from(x.as_str().parse::<f64>().unwrap()),
            DeValue::Boolean(b) => Value::from(*b),
            DeValue::Datetime(d) => Value::from(d.to_string()),
            DeValue::Array(a) => a.iter().map(|v| convert(v.get_ref())).collect(),
            DeValue::Table(t) => table(t),
        }
    }
    fn table(t: &toml::de::DeTable<'_>) -> Value {
        Value::Object(t.iter().map(|(k, v)| (k.get_ref().to_string(), convert(v.get_ref()))).collect())
    }
    table(toml::de::DeTable::parse(text).unwrap().get_ref())
}

#[test]
fn examples_and_their_resolved_forms_validate() {
    let validator = Validator(schema());
    for (folder, name, text) in support::examples() {
        assert!(validator.valid(&validator.0, &json(&text)), "{name}");
        let s = explicate_scenario::model::Scenario::parse(&text, &name, &folder, &[]);
        let resolved = s.unwrap_or_else(|e| panic!("{e}")).resolved;
        assert!(validator.valid(&validator.0, &json(&resolved)), "{name}\n{resolved}");
    }
}

#[test]
fn slips_do_not() {
    let validator = Validator(schema());
    assert!(validator.valid(&validator.0, &json(support::SMALL)));
    let slips = [
        ("duration", "duratoin"),
        ("\"10s\"", "10"),
        ("\"10s\"", "\"10\""),
        ("pairs = 2", "pairs = 0"),
        ("pairs", "pears"),
        ("dumbbell", "dumbell"),
        ("delay", "delya"),
        ("protocol = \"xcp/reno\"", ""),
        ("xcp/reno", "xcp/renno"),
        ("packet", "pakcet"),
        ("rate =", "queue = \"drptail\", rate ="),
        ("rate =", "queue = { limits = \"1bdp\" }, rate ="),
        ("rate =", "router = { gamma = 0.1 }, rate ="),
        ("rate =", "channel = [{ kind = \"random_loss\", rate = 2 }], rate ="),
    ];
    for (good, bad) in slips {
        let text = support::SMALL.replace(good, bad);
        assert!(!validator.valid(&validator.0, &json(&text)), "{text}");
        assert!(!support::problems(&text, &[]).is_empty(), "{text}");
    }
}

#[test]
fn a_medium_takes_any_spelling_of_its_rates() {
    let validator = Validator(schema());
    let air = |rate: &str| format!("{}[[medium]]\nname = \"air\"\nlayout = {{}}\nrate = {rate}\n", support::SMALL);
    for (rate, good) in [("\"54Mbit/s\"", true), ("\"54000000bit/s\"", true), ("\"fast\"", false), ("54e6", false)] {
        assert_eq!(validator.valid(&validator.0, &json(&air(rate))), good, "{rate}");
        assert_eq!(support::problems(&air(rate), &[]).is_empty(), good, "{rate}");
    }
}

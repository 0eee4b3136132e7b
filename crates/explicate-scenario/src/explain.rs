//! What the stack of each group of flows sets, and what wins over it, as JSON.

use explicate_core::params::Param;
use explicate_core::presets::PRESETS;
use serde_json::{Value, json};

use crate::flows::Group;
use crate::model::{FlowGroup, Scenario};
use crate::params::in_unit;
use crate::parse::written_at;

/// For each group its protocol, recovery and stack, and every setting of the stack with the value in force, where that comes
/// from, and the stack's own value if another one wins. `text`, `origin` and `overrides` are the source of the scenario.
pub fn stacks(scenario: &Scenario, text: &str, origin: &str, overrides: &[(String, String)]) -> Value {
    let place = |keys: &[String]| written_at(text, origin, overrides, keys).map(|site| site.to_string());
    scenario.flows.iter().map(|group| of_group(group, &place)).collect()
}

fn of_group(group: &FlowGroup, place: &dyn Fn(&[String]) -> Option<String>) -> Value {
    let (name, resolved) = (&group.name, &group.resolved);
    let key = |key: &str| format!("flows.{name}.{key}");
    let mut settings: Vec<Value> = Vec::new();
    let mut put = |name: &str, value: String, from: Option<String>, of_stack: String| {
        let from_stack = from.is_none();
        let from = from.unwrap_or_else(|| "stack".to_string());
        let instead_of = (!from_stack).then_some(of_stack);
        settings.push(json!({ "name": name, "value": value, "from": from, "instead_of": instead_of }));
    };
    if let Some(stack) = resolved.stack {
        let preset = PRESETS.iter().find(|preset| preset.name == group.protocol);
        if let Some(own) = stack.recovery {
            let by_preset =
                preset.filter(|preset| preset.names_recovery).map(|preset| format!("preset {}", preset.name));
            let by_name =
                || (preset.is_none() && group.protocol.contains('/')).then(|| place(&[key("protocol")])).flatten();
            put("recovery", resolved.recovery.name().to_string(), by_preset.or_else(by_name), own.to_string());
        }
        let declared = Group::declared(resolved);
        for (param, x) in stack.sets(resolved.protocol) {
            // A stack may set what this recovery does not have.
            let Some(param) = declared.iter().find(|p| p.name == param) else { continue };
            let by_scenario = place(&[format!("{}.{}", key("params"), param.name)]);
            let by_preset = || {
                let sets = resolved.params.iter().any(|(name, _)| *name == param.name);
                sets.then(|| format!("preset {}", group.protocol))
            };
            let value = group.values.number(param.name).unwrap_or(param.default);
            put(param.name, shown(param, value), by_scenario.or_else(by_preset), shown(param, x));
        }
    }
    json!({
        "group": name,
        "protocol": resolved.protocol.name(),
        "recovery": resolved.recovery.name(),
        "stack": resolved.stack.map(|stack| stack.name),
        "place": place(&[key("stack"), "stack".to_string()]).filter(|_| resolved.stack.is_some()),
        "settings": settings,
    })
}

fn shown(param: &Param, x: f64) -> String {
    in_unit(param, x).trim_matches('"').to_string()
}

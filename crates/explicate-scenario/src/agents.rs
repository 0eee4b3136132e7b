//! Parameters of a router's agent. The agent serves all ports, so the settings of every port count.

use std::collections::BTreeMap;

use explicate_core::params::Values;

use crate::model::{Link, RouterSpec, Scenario};

/// The ports of one node with a controller of the same protocol, in the order of the scenario's links.
pub type Ports<'a> = Vec<(&'a Link, &'a RouterSpec)>;

/// The ports with controllers, by node and protocol.
pub fn controller_ports(scenario: &Scenario) -> BTreeMap<(usize, &'static str), Ports<'_>> {
    let mut all: BTreeMap<_, Ports<'_>> = BTreeMap::new();
    for link in &scenario.links {
        for spec in scenario.port(link).controllers() {
            all.entry((link.from, spec.protocol.name())).or_default().push((link, spec));
        }
    }
    all
}

/// The values of their agent's parameters that these ports set, and the controller of the first port. If two ports
/// set the same parameter, the first is used (`check` warns); a parameter that no port sets has its default, and
/// setting the default counts as not setting it.
pub fn agent_values(ports: &[(&Link, &RouterSpec)]) -> Values {
    let mut values = ports.first().map_or_else(Values::default, |(_, spec)| spec.values.clone());
    for (_, spec) in ports {
        for (name, value) in named(spec) {
            let params = spec.protocol.agent_params();
            if let (false, Some(param)) =
                (values.given().iter().any(|g| g.0 == name), params.iter().find(|p| p.name == name))
            {
                values.set(param, value);
            }
        }
    }
    values
}

/// A parameter of the agent to which two of these ports give different values: its name, the port that is used, the
/// other.
pub fn differing<'a>(ports: &[(&'a Link, &'a RouterSpec)]) -> Option<(&'static str, &'a Link, &'a Link)> {
    let mut decided: BTreeMap<&str, (&Link, u64)> = BTreeMap::new();
    for (link, spec) in ports {
        for (name, value) in named(spec) {
            let (first, had) = *decided.entry(name).or_insert((link, value.to_bits()));
            if had != value.to_bits() {
                return Some((name, first, link));
            }
        }
    }
    None
}

/// The agent's parameters that a port sets.
fn named(spec: &RouterSpec) -> impl Iterator<Item = (&'static str, f64)> {
    let params = spec.protocol.agent_params();
    spec.values.given().iter().copied().filter(move |(name, _)| params.iter().any(|p| p.name == *name))
}

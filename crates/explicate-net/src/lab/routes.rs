//! Routes: the forwarding table of each router from the start and from each change of routes on.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use explicate_core::units::Time;
use explicate_scenario::model::Scenario;

use super::addresses::{address, pinned};
use super::plan::Plan;

/// The cable to each address.
pub(super) type Table = BTreeMap<Ipv4Addr, usize>;

/// The tables of a router with the times from which they apply: the start, and each change of routes.
pub(super) fn tables(scenario: &Scenario, plan: &Plan, node: usize) -> Vec<(Time, Table)> {
    let begin = std::iter::once(Time::ZERO).chain(scenario.reroutes.iter().map(|change| change.at));
    let table = |mut routes: explicate_scenario::routing::Routes| {
        let mut table = Table::new();
        let mut put = |address, link: u32| {
            if let Some((cable, _)) = plan.cable_of(link as usize) {
                table.insert(address, cable);
            }
        };
        // Routers also receive messages.
        for other in (0..scenario.nodes.len()).filter(|n| *n != node) {
            if let Some(&first) = routes.path(node, other).as_ref().and_then(|path| path.first()) {
                put(address(other), first);
            }
        }
        for (group, (there, back)) in scenario.flows.iter().enumerate().filter_map(|(i, g)| Some((i, g.via.as_ref()?)))
        {
            for (end, path) in [(0, back), (1, there)] {
                if let Some(&link) = path.iter().find(|link| scenario.links[**link as usize].from == node) {
                    put(pinned(group, end), link);
                }
            }
        }
        table
    };
    begin.zip(scenario.routes().map(table)).collect()
}

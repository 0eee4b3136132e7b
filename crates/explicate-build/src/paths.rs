//! The routes of a scenario's flows, and the controllers that the links on them need.

use explicate_core::api::AnyProtocol;
use explicate_core::endpoint::is_guarded;
use explicate_core::registry;
use explicate_scenario::model::{FlowGroup, Scenario};
use explicate_scenario::routing::Routes;
use thiserror::Error;

/// Links of the flows' data and of their acknowledgements, end to end, in one list, because many short ones would
/// fragment memory.
#[derive(Default)]
pub struct FlowPaths {
    links: Vec<u32>,
    /// Where the data and the acknowledgements of each route end in that list.
    ends: Vec<(u32, u32)>,
}

impl FlowPaths {
    fn push(&mut self, there: &[u32], back: &[u32]) {
        self.links.extend(there);
        let middle = self.links.len() as u32;
        self.links.extend(back);
        self.ends.push((middle, self.links.len() as u32));
    }
    /// Links of all routes together.
    pub fn places(&self) -> usize {
        self.links.len()
    }
    /// Number of routes.
    pub fn len(&self) -> usize {
        self.ends.len()
    }
    /// Whether there is no route.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }
    /// Links of the data and of the acknowledgements of a route.
    pub fn get(&self, index: usize) -> (&[u32], &[u32]) {
        let start = if index == 0 { 0 } else { self.ends[index - 1].1 };
        let (middle, end) = self.ends[index];
        (&self.links[start as usize..middle as usize], &self.links[middle as usize..end as usize])
    }
}

/// The ends of a flow are not connected; a checked scenario has no such flow.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("no path from {from} to {to}")]
pub struct NoPath {
    /// The node that sends.
    pub from: String,
    /// The node that receives.
    pub to: String,
}

/// For each group the routes of its flows, one for each entry of its `ends`.
///
/// # Errors
/// The ends of a flow are not connected.
pub fn flow_paths(scenario: &Scenario, mut routes: Routes) -> Result<Vec<FlowPaths>, NoPath> {
    let mut path = |from: usize, to: usize| {
        let missing = || NoPath { from: scenario.nodes[from].clone(), to: scenario.nodes[to].clone() };
        routes.path(from, to).ok_or_else(missing)
    };
    let mut of_group = |group: &FlowGroup| {
        let mut paths = FlowPaths::default();
        match &group.via {
            Some((there, back)) => paths.push(there, back),
            None => {
                for &(from, to) in &group.ends {
                    paths.push(&path(from, to)?, &path(to, from)?);
                }
            }
        }
        Ok(paths)
    };
    scenario.flows.iter().map(&mut of_group).collect()
}

/// For each link the protocols whose controllers are needed by the data that cross it, as bits in the order of the
/// registry. Three more bits state that explicit packets with congestion headers, or without, cross it, and that
/// flows request marks.
pub fn crossing(scenario: &Scenario, phases: &[Vec<FlowPaths>]) -> Vec<u64> {
    let mut crossing = vec![0; scenario.links.len()];
    for (group, paths) in phases.iter().flat_map(|paths| scenario.flows.iter().zip(paths)) {
        let protocol = group.resolved.protocol;
        let kind = if protocol.explicit() { answers(protocol) } else { 0 };
        let marks = if protocol.explicit() && is_guarded(&group.values) { MARKS } else { 0 };
        let wanted = bit(registry::controller(protocol).unwrap_or(protocol)) | kind | marks;
        for &link in (0..paths.len()).flat_map(|i| paths.get(i).0) {
            crossing[link as usize] |= wanted;
        }
    }
    crossing
}

/// The bit of flows that request marks of the controllers that answer them.
pub(crate) const MARKS: u64 = 1 << 61;

/// The bit of the packets that a protocol's controllers can answer: congestion headers, or codes in other headers.
pub(crate) fn answers(protocol: &AnyProtocol) -> u64 {
    if protocol.congestion_header() { 1 << 63 } else { 1 << 62 }
}

/// The bit of a protocol. Those beyond the 60th share one bit, which at worst installs an unnecessary controller.
pub(crate) fn bit(protocol: &AnyProtocol) -> u64 {
    1 << registry::protocols().position(|p| p.name() == protocol.name()).unwrap_or(60).min(60)
}

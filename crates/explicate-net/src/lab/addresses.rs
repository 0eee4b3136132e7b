//! Addresses of nodes and flows.
//!
//! Every node has an address, and packets to it take the shortest path. A group of flows with an explicit path has two
//! additional addresses, one at each end, by which routers distinguish its packets from others between the same hosts.

use std::net::Ipv4Addr;

use explicate_scenario::model::Scenario;

/// The address of a node.
pub(super) fn address(node: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, (node / 250) as u8, (node % 250) as u8 + 1)
}

/// The address of the source (0) or the destination (1) of a group with an explicit path.
pub(super) fn pinned(group: usize, end: usize) -> Ipv4Addr {
    let [high, low] = (group as u16).to_be_bytes();
    Ipv4Addr::new(10, 78 + end as u8, high, low)
}

/// The addresses of a group's flows from one node to another.
pub(super) fn addresses(scenario: &Scenario, group: usize, ends: (usize, usize)) -> [Ipv4Addr; 2] {
    match scenario.flows[group].via {
        Some(_) => [0, 1].map(|end| pinned(group, end)),
        None => [address(ends.0), address(ends.1)],
    }
}

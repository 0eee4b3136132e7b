//! Routes that change in mid-run.
//!
//! All routes are known before the first event, so that nothing is fused that one of them would part. Packets under way end
//! their way as they began it.

use explicate_core::units::Time;

use super::{Engine, REROUTE, RouteFinder};

/// What flows and agents go by from a time on.
pub(super) struct Change {
    /// Flows, and the first places of their new routes there and back.
    flows: Vec<(u32, u32, u32)>,
    find_route: Option<RouteFinder>,
}

impl Engine {
    /// From `at` on these flows, by number, take these links there and back, and agents' messages what `find_route` answers.
    pub fn reroute(&mut self, at: Time, flows: &[(u32, &[u32], &[u32])], find_route: Option<RouteFinder>) {
        let flows =
            flows.iter().map(|(flow, there, back)| (*flow, self.add_route(there), self.add_route(back))).collect();
        self.arm(REROUTE | self.changes.len() as u32, at);
        self.changes.push(Change { flows, find_route });
    }

    pub(super) fn change_routes(&mut self, index: u32) {
        let change = &mut self.changes[index as usize];
        for (flow, there, back) in core::mem::take(&mut change.flows) {
            let ends = &mut self.ends[flow as usize];
            (ends.forward, ends.back) = (there, back);
        }
        if let Some(find_route) = change.find_route.take() {
            self.find_route = Some(find_route);
        }
        self.control_routes.clear();
    }
}

//! Routes that change in mid-run.
//!
//! All routes are known before the first event, so that nothing is fused that one of them would part. Packets under way end
//! their way as they began it.

use explicate_core::units::Time;

use super::{Engine, RouteFinder, RoutePair};
use crate::event::Timer;

/// The links that a flow takes from a time on.
pub struct NewRoute<'a> {
    /// The flow's number.
    pub flow: u32,
    /// Links of its data.
    pub forward: &'a [u32],
    /// Links of its acknowledgements.
    pub back: &'a [u32],
}

/// What flows and agents go by from a time on.
pub(super) struct Change {
    /// Flows with their new routes.
    flows: Vec<(u32, RoutePair)>,
    find_route: Option<RouteFinder>,
}

impl Engine {
    /// From `at` on these flows take new routes, and agents' messages what `find_route` answers.
    pub fn reroute(&mut self, at: Time, flows: &[NewRoute<'_>], find_route: Option<RouteFinder>) {
        let flows = flows.iter().map(|new| (new.flow, self.add_routes(new.forward, new.back))).collect();
        self.arm(Timer::Reroute(self.changes.len() as u32), at);
        self.changes.push(Change { flows, find_route });
    }

    pub(super) fn change_routes(&mut self, index: u32) {
        let change = &mut self.changes[index as usize];
        for (flow, RoutePair { forward, back }) in core::mem::take(&mut change.flows) {
            let ends = &mut self.ends[flow as usize];
            (ends.forward, ends.back) = (forward, back);
        }
        if let Some(find_route) = change.find_route.take() {
            self.find_route = Some(find_route);
        }
        self.control_routes.clear();
    }
}

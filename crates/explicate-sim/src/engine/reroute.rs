//! Routes that change during a run.
//!
//! All routes are known before the first event, so no links are fused that a later route separates. Packets in flight
//! stay on their route.

use explicate_core::units::Time;

use super::{Engine, RouteFinder, RoutePair};
use crate::event::Timer;

/// The links that a flow uses from a time on.
pub struct NewRoute<'a> {
    /// The flow's number.
    pub flow: u32,
    /// Links of its data.
    pub forward: &'a [u32],
    /// Links of its acknowledgements.
    pub back: &'a [u32],
}

/// The routes of flows and agents from a time on.
pub(super) struct Change {
    /// Flows with their new routes.
    flows: Vec<(u32, RoutePair)>,
    find_route: Option<RouteFinder>,
}

impl Engine {
    /// From `at` on these flows use new routes, and agents' messages those of `find_route`.
    pub fn reroute(&mut self, at: Time, flows: &[NewRoute<'_>], find_route: Option<RouteFinder>) {
        let flows = flows.iter().map(|new| (new.flow, self.add_routes(new.forward, new.back))).collect();
        self.arm(Timer::Reroute(self.changes.len() as u32), at);
        self.changes.push(Change { flows, find_route });
    }

    pub(super) fn change_routes(&mut self, index: u32) {
        let change = &mut self.changes[index as usize];
        let (flows, find_route) = (core::mem::take(&mut change.flows), change.find_route.take());
        for (flow, RoutePair { forward, back }) in flows {
            let ends = &mut self.ends[flow as usize];
            (ends.forward, ends.back) = (forward, back);
            if !self.host_queues.is_empty() {
                self.place_in_host(flow as usize);
            }
        }
        if find_route.is_some() {
            self.find_route = find_route;
        }
        self.control_routes.clear();
    }
}

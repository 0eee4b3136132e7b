//! Assembly of a network: links, routes and flows.

use explicate_build::source::Source;
use explicate_core::endpoint::{FlowInit, ends};
use explicate_core::port::Port;
use explicate_core::units::Time;

use super::host_queue::Place;
use super::link::Reads;
use super::{Ends, Engine, Hop, Link, Mark, Member, NIL, Processing, RoutePair};
use crate::event::{Event, Timer};
use crate::prefetch;

impl Engine {
    /// Reserves capacity for links, flows and places of routes: repeated growth fragments memory.
    pub fn reserve(&mut self, links: usize, flows: usize, places: usize) {
        self.links.reserve_exact(links);
        self.ends.reserve_exact(flows);
        self.routes.reserve_exact(places);
        self.arena.reserve(flows);
        prefetch::in_large_pages(self.links.spare_capacity_mut());
        prefetch::in_large_pages(self.ends.spare_capacity_mut());
    }
    /// Adds a link and returns its index.
    pub fn add_link(&mut self, port: Port, delay: Time) -> u32 {
        let catches_up = port.writes();
        self.links.push(Link {
            port,
            delay,
            fused_to: NIL,
            catches_up,
            reads: Reads::Nothing,
            predicts: false,
            hops: 1,
            before: NIL,
            after: NIL,
            turn: NIL,
            in_transit: 0,
            bridged: false,
        });
        self.links.len() as u32 - 1
    }
    /// The node at the end of a link does not decrement TTLs.
    pub fn end_at_bridge(&mut self, link: u32) {
        self.links[link as usize].bridged = true;
    }
    /// Declares two links half-duplex: transmission on one delays the other.
    pub fn pair(&mut self, one: u32, other: u32) {
        self.twins.extend([(one, other), (other, one)]);
    }
    /// Adds forward and reverse routes, which flows may share.
    pub fn add_routes(&mut self, there: &[u32], back: &[u32]) -> RoutePair {
        RoutePair { forward: self.add_route(there), back: self.add_route(back) }
    }
    /// The scenario's group of a flow.
    pub fn group_of(&self, flow: usize) -> usize {
        self.groups.partition_point(|first| *first as usize <= flow) - 1
    }
    /// Adds a flow with its number within its group. Groups must not decrease from flow to flow, and the number in `init` must
    /// be the number of flows so far.
    pub fn add_flow(
        &mut self,
        init: &FlowInit<'_>,
        route: RoutePair,
        source: Source,
        processing: Processing,
        start: Time,
        member: Member,
    ) {
        assert_eq!(init.id as usize, self.ends.len(), "flows are numbered in order");
        let RoutePair { forward, back } = route;
        self.groups.resize(self.groups.len().max(member.group as usize + 1), init.id);
        let (flow, receiver) = ends(init);
        self.ends.push(Ends {
            flow,
            receiver,
            source,
            processing,
            host: Place::FREE,
            start,
            number: member.number,
            completed: Time::NEVER,
            forward,
            back,
            timer: NIL,
            timer_due: Time::NEVER,
        });
        self.arm(Timer::Source(init.id), start);
    }
    pub(super) fn add_route(&mut self, links: &[u32]) -> u32 {
        let first = self.routes.len() as u32;
        assert!(self.routes.len() + links.len() < Event::PLACES as usize, "too many routes");
        let last = links.last().expect("a route has links");
        assert!(!self.links[*last as usize].bridged, "no route ends at a bridge");
        self.routes.extend(links.iter().copied().map(Hop::over));
        if let Some(last) = self.routes.last_mut() {
            last.mark(Mark::LAST);
        }
        first
    }
}

//! XCP-i: XCP where some routers are plain.
//!
//! Source: Lopez-Pacheco, Pham, Lefevre, "XCP-i: eXplicit Control Protocol for heterogeneous inter-networking of high-speed
//! networks", GLOBECOM 2006 (paper I).
//!
//! The idea: plain routers decrement the TTL and write no feedback. The sender copies the TTL into a field that only XCP-i
//! routers decrement. If the two differ, a router detects a *cloud* of plain routers upstream of it; a second field names the
//! XCP-i router before the cloud. It asks that router to measure the available bandwidth of the cloud, and runs for each such
//! router a *virtual router*, whose link is the cloud, on the packets before the real router's control. Sender and receiver do
//! the same at their ends of the path: the sender answers requests; the receiver has virtual routers, or asks the last XCP-i
//! router to run one for packets to it.
//!
//! | symbol | field | unit | value | source |
//! | --- | --- | --- | --- | --- |
//! | `xcp_ttl`, `last_xcp_router` | `counter`, `node` of the header's `wire::Extension` | | | III-A.1, III-A.2 |
//! | `xcp_req_timeout` | `request_timeout` | s | 1, not given | III-A.3 |
//! | unsuccessful requests | `TRIES` | 1 | 3 | III-A.3 |
//! | frequency of the estimation | `period` | s | the control interval | III-A.3, IV |
//! | inactivity period | `idle` | s | 10, not given | III-A.3 |
//! | BW | `bandwidth` | bytes/s | | III-A.3 |
//! | alpha, beta, rtt, Q of eq. 1 | as in `common/xcp_router.rs` | | 0.4, 0.226 | III-A.4 |
//!
//! `law` chooses what the virtual router hands out. `paper` is eq. 1, feedback = alpha rtt BW - beta Q: its control interval
//! ends when a result comes, but no sooner than a mean RTT after the last (an earlier result waits, and a newer one takes its
//! place), so each is handed out at most once, however rare. `available` is eq. 1 too, at the end of every control
//! interval and with the newest result: rare results are handed out several times. `capacity` takes BW and the traffic that was seen while
//! it was measured for a capacity, from which the traffic of each control interval is taken off: the same where results
//! come once per interval, and right where they are rarer. Eq. 1 cannot see a queue inside the cloud, and what one control
//! interval gave too much stays there: in figure 6 the window is 28 % above that of XCP. So `capacity`, the default, drains
//! it too: results carry the time at which they were sent, and how much longer than usual they take is a queue.
//!
//! Deviations:
//! 1. Requests are answered by a challenge first (`edge.rs`), so that a forged request cannot make a router measure a third party. The
//!    cookie's hash is not cryptographic.
//! 2. Where packets join the output port, the virtual router looks at that port's queue for Q; rtt is the mean of the packets
//!    of its own cloud.
//! 3. Until the first result no flow through the cloud speeds up (`unknown = "hold"`); a broken path is plain XCP's.
//! 4. Entries and requests are bounded; what finds no room is held at its rate.
//! 5. A router that computes on a receiver's behalf does not see the queue of that cloud.
//! 6. Requests take the shortest way, which may not be the data's. A hop that does not count the TTL down (a tunnel, a bridge) is
//!    not seen, as the paper says.
//! 7. What is known of a cloud is forgotten when its number of plain routers changes: the route has. Results may never have
//!    crossed the new cloud without a queue, so with `cloud_queue` a tenth of its capacity is left free until they come no
//!    sooner (12 to 55 packets would stay in `scenarios/xcp-i-reroute.toml`, by seed; 0.3 to 0.5 do). A change that keeps the number is noticed by the next results alone, and a longer way is taken for a queue for up to twice `idle`.

use alloc::boxed::Box;

use crate::agent::{Address, Agent, AgentInit, AgentKind};
use crate::api::{AnyReceiver, AnyRouter, AnySender, Protocol, RouterInit, SenderInit, Writes};
use crate::estimate;
use crate::params::{Auto, Flag, Fraction, Info, Number, Param, Seconds, choices, parameters};
use crate::protocols::common::xcp_router::{self, Controller, XcpRouter};
use crate::protocols::xcp::{self, Form, Rate, XcpReceiver, XcpSender};
use crate::wire::{EXTENDED_LEN, Extension, Packet};

mod clouds;
mod edge;
mod message;
mod node;

/// XCP-i.
pub struct XcpI;

choices! {
    /// What a virtual router hands out.
    enum Law { Paper = "paper", Capacity = "capacity", Available = "available" }
}

choices! {
    /// What packets get that come from a cloud of which nothing is known yet.
    enum Unknown { Hold = "hold", Pass = "pass" }
}

choices! {
    /// What the receiving end does about a cloud before it.
    enum Receives { Compute = "compute", Ask = "ask", Nothing = "nothing" }
}

parameters! {
    /// What a scenario can set of clouds.
    struct Params {
        /// What a virtual router hands out: each result once; the cloud's capacity less the present load; or the newest
        /// result at every control interval.
        law: Law = Law::Capacity, "paper I eq. 1";
        /// Share of the cloud's capacity that `law = "capacity"` uses.
        margin: Fraction = 1.0, in 0.1..=1.0, "ours";
        /// Weight of the newest result in the cloud's capacity: 1 for exact results, less for those of probes.
        result_weight: Fraction = 1.0, in 0.01..=1.0, "ours";
        /// With `law = "capacity"`, what waits in the cloud is drained: known by how long results are on their way.
        cloud_queue: Flag = true, "ours";
        /// What packets get that come from a cloud of which nothing is known yet: no increase, or what XCP gives.
        unknown: Unknown = Unknown::Hold, "ours";
        /// How long a request waits for its answer.
        request_timeout: Seconds = 1.0, in 1e-3..=100.0, "paper I III-A.3";
        /// How often a cloud is measured; auto: once per control interval.
        period: Auto<Seconds> = None, in 1e-3..=1000.0, "paper I III-A.3, IV";
        /// How often it is measured at most.
        least_period: Seconds = 0.01, in 1e-3..=1000.0, "ours";
        /// A cloud from which nothing comes for so long is forgotten, and no longer measured.
        idle: Seconds = 10.0, in 0.1..=10_000.0, "paper I III-A.3";
        /// Most clouds that a node knows, and most that it measures for others.
        table: Number = 256.0, in 1.0..=65_536.0, "ours";
        /// Most requests that a node sends in a second.
        requests_per_s: Number = 100.0, in 0.1..=1e6, "ours";
        /// What the receiving end does about a cloud before it: has a virtual router, asks the last XCP-i router for
        /// one, or nothing.
        receiver: Receives = Receives::Compute, "paper I III-B";
    }
}

parameters! {
    /// What a scenario can set of a node's agent.
    struct AgentParams {
        /// How clouds are found and served.
        own: Params = Params::DEFAULT;
        /// What measures them.
        choice: estimate::Choice = estimate::Choice::DEFAULT;
        /// If that is the oracle.
        oracle: estimate::oracle::Params = estimate::oracle::Params::DEFAULT;
        /// If it sends probes.
        probing: estimate::Probing = estimate::Probing::DEFAULT;
    }
}

parameters! {
    /// What a scenario can set of a router.
    struct RouterParams {
        /// Of the controller.
        xcp: xcp_router::Params = xcp_router::Params::DEFAULT;
        /// Of the node's agent.
        agent: AgentParams = AgentParams::DEFAULT;
    }
}

impl Protocol for XcpI {
    const INFO: Info = Info {
        name: "xcp_i",
        summary: "XCP-i: XCP across clouds of plain routers, which are found by their TTL and measured",
        source: "Lopez-Pacheco, Pham, Lefevre, GLOBECOM 2006",
        params: xcp::Params::PARAMS,
    };
    const ROUTER_PARAMS: &'static [Param] = RouterParams::PARAMS;
    const EXPLICIT: bool = true;
    const HEADER_LEN: u16 = EXTENDED_LEN as u16;
    const AGENT: Option<&'static dyn AgentKind> = Some(&NodeKind);
    const BEARS_PLAIN_ROUTERS: bool = true;

    fn sender(&self, init: &SenderInit<'_>) -> Box<AnySender> {
        Box::new(XcpSender::<Marked>::new(init, xcp::Params::of(init.values)))
    }
    fn receiver(&self) -> Option<Box<AnyReceiver>> {
        Some(Box::<XcpReceiver>::default())
    }
    fn router(&self, init: &RouterInit<'_>) -> Option<Box<AnyRouter>> {
        let params = xcp_router::Params::of(init.values);
        Some(Box::new(XcpRouter(Controller::new(params, init.rng.clone()))))
    }
}

struct NodeKind;

impl AgentKind for NodeKind {
    fn params(&self) -> &'static [Param] {
        AgentParams::PARAMS
    }
    fn build(&self, init: &AgentInit<'_>) -> Box<dyn Agent> {
        Box::new(node::Node::new(init))
    }
}

/// The words of the rate form, and the fields of XCP-i beside them.
struct Marked {
    own: Address,
}

impl Default for Marked {
    fn default() -> Marked {
        Marked { own: NOBODY }
    }
}

/// No address.
const NOBODY: Address = Address(u32::MAX);

impl Form for Marked {
    const WRITES: Writes = Writes::PerPacket;
    fn write(&mut self, packet: &mut Packet, words: (u32, u32, i32)) {
        Rate.write(packet, words);
        Extension { counter: packet.ttl, node: self.own.0 }.put(packet);
    }
    fn attach(&mut self, own: Address) {
        self.own = own;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Congestion, Format};

    /// Paper I section III-A.1 and 2: the sender copies the TTL, and is the first XCP-i node of the path.
    #[test]
    fn the_sender_marks_the_beginning_of_the_path() {
        let mut form = Marked::default();
        form.attach(Address(9));
        let mut packet = Packet { ttl: 64, congestion: Congestion::new(Format::STANDARD), ..Packet::EMPTY };
        form.write(&mut packet, (1, 2, 3));
        assert_eq!(Extension::of(&packet), Some(Extension { counter: 64, node: 9 }));
        let header = packet.congestion;
        assert_eq!((header.x(), header.rtt(), header.delta_throughput()), (1, 2, 3));
    }

    #[test]
    fn parameters_of_router_and_agent_are_declared_once() {
        let names: alloc::collections::BTreeSet<_> = RouterParams::PARAMS.iter().map(|param| param.name).collect();
        assert_eq!(names.len(), RouterParams::PARAMS.len());
        assert!(AgentParams::PARAMS.iter().all(|param| names.contains(param.name)));
    }
}

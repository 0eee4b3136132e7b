//! XCP-i: XCP on paths with plain routers.
//!
//! Source: Lopez-Pacheco, Pham, Lefevre, "XCP-i: eXplicit Control Protocol for heterogeneous inter-networking of high-speed
//! networks", GLOBECOM 2006 (paper I).
//!
//! The idea: plain routers decrement the TTL and write no feedback. The sender copies the TTL into a field that only
//! XCP-i routers decrement. If the two differ, a router detects a *cloud* of plain routers upstream of it; a second
//! field contains the address of the XCP-i router before the cloud. It requests that router to measure the available
//! bandwidth of the cloud. For each such router it runs a *virtual router*, whose link is the cloud, on the packets
//! before the real router's control. Sender and receiver do the same at their ends of the path: the sender answers
//! requests; the receiver has virtual routers, or requests the last XCP-i router to run one for the packets to the
//! receiver.
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
//! The period is requested of the other edge before a mean RTT is known. Then it is the round-trip time that the first
//! packet states, with which the first control interval begins. A request that a SYN causes, which states none, is for
//! XCP's initial 50 ms, and so is the first one with `law = "capacity"`, to which the period does not matter.
//!
//! `law` selects the control law of the virtual router. `paper` is eq. 1, feedback = alpha rtt BW - beta Q: its
//! control interval ends when a result arrives, but not earlier than one mean RTT after the last one (an earlier
//! result waits, and a newer one replaces it), so each result is used at most once, however rare results are.
//! `available` is eq. 1 too, at the end of every control interval and with the newest result: rare results are used
//! several times. `capacity` takes the sum of BW and the traffic during its measurement as the capacity, from which
//! it subtracts the traffic of each control interval: this is the same where results arrive once per interval, and
//! correct where they are rarer. Eq. 1 cannot measure a queue inside the cloud, so excess traffic of one control
//! interval stays there: in figure 6 the window is 16 % above that of XCP. So `capacity`, the default, drains this
//! queue too: results carry the time at which they were sent, and additional delay indicates a queue.
//! `shared` is for clouds whose bottleneck other XCP-i edges share, for which the paper has no law: with the other
//! three, every division of a full link between edges persists (`shared.rs`).
//!
//! With `results = "at_once"` no request is sent: the edge behind the cloud has the true value at the end of each of its
//! control intervals (`at_once.rs`), as in the paper's simulations (section IV).
//!
//! Deviations:
//! 1. The answer to a first request is a challenge (`edge.rs`), so that a forged request cannot make a router measure
//!    a third party. The cookie's hash is not cryptographic.
//! 2. Where packets enter the output port, the virtual router takes that port's queue as Q; rtt is the mean of the
//!    packets of its own cloud.
//! 3. Until the first result no flow through the cloud gets an increase (`unknown = "hold"`); a broken path is
//!    treated as by XCP.
//! 4. Entries and requests are bounded; flows without an entry keep their rate.
//! 5. A router that computes on a receiver's behalf does not measure the queue of that cloud.
//! 6. Requests take the shortest path, which may not be the data's. A hop that does not decrement the TTL (a tunnel,
//!    a bridge) is not detected, as the paper says.
//! 7. The state of a cloud is reset when its number of plain routers changes, because the route has changed. Results
//!    may never have crossed the new cloud without a queue, so with `cloud_queue` a tenth of its capacity is left
//!    free until their delay stops falling (12 to 55 packets would stay in `scenarios/xcp-i-reroute.toml`, by seed;
//!    0.3 to 0.5 do). A change of route that keeps the number is detected only by the next results, and a longer path
//!    counts as a queue for up to twice `idle`.

use alloc::boxed::Box;

use crate::agent::{Address, Agent, AgentInit, AgentKind};
use crate::api::{AnyReceiver, AnyRouter, AnySender, Protocol, RouterInit, SenderInit, Writes};
use crate::estimate;
use crate::params::{Auto, Flag, Fraction, Info, Number, Param, Seconds, choices, parameters};
use crate::protocols::common::xcp_router::{self, XcpRouter};
use crate::protocols::xcp::{self, Form, Rate, XcpReceiver, XcpSender};
use crate::wire::{EXTENDED_LEN, Extension, Packet};

mod at_once;
mod clouds;
mod edge;
mod message;
mod node;
mod shared;

/// XCP-i.
pub struct XcpI;

choices! {
    /// The control law of a virtual router.
    enum Law { Paper = "paper", Capacity = "capacity", Available = "available", Shared = "shared" }
}

impl Law {
    /// Whether a result ends a control interval, and no other interval uses it.
    fn counts_once(self) -> bool {
        matches!(self, Law::Paper | Law::Shared)
    }
}

choices! {
    /// Feedback for packets from a cloud without a result.
    enum Unknown { Hold = "hold", Pass = "pass" }
}

choices! {
    /// What the receiving end does about a cloud upstream of it.
    enum Receives { Compute = "compute", Ask = "ask", Nothing = "nothing" }
}

choices! {
    /// How results of measurements reach the edge behind a cloud.
    enum Results { Messages = "messages", AtOnce = "at_once" }
}

parameters! {
    /// Parameters of clouds.
    struct Params {
        /// Bandwidth that a virtual router distributes: each result once; the cloud's capacity minus the present
        /// load; the newest result at every control interval; or, where other edges share the cloud's bottleneck, the
        /// distance to the fair load of its flows.
        law: Law = Law::Capacity, "paper I eq. 1";
        /// Share of the cloud's capacity that `law = "capacity"` uses.
        margin: Fraction = 1.0, in 0.1..=1.0, "ours";
        /// With `law = "shared"`, the fair rate of a flow over the spare bandwidth: N flows leave 1 / (1 + this * N) of
        /// the cloud free.
        spare_multiple: Number = 10.0, in 1.0..=1000.0, "Afek, Mansour, Ostfeld, SIGCOMM 1996";
        /// Weight of the newest result in the cloud's capacity, and in its spare bandwidth with `law = "shared"`: 1 for
        /// exact results, less for results of probes.
        result_weight: Fraction = 1.0, in 0.01..=1.0, "ours";
        /// With `law = "capacity"`, the queue in the cloud, estimated from the delay of results, is drained.
        cloud_queue: Flag = true, "ours";
        /// Feedback for packets from a cloud without a result: no increase, or that of XCP.
        unknown: Unknown = Unknown::Hold, "ours";
        /// Timeout of a request.
        request_timeout: Seconds = 1.0, in 1e-3..=100.0, "paper I III-A.3";
        /// Interval between measurements of a cloud; auto: the control interval.
        period: Auto<Seconds> = None, in 1e-3..=1000.0, "paper I III-A.3, IV";
        /// Minimum interval between measurements.
        least_period: Seconds = 0.01, in 1e-3..=1000.0, "ours";
        /// A cloud without packets for this time is removed, and no longer measured.
        idle: Seconds = 10.0, in 0.1..=10_000.0, "paper I III-A.3";
        /// Maximum number of clouds that a node stores, and that it measures for others.
        table: Number = 256.0, in 1.0..=65_536.0, "ours";
        /// Maximum number of requests that a node sends per second.
        requests_per_s: Number = 100.0, in 0.1..=1e6, "ours";
        /// How results reach the edge behind a cloud: in messages, or at the end of each control interval from the oracle
        /// itself, whatever `estimator` is, as in the paper's simulations.
        results: Results = Results::Messages, "paper I section IV";
        /// What the receiving end does about a cloud upstream of it: runs a virtual router, requests the last XCP-i
        /// router to run one, or nothing.
        receiver: Receives = Receives::Compute, "paper I III-B";
    }
}

parameters! {
    /// Parameters of a node's agent.
    struct AgentParams {
        /// Detection of clouds.
        own: Params = Params::DEFAULT;
        /// Estimator of the available bandwidth.
        choice: estimate::Choice = estimate::Choice::DEFAULT;
        /// Parameters of the oracle.
        oracle: estimate::oracle::Params = estimate::oracle::Params::DEFAULT;
        /// Parameters of estimators that send probes.
        probing: estimate::Probing = estimate::Probing::DEFAULT;
    }
}

parameters! {
    /// Router parameters.
    struct RouterParams {
        /// Parameters of the controller.
        xcp: xcp_router::Params = xcp_router::Params::DEFAULT;
        /// Parameters of the node's agent.
        agent: AgentParams = AgentParams::DEFAULT;
    }
}

impl Protocol for XcpI {
    const INFO: Info = Info {
        name: "xcp_i",
        summary: "XCP-i: XCP across clouds of plain routers, which are detected by the TTL and measured",
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
        Some(Box::new(<XcpRouter>::new(xcp_router::Params::of(init.values), init.rng.clone())))
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

/// The fields of the rate form, and those of XCP-i.
struct Marked {
    own: Address,
}

impl Default for Marked {
    fn default() -> Marked {
        Marked { own: NO_ADDRESS }
    }
}

/// No address.
const NO_ADDRESS: Address = Address(u32::MAX);

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

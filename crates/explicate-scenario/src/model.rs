//! A scenario after parsing: everything resolved, nothing left to look up. This is what drivers run.

use std::collections::BTreeSet;

use explicate_core::api::AnyProtocol;
use explicate_core::channel::AnyChannelKind;
use explicate_core::medium::{AnyMediumKind, Interferer};
use explicate_core::params::Values;
use explicate_core::qdisc::AnyQdiscKind;
use explicate_core::registry::Resolved;
use explicate_core::units::{Rate, Time};

use crate::routing::Routes;

/// The longest processing time that is not given.
const PROCESSING_AUTO: Time = Time::millis(10);

/// A whole scenario.
pub struct Scenario {
    /// Its name.
    pub name: String,
    /// Simulated time of one run.
    pub duration: Time,
    /// Excluded from every summary column.
    pub warmup: Time,
    /// Independent repetitions; run `i` uses `seed + i`.
    pub runs: u32,
    /// Seed of the first run.
    pub seed: u64,
    /// Names of the nodes.
    pub nodes: Vec<String>,
    /// Nodes that do not count TTLs down.
    pub bridges: BTreeSet<usize>,
    /// One-way links.
    pub links: Vec<Link>,
    /// Shared media.
    pub media: Vec<Medium>,
    /// Changes of routes, in order of time.
    pub reroutes: Vec<Reroute>,
    /// Groups of flows, in the order of the file.
    pub flows: Vec<FlowGroup>,
    /// What is sampled.
    pub sampling: Sampling,
    /// Axes of `[sweep]`: a path of keys and its values, as written.
    pub sweep: Vec<(String, Vec<String>)>,
    /// Oddities that do not stop a run: nothing measured, a buffer under one packet, and so on.
    pub warnings: Vec<String>,
    /// The scenario with every default filled in, as TOML that parses to the same scenario.
    pub resolved: String,
}

impl Scenario {
    /// What feeds a link: it itself, or over a medium its sender's interface.
    pub fn port<'a>(&'a self, link: &'a Link) -> &'a Link {
        link.over.map_or(link, |over| &self.media[over.medium].stations[over.from].interface)
    }
    /// The longest that the host takes for a data packet of a flow of this group that goes over these links; zero for no time. By
    /// default it is what the flow's largest packet takes at the nominal rate of the narrowest link, and at most 10 ms.
    pub fn processing(&self, group: &FlowGroup, there: &[u32]) -> Time {
        match group.processing {
            Processing::None => Time::ZERO,
            Processing::UpTo(most) => most,
            Processing::Auto => {
                let narrowest = there.iter().map(|&link| self.links[link as usize].rate.0).min();
                let most = narrowest.map_or(0, |rate| group.packet as u64 * 8_000_000_000 / rate.max(1));
                Time(most).min(PROCESSING_AUTO)
            }
        }
    }
    /// Routes at the start, and from each change on.
    pub fn routes(&self) -> impl Iterator<Item = Routes> {
        Routes::over_time(self.nodes.len(), &self.links, &self.reroutes)
    }
}

/// A change of routes: those that are not given node by node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reroute {
    /// From when on.
    pub at: Time,
    /// Links that routes leave out from then on.
    pub without: Vec<usize>,
}

/// A one-way link, with the output port that feeds it.
pub struct Link {
    /// Its name, by default `from->to`.
    pub name: String,
    /// Index of the node that it leaves.
    pub from: usize,
    /// Index of the node that it reaches.
    pub to: usize,
    /// Nominal IP rate. A trace channel replaces it in service; then this is the trace's mean rate.
    pub rate: Rate,
    /// Propagation delay.
    pub delay: Time,
    /// Capacity configured in the controllers: by default `rate`, less the overhead of coding.
    pub capacity: Rate,
    /// Changes of the configured capacity, in order of time.
    pub beliefs: Vec<(Time, Rate)>,
    /// The link of the other direction, if both share one line.
    pub shares_with: Option<usize>,
    /// Queue discipline; `None` is an unlimited queue.
    pub queue: Option<Queue>,
    /// Controllers on the port, one per protocol that has one (at most one today); empty is a plain IP router.
    pub routers: Vec<RouterSpec>,
    /// Classes of packets with queues of their own; if empty, all share `queue` and `routers`, else those say nothing.
    pub classes: Vec<Class>,
    /// How far the weights of two classes move each round trip towards equal windows; 0 if they are fixed.
    pub kappa: f64,
    /// Packets that the controller answers and all others have queues of their own, and shares by the number of their flows.
    pub by_flows: bool,
    /// Channels in order; empty is a wire.
    pub channel: Vec<ChannelSpec>,
    /// The clock of controllers and disciplines ticks with this period; zero is exact.
    pub clock_tick: Time,
    /// Where it is a link between two stations of a medium. Queues and controllers are then those of the sending station's
    /// interface ([`Scenario::port`]), and here are none.
    pub over: Option<Over>,
}

/// A link over a medium.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Over {
    /// Index of the medium.
    pub medium: usize,
    /// Indices of the stations that it connects.
    pub from: usize,
    /// The receiving one.
    pub to: usize,
    /// The rate of this link, if it is not the medium's.
    pub rate: Option<Rate>,
}

/// A shared medium.
pub struct Medium {
    /// Its name.
    pub name: String,
    /// Which one.
    pub kind: &'static AnyMediumKind,
    /// Its parameters.
    pub values: Values,
    /// Nodes on it, with their interfaces.
    pub stations: Vec<Station>,
    /// Sources of noise.
    pub interferers: Vec<Interferer>,
}

/// A node on a medium.
pub struct Station {
    /// Index of the node.
    pub node: usize,
    /// Where it stands, metres.
    pub at: (f64, f64),
    /// Its interface: the port that feeds all its links there, with one queue (for each class) for all its neighbours.
    pub interface: Link,
}

impl Link {
    /// All queues of its port.
    pub fn queues(&self) -> impl Iterator<Item = &Queue> {
        self.queue.iter().chain(self.classes.iter().filter_map(|c| c.queue.as_ref()))
    }
    /// All controllers of its port.
    pub fn controllers(&self) -> impl Iterator<Item = &RouterSpec> {
        self.routers.iter().chain(self.classes.iter().flat_map(|c| &c.routers))
    }
    /// Words for the classes that the port has, in their order; none if all packets share one queue.
    pub fn class_words(&self) -> Vec<&'static str> {
        if self.divides() {
            Match::ALL.map(Match::word).to_vec()
        } else {
            self.classes.iter().map(|c| c.matches.word()).collect()
        }
    }
    /// Whether two classes divide the line by their flows: without a controller there is nothing to tell them apart by.
    pub fn divides(&self) -> bool {
        self.by_flows && !self.routers.is_empty()
    }
    /// The class of packets that carry a congestion header or do not: its number.
    pub fn class_of(&self, congestion_header: bool) -> usize {
        let find = |wanted| self.classes.iter().position(|c| c.matches == wanted);
        let explicit = if congestion_header { find(Match::Explicit) } else { None };
        explicit.or_else(|| find(Match::Other)).unwrap_or(0)
    }
    /// The controllers to choose from for packets of this class; without classes those of the port.
    pub fn routers_of(&self, class: usize) -> &[RouterSpec] {
        self.classes.get(class).map_or(&self.routers, |c| &c.routers)
    }
}

/// Packets at a link with a queue of their own.
pub struct Class {
    /// Which.
    pub matches: Match,
    /// Queue discipline; `None` is an unlimited queue.
    pub queue: Option<Queue>,
    /// Controllers, as [`Link::routers`].
    pub routers: Vec<RouterSpec>,
    /// Its part of the line, beside the others'.
    pub weight: f64,
}

/// What a class matches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Match {
    /// Packets with a congestion header.
    Explicit,
    /// What no other class matches.
    Other,
}

impl Match {
    /// All there are.
    pub const ALL: [Match; 2] = [Match::Explicit, Match::Other];
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Match::Explicit => "explicit",
            Match::Other => "other",
        }
    }
}

/// A queue discipline with its values.
pub struct Queue {
    /// Which one.
    pub kind: &'static AnyQdiscKind,
    /// Its parameters; lengths in bytes.
    pub values: Values,
    /// Typical IP length of packets that cross the link, bytes: turns `pkt` into bytes and back.
    pub mean_packet: f64,
}

/// A router controller with its values.
#[derive(Clone)]
pub struct RouterSpec {
    /// The protocol that it belongs to.
    pub protocol: &'static AnyProtocol,
    /// Its parameters.
    pub values: Values,
}

/// A channel with its values.
pub struct ChannelSpec {
    /// Which one.
    pub kind: &'static AnyChannelKind,
    /// Its parameters; a trace's opportunities are in [`Values::file`].
    pub values: Values,
}

/// A group of like flows.
pub struct FlowGroup {
    /// Its name; flow `i` of it is called `name.i`.
    pub name: String,
    /// Number of flows.
    pub count: u32,
    /// The `protocol` key as written.
    pub protocol: String,
    /// What that resolves to.
    pub resolved: Resolved,
    /// Values of the law, the recovery and the flow, the preset's included.
    pub values: Values,
    /// IP length of a full data packet, bytes.
    pub packet: u16,
    /// Time that a sending host takes for a data packet.
    pub processing: Processing,
    /// When flows start.
    pub start: Start,
    /// What they send.
    pub traffic: Traffic,
    /// When they stop at the latest.
    pub stop: Option<Time>,
    /// Source and destination nodes; flow `i` uses entry `i % len`.
    pub ends: Vec<(usize, usize)>,
    /// Links of the data and of the acknowledgements, in order, where the scenario names a way that is not the shortest
    /// (then `ends` has one entry); `None` is the shortest path each way ([`crate::routing::Routes`]).
    pub via: Option<(Vec<u32>, Vec<u32>)>,
}

/// How long a sending host takes for a data packet: a random time for each, uniform from zero up to this. Packets of a flow keep their
/// order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Processing {
    /// No time.
    None,
    /// Up to the time that the flow's largest packet takes on the narrowest link of its way, see [`Scenario::processing`].
    Auto,
    /// Up to this time.
    UpTo(Time),
}

/// When the flows of a group start.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Start {
    /// All at once.
    At(Time),
    /// Evenly over a span: flow i of n at `from + i * over / n`.
    Spread {
        /// The first.
        from: Time,
        /// The span.
        over: Time,
    },
    /// Each at a random time, uniform over a span.
    Uniform {
        /// Earliest.
        from: Time,
        /// The span.
        over: Time,
    },
    /// A Poisson process; `count` flows at most.
    Poisson {
        /// Not before.
        from: Time,
        /// Arrivals per second.
        per_second: f64,
    },
}

/// What a flow sends.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Traffic {
    /// Without end.
    Bulk,
    /// One transfer of this many payload bytes.
    Sized(Size),
    /// Alternately without end and nothing.
    OnOff {
        /// Length of an on-period, mean if random.
        on: Time,
        /// Length of an off-period, mean if random.
        off: Time,
        /// Periods are exponential rather than fixed.
        random: bool,
    },
    /// Without end, in connections that timeouts tear down and that come again.
    Sessions {
        /// Timeouts in a row that tear one down.
        timeouts: u32,
        /// Shortest and longest pause before the next.
        pause: (Time, Time),
        /// How long one lasts, mean if random; `None` until it is torn down.
        duration: Option<Time>,
        /// Durations are exponential rather than fixed.
        random: bool,
    },
}

/// How long transfers are, bytes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Size {
    /// All alike.
    Fixed(u64),
    /// Exponential with this mean.
    Exponential(f64),
    /// Pareto with this mean and shape (> 1): web-like.
    Pareto {
        /// Mean, bytes.
        mean: f64,
        /// Shape.
        shape: f64,
    },
}

/// What is sampled, and how often.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct Sampling {
    /// The period; `None` samples nothing.
    pub every: Option<Time>,
    /// Names: `queue`, `throughput` (links); `cwnd`, `rtt`, `goodput` (flows); `router` (all variables of controllers),
    /// `flow` (all variables of senders and recoveries), `agent` (all of agents).
    pub of: Vec<String>,
}

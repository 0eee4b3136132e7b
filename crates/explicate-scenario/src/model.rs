//! A resolved scenario, which drivers run: all names are looked up.

use std::collections::BTreeSet;

use explicate_core::api::AnyProtocol;
use explicate_core::channel::AnyChannelKind;
use explicate_core::estimate::hop_capacity;
use explicate_core::medium::{AnyMediumKind, Interferer};
use explicate_core::params::Values;
use explicate_core::qdisc::AnyQdiscKind;
use explicate_core::registry::{self, Resolved};
use explicate_core::scone::Advises;
use explicate_core::units::{Rate, Time};

use crate::routing::Routes;

/// Maximum of the default processing time.
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
    /// Nodes that do not decrement TTLs.
    pub bridges: BTreeSet<usize>,
    /// One-way links.
    pub links: Vec<Link>,
    /// Wireless media.
    pub media: Vec<Medium>,
    /// Changes of routes, in order of time.
    pub reroutes: Vec<Reroute>,
    /// Groups of flows, in the order of the file.
    pub flows: Vec<FlowGroup>,
    /// Sampled variables.
    pub sampling: Sampling,
    /// Axes of `[sweep]`: a path of keys and its values, as written.
    pub sweep: Vec<(String, Vec<String>)>,
    /// Links of hosts of whose unlimited queues a warning tells.
    pub host_queues: BTreeSet<usize>,
    /// Warnings, which do not stop a run: nothing measured, a buffer smaller than one packet, and so on.
    pub warnings: Vec<String>,
    /// Of the warnings those of settings that nothing uses, by number, with the setting: its place and its key. Scenarios that
    /// are compared have the same settings: one that any of them uses is not superfluous.
    pub unused: Vec<(usize, String)>,
    /// The scenario with every default filled in, as TOML that parses to the same scenario.
    pub resolved: String,
}

/// Variables that one object has at most, by what is sampled of it: of a router, a flow and an agent an estimate.
const VARIABLES: usize = 8;

impl Scenario {
    /// Rows of the table of samples that one run writes, estimated; `flows` are sampled (of a fluid, its classes).
    pub fn sample_rows(&self, flows: u64) -> f64 {
        let Some(every) = self.sampling.every else { return 0.0 };
        // Unlimited queues are not sampled (explicate_sim::sample).
        let ports = self.links.iter().filter(|l| l.over.is_some() || l.queues().next().is_some()).count();
        let rows = |word: &String| match word.as_str() {
            "queue" => 2 * ports as u64,
            "throughput" => 2 * ports as u64 + flows,
            "router" => (VARIABLES * ports) as u64,
            "flow" => VARIABLES as u64 * flows,
            "agent" => (VARIABLES * self.nodes.len()) as u64,
            _ => flows,
        };
        let steps = self.duration.as_secs_f64() / every.as_secs_f64().max(1e-9);
        self.sampling.of.iter().map(rows).sum::<u64>() as f64 * steps
    }
    /// The port that feeds a link: its own, or over a medium its sender's interface.
    pub fn port<'a>(&'a self, link: &'a Link) -> &'a Link {
        link.over.map_or(link, |over| &self.media[over.medium].stations[over.from].interface)
    }
    /// Maximum processing time of a host for a data packet of a flow of this group on these links; zero disables it.
    /// By default it is the transmission time of the flow's largest packet at the nominal rate of the narrowest link,
    /// at most 10 ms.
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
}

/// A change of routes, except of those given node by node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reroute {
    /// Time of the change.
    pub at: Time,
    /// Links that routes do not use from then on.
    pub without: Vec<usize>,
}

/// A one-way link, with the output port that feeds it.
pub struct Link {
    /// Its name, by default `from->to`.
    pub name: String,
    /// The part of `[topology]` that it comes from, such as `bottleneck`; empty for custom and wireless links.
    pub part: &'static str,
    /// Index of the node that it leaves.
    pub from: usize,
    /// Index of the node that it reaches.
    pub to: usize,
    /// Nominal IP rate. A trace channel replaces it in service; then this is the trace's mean rate.
    pub rate: Rate,
    /// Propagation delay.
    pub delay: Time,
    /// Capacity configured in the controllers: by default `rate` minus the overhead of coding.
    pub capacity: Rate,
    /// Changes of the configured capacity, in order of time.
    pub capacity_steps: Vec<(Time, Rate)>,
    /// How the port measures its capacity, if it does; `capacity` is then that before the first measurement.
    pub measured: Option<hop_capacity::Params>,
    /// The link of the other direction, if both share one line.
    pub shares_with: Option<usize>,
    /// Queue discipline; `None` is an unlimited queue.
    pub queue: Option<Queue>,
    /// Controllers on the port, one per protocol that has one (at most one today); empty is a plain IP router.
    pub routers: Vec<RouterSpec>,
    /// Classes of packets with queues of their own. If empty, all packets share `queue` and `routers`; otherwise
    /// these are unused.
    pub classes: Vec<Class>,
    /// Step of the weights of two classes per round trip towards equal windows; 0 if they are fixed.
    pub kappa: f64,
    /// Packets that the controller answers and all others have queues of their own, with shares by their numbers of
    /// flows.
    pub by_flows: bool,
    /// Channels in order; empty is a wire.
    pub channel: Vec<ChannelSpec>,
    /// Period of the clock of controllers and disciplines; zero is exact.
    pub clock_tick: Time,
    /// What a SCONE element at the port advises; `None` is no element.
    pub scone: Option<Advises>,
    /// For a link between two stations of a medium. Queues and controllers are then those of the sending station's
    /// interface ([`Scenario::port`]), and these fields are empty.
    pub over: Option<Over>,
}

/// A link over a medium.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Over {
    /// Index of the medium.
    pub medium: usize,
    /// Indices of the stations that it connects.
    pub from: usize,
    /// The receiving station.
    pub to: usize,
    /// The rate of this link, if it differs from the medium's.
    pub rate: Option<Rate>,
}

/// A wireless medium.
pub struct Medium {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: &'static AnyMediumKind,
    /// Its parameters.
    pub values: Values,
    /// Nodes on it, with their interfaces.
    pub stations: Vec<Station>,
    /// Interferers.
    pub interferers: Vec<Interferer>,
}

/// A node on a medium.
pub struct Station {
    /// Index of the node.
    pub node: usize,
    /// Its position, metres.
    pub at: (f64, f64),
    /// Its interface: the port of all its links on the medium, with one queue (per class) for all its neighbours.
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
    /// Names of the port's classes, in order; empty if all packets share one queue.
    pub fn class_words(&self) -> Vec<&'static str> {
        if self.divides() {
            Match::ALL.map(Match::word).to_vec()
        } else {
            self.classes.iter().map(|c| c.matches.word()).collect()
        }
    }
    /// Whether packets wait at its port for the line alone: it has neither a queue discipline nor classes, and is of no medium.
    pub fn is_unqueued(&self) -> bool {
        self.over.is_none() && self.queue.is_none() && self.classes.is_empty() && !self.divides()
    }
    /// Whether two classes divide the line by their flows: without a controller the classes cannot be distinguished.
    pub fn divides(&self) -> bool {
        self.by_flows && !self.routers.is_empty()
    }
    /// Number of the class of packets with or without a congestion header.
    pub fn class_of(&self, congestion_header: bool) -> usize {
        let find = |wanted| self.classes.iter().position(|c| c.matches == wanted);
        let explicit = if congestion_header { find(Match::Explicit) } else { None };
        explicit.or_else(|| find(Match::Other)).unwrap_or(0)
    }
    /// The controllers for packets of this class; without classes those of the port.
    pub fn routers_of(&self, class: usize) -> &[RouterSpec] {
        self.classes.get(class).map_or(&self.routers, |c| &c.routers)
    }
    /// Whether a controller here sets the rate of a group.
    pub(crate) fn controls(&self, group: &FlowGroup) -> bool {
        let protocol = group.resolved.protocol;
        let routers = self.routers_of(self.class_of(protocol.congestion_header()));
        registry::controller(protocol).is_some_and(|mine| routers.iter().any(|r| r.protocol.name() == mine.name()))
    }
}

/// A class of packets at a link, with a queue of its own.
pub struct Class {
    /// The packets that it matches.
    pub matches: Match,
    /// Queue discipline; `None` is an unlimited queue.
    pub queue: Option<Queue>,
    /// Controllers, as [`Link::routers`].
    pub routers: Vec<RouterSpec>,
    /// Its weight.
    pub weight: f64,
}

/// The packets that a class matches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Match {
    /// Packets with a congestion header.
    Explicit,
    /// Packets that no other class matches.
    Other,
}

impl Match {
    /// All kinds.
    pub const ALL: [Match; 2] = [Match::Explicit, Match::Other];
    /// Its name in a scenario.
    pub fn word(self) -> &'static str {
        match self {
            Match::Explicit => "explicit",
            Match::Other => "other",
        }
    }
}

/// A queue discipline with its values.
pub struct Queue {
    /// The discipline.
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
    /// The kind of channel.
    pub kind: &'static AnyChannelKind,
    /// Its parameters; a trace's opportunities are in [`Values::file`].
    pub values: Values,
}

/// A group of flows with the same settings.
pub struct FlowGroup {
    /// Its name; flow `i` of it is called `name.i`.
    pub name: String,
    /// Number of flows.
    pub count: u32,
    /// The `protocol` key as written.
    pub protocol: String,
    /// The resolved protocol.
    pub resolved: Resolved,
    /// Values of the parameters of controller, recovery and flow, including the preset's.
    pub values: Values,
    /// IP length of a full data packet, bytes.
    pub packet: u16,
    /// Processing time of the sending host for a data packet.
    pub processing: Processing,
    /// When flows start.
    pub start: Start,
    /// Their application.
    pub traffic: Traffic,
    /// Their latest stop time.
    pub stop: Option<Time>,
    /// Source and destination nodes; flow `i` uses entry `i % len`.
    pub ends: Vec<(usize, usize)>,
    /// Links of the data and of the acknowledgements, in order, if the scenario gives a path that is not the shortest
    /// (then `ends` has one entry); `None` is the shortest path in each direction ([`crate::routing::Routes`]).
    pub via: Option<(Vec<u32>, Vec<u32>)>,
}

impl FlowGroup {
    /// Number of flows between the `pair`-th ends.
    pub(crate) fn flows_of_pair(&self, pair: usize) -> u64 {
        let (flows, pairs) = (self.count as u64, self.ends.len() as u64);
        flows / pairs + u64::from((pair as u64) < flows % pairs)
    }
    /// Links of the data and of the acknowledgements between these ends, none where there is no route.
    pub(crate) fn ways(&self, (from, to): (usize, usize), routes: &mut Routes) -> (Vec<u32>, Vec<u32>) {
        match &self.via {
            Some(via) => via.clone(),
            None => (routes.path(from, to).unwrap_or_default(), routes.path(to, from).unwrap_or_default()),
        }
    }
}

/// Processing time of a sending host for a data packet, drawn for each packet, uniform from zero to this. Packets of
/// a flow keep their order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Processing {
    /// No time.
    None,
    /// Up to the transmission time of the flow's largest packet on the narrowest link of its path, see
    /// [`Scenario::processing`].
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
        /// The earliest.
        from: Time,
        /// Arrivals per second.
        per_second: f64,
    },
}

/// The application of a flow.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Traffic {
    /// Sends without limit.
    Bulk,
    /// One transfer of this many payload bytes.
    Sized(Size),
    /// Alternates between unlimited sending and silence.
    OnOff {
        /// Length of an on-period, mean if random.
        on: Time,
        /// Length of an off-period, mean if random.
        off: Time,
        /// Periods are exponential rather than fixed.
        random: bool,
    },
    /// Sends without limit, in connections that timeouts abort and that are opened again.
    Sessions {
        /// Consecutive timeouts that abort a connection.
        timeouts: u32,
        /// Shortest and longest pause before the next.
        pause: (Time, Time),
        /// Duration of a connection, mean if random; `None` until it is aborted.
        duration: Option<Time>,
        /// Durations are exponential rather than fixed.
        random: bool,
    },
}

/// Lengths of transfers, bytes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Size {
    /// All equal.
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

/// Sampled variables, and the period.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct Sampling {
    /// The period; `None` samples nothing.
    pub every: Option<Time>,
    /// Names: `queue`, `throughput` (links); `cwnd`, `rtt`, `goodput` (flows); `router` (all variables of controllers),
    /// `flow` (all variables of senders and recoveries), `agent` (all of agents).
    pub of: Vec<String>,
}

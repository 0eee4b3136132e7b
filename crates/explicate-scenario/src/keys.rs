//! Every key of a scenario file, declared once. Readers take bounds, words and defaults from this list, and the check
//! for unknown keys, the JSON Schema and the reference are made from it.

use explicate_core::estimate::hop_capacity;
use explicate_core::params::Unit;
use explicate_core::presets::{DEFAULT_STACK, STACK_NAMES};

use self::declaration::key;
pub(crate) use self::declaration::{Form, Key, declared, default};
use crate::limits;

mod declaration;

/// Kinds of topology.
pub(crate) const KINDS: &[&str] = &["dumbbell", "chain", "parking_lot", "star", "explicit"];
/// Kinds of node.
pub(crate) const NODE_KINDS: &[&str] = &["host", "router", "bridge"];
/// What can be sampled.
pub(crate) const SAMPLED: &[&str] = &["queue", "throughput", "cwnd", "rtt", "goodput", "router", "flow", "agent"];

/// Words for a processing time.
pub(crate) const PROCESSED: &[&str] = &["none", "auto"];
const PROCESSING: Form = Form::OneOf(&[Form::Words(PROCESSED), Form::Time]);

const NAMES: Form = Form::OneOf(&[Form::Text, Form::List(&Form::Text)]);

pub(crate) const ROOT: &[Key] = &[
    key("name", Form::Text, "the name of the file", "Name of the results."),
    key("duration", Form::Time, "60s", "Simulated time of one run."),
    key("warmup", Form::Time, "0s", "Time at the start that summaries exclude."),
    key("runs", Form::Whole(1, limits::COUNT), "1", "Independent repetitions; run i has the seed `seed + i`."),
    key("seed", Form::Whole(0, limits::SEED), "1", "Seed of the first run."),
    key("processing", PROCESSING, "auto", "Default of `processing` for all groups of flows."),
    key("stack", Form::Words(STACK_NAMES), DEFAULT_STACK, "Default of `stack` for all groups of flows."),
    key(
        "topology",
        Form::Table(TOPOLOGY),
        "a dumbbell, or explicit if there is a [[node]] or [[medium]]",
        "A generated topology.",
    ),
    key("node", Form::List(&Form::Table(NODE)), "none", "Custom nodes."),
    key(
        "link",
        Form::List(&Form::Table(LINK)),
        "none",
        "Custom links (`from` and `to`), or settings for one direction of a named link.",
    ),
    key(
        "medium",
        Form::List(&Form::Medium),
        "none",
        "A wireless medium that nodes share; it creates the links between its stations.",
    ),
    key("reroute", Form::List(&Form::Table(REROUTE)), "none", "Route changes during the run, in order of time."),
    key("flows", Form::List(&Form::Table(FLOWS)), "", "Groups of identical flows."),
    key("sampling", Form::Table(SAMPLING), "nothing is sampled", "Variables recorded over time."),
    key("sweep", Form::Axes, "none", "Axes of a sweep: a path of keys and its values."),
];

pub(crate) const TOPOLOGY: &[Key] = &[
    key("kind", Form::Words(KINDS), "dumbbell", "Generator of the nodes and links."),
    key(
        "pairs",
        Form::Whole(1, limits::COUNT),
        "the number of flows",
        "Pairs of hosts at the ends (dumbbell, chain, parking_lot).",
    ),
    key("hops", Form::Whole(1, limits::HOPS), "2", "Links between routers (chain, parking_lot)."),
    key("cross", Form::Whole(1, limits::COUNT), "1", "Pairs of hosts at each hop, for cross traffic (parking_lot)."),
    key("hosts", Form::Whole(2, limits::COUNT), "one more than flows", "Hosts around the router (star)."),
    key(
        "access",
        Form::Table(ACCESS),
        "a link of ten times the rate, 1ms",
        "Links between hosts and routers, both directions.",
    ),
    key("bottleneck", Form::Table(PROPS), "10Mbit/s, 20ms", "The link in the middle, both directions (dumbbell)."),
    key(
        "link",
        Form::Table(PROPS),
        "10Mbit/s, 20ms",
        "The links between routers (chain, parking_lot), or of all hosts (star), both directions.",
    ),
];

const RATE: Key = key(
    "rate",
    Form::Rate,
    "10Mbit/s; for access links ten times the bottleneck's",
    "Rate in IP bytes. The mean of a recorded channel replaces it.",
);
const QUEUE: Key = key(
    "queue",
    Form::Queue,
    "auto",
    "Queue discipline. `auto`: a host's own port is unlimited, a router's is droptail with a limit of 1.0bdp.",
);
const ROUTER: Key = key(
    "router",
    Form::Router,
    "auto",
    "Router controller of the port. `auto`: the controllers of the protocols in use; `none`: plain IP.",
);
const CAPACITY: Key = key(
    "capacity",
    Form::OneOf(&[Form::Rate, Form::Table(CAPACITY_TABLE), Form::List(&Form::Table(CAPACITY_STEP))]),
    "the rate, less the overhead of coding",
    "Capacity configured in the controllers: a rate, a factor of the link's rate, or steps over time; or one that the port measures.",
);
const HALF_DUPLEX: Key = key(
    "half_duplex",
    Form::Flag,
    "false",
    "Both directions share one line and alternate packet by packet. Setting it for one direction is enough.",
);
const CHANNEL: Key = key("channel", Form::Channels, "[]", "Channel models, applied in order; empty is an ideal wire.");
const CLASSES: Key = key(
    "classes",
    Form::List(&Form::Table(CLASS)),
    "[]",
    "Several queues, served by weight (deficit round robin), each with its own controller, instead of one queue.",
);
const KAPPA: Key = key(
    "kappa",
    Form::Number(0.0, 1.0),
    "0",
    "Step per round trip by which the weights of the classes `explicit` and `other` move until flows of both have equal windows.",
);
const BY_FLOWS: Key = key(
    "share_by_flows",
    Form::Flag,
    "false",
    "Separate queues for packets that the port's controller handles and for all others; each queue gets a share of the line in proportion to its number of active flows.",
);
const ELEMENT: Key = key(
    "scone",
    Form::OneOf(&[Form::Words(NO_ELEMENT), Form::Table(SCONE)]),
    "none",
    "A SCONE element: lowers the rate that SCONE packets of flows with `scone = true` carry.",
);
const DELAY_DOC: &str = "Propagation delay, one way.";

const CLOCK_TICK: Key = key(
    "clock_tick",
    Form::Time,
    "0s",
    "Timers of controllers and queue disciplines expire at multiples of this, like jiffies of a kernel; 0s is exact.",
);

pub(crate) const PROPS: &[Key] = &[
    RATE,
    key("delay", Form::Time, "20ms", DELAY_DOC),
    QUEUE,
    ROUTER,
    CLASSES,
    KAPPA,
    BY_FLOWS,
    CAPACITY,
    HALF_DUPLEX,
    CHANNEL,
    CLOCK_TICK,
    ELEMENT,
];

/// The word for no SCONE element.
pub(crate) const NO_ELEMENT: &[&str] = &["none"];

/// What an element may advise besides a rate.
pub(crate) const ADVISED: &[&str] = &["fair", "measured"];

pub(crate) const SCONE: &[Key] = &[key(
    "advise",
    Form::OneOf(&[Form::Rate, Form::Words(ADVISED)]),
    "",
    "The advice: a rate from 100kbit/s to 199.5Gbit/s, rounded down to one of SCONE's; `fair`, a share of the capacity that the \
     port's router divides among flows; `measured`, a share of the rate at which the port was seen to send. Shares are max-min \
     fair among flows with room to double.",
)];

/// What a class may match.
pub(crate) const MATCHES: &[&str] = &["explicit", "other"];

pub(crate) const CLASS: &[Key] = &[
    key(
        "match",
        Form::Words(MATCHES),
        "",
        "Packets of the class: `explicit`, those with a congestion header; `other`, all that no other class matches.",
    ),
    key(
        "queue",
        Form::Queue,
        "the link's",
        "Queue discipline of the class. A `bdp` and a rate are the link's, times the share of the class.",
    ),
    key(
        "router",
        Form::Router,
        "the link's",
        "Controller of the class; its configured capacity is the share of the class.",
    ),
    key("weight", Form::Number(0.001, 1000.0), "1", "Weight of the class, relative to the other classes."),
];

pub(crate) const ACCESS: &[Key] = &[
    RATE,
    key(
        "delay",
        Form::OneOf(&[Form::Time, Form::Table(RANGE)]),
        "1ms",
        "Propagation delay, one way; a range spreads the delays evenly over the pairs.",
    ),
    QUEUE,
    ROUTER,
    CLASSES,
    KAPPA,
    BY_FLOWS,
    CAPACITY,
    HALF_DUPLEX,
    CHANNEL,
    CLOCK_TICK,
    ELEMENT,
];

/// A configured capacity that differs from the link's rate by a factor, or one that is measured.
pub(crate) const CAPACITY_TABLE: &[Key] = &[
    key("factor", Form::Number(1e-3, 1e3), "by `measured`", "Configured capacity over the link's rate."),
    key("measured", Form::Words(MEASURED), "by `factor`", hop_capacity::Params::PARAMS[0].doc),
    key("window", Form::Time, "100ms", hop_capacity::Params::PARAMS[1].doc),
];
/// What a capacity may be measured by, in the order of the parameter.
pub(crate) const MEASURED: &[&str] = match hop_capacity::Params::PARAMS[0].unit {
    Unit::Choice(words) => words,
    _ => &[],
};

/// A step of a capacity over time.
pub(crate) const CAPACITY_STEP: &[Key] = &[
    key("at", Form::Time, "", "Start time."),
    key("rate", Form::Rate, "by `factor`", "Configured capacity."),
    key("factor", Form::Number(1e-3, 1e3), "by `rate`", "Configured capacity over the link's rate."),
];

/// A step of a rate over time.
pub(crate) const STEP: &[Key] =
    &[key("at", Form::Time, "", "Start time."), key("rate", Form::Rate, "", "The rate; `0bit/s` stops the link.")];

pub(crate) const RANGE: &[Key] = &[
    key("from", Form::Time, "", "Delay of the first pair's links."),
    key("to", Form::Time, "", "Delay of the last pair's links."),
];

pub(crate) const NODE: &[Key] = &[
    key("name", Form::Text, "", "Name."),
    key(
        "kind",
        Form::Words(NODE_KINDS),
        "host if it has one neighbour",
        "Ports of a host have unlimited queues by default. A bridge (or a node inside a tunnel) does not decrement TTLs and has no \
         controllers.",
    ),
];

pub(crate) const REROUTE: &[Key] = &[
    key("at", Form::Time, "", "Start time."),
    key(
        "without",
        Form::List(&Form::Text),
        "",
        "Links that routes avoid from then on; an empty list restores all links. Packets in transit keep their route, and so do \
         flows whose `path` lists every node.",
    ),
];

pub(crate) const LINK: &[Key] = &[
    key(
        "name",
        Form::Text,
        "from->to",
        "Name; without `from` and `to`, the name of the existing link that these settings apply to.",
    ),
    key("from", Form::Text, "", "Node at which a custom link starts."),
    key("to", Form::Text, "", "Node at which a custom link ends."),
    key(
        "duplex",
        Form::Flag,
        "false",
        "Also creates the reverse direction, named `to->from`, or `NAME-back` if there is a name.",
    ),
    RATE,
    key("delay", Form::Time, "10ms", DELAY_DOC),
    QUEUE,
    ROUTER,
    CLASSES,
    KAPPA,
    BY_FLOWS,
    CAPACITY,
    HALF_DUPLEX,
    CHANNEL,
    CLOCK_TICK,
    ELEMENT,
];

/// Ways to place stations.
pub(crate) const LAYOUTS: &[&str] = &["chain", "star", "mesh"];

const STATION_QUEUE: Key = key(
    "queue",
    Form::Queue,
    "auto",
    "Queue discipline of an interface, shared by all neighbours. `auto`: droptail with a limit of 100pkt.",
);

/// Keys of a medium besides the parameters of its kind.
pub(crate) const MEDIUM: &[Key] = &[
    key("name", Form::Text, "", "Name."),
    key("kind", Form::Text, "dcf", "Kind of medium."),
    key("layout", Form::Table(LAYOUT), "none", "Stations at regular positions."),
    key(
        "station",
        Form::List(&Form::Table(STATION)),
        "none",
        "Individual stations, or settings for stations of the layout.",
    ),
    key(
        "interferer",
        Form::List(&Form::Table(INTERFERER)),
        "none",
        "Sources of interference, with the power of a station.",
    ),
    STATION_QUEUE,
    ROUTER,
    CLASSES,
    KAPPA,
    BY_FLOWS,
    CAPACITY,
    CLOCK_TICK,
    ELEMENT,
];

pub(crate) const LAYOUT: &[Key] = &[
    key(
        "kind",
        Form::Words(LAYOUTS),
        "chain",
        "chain: n1, n2, ... in a line, linked to the next; star: n1, n2, ... around the hub n0, linked to it; mesh: rows of \
         n1, n2, ..., linked to the four next.",
    ),
    key(
        "stations",
        Form::Whole(1, limits::STATIONS),
        "2",
        "Number of stations of a chain, or of a star without its hub.",
    ),
    key("rows", Form::Whole(1, limits::STATIONS), "2", "Rows of a mesh."),
    key("columns", Form::Whole(1, limits::STATIONS), "2", "Columns of a mesh."),
    key("spacing", Form::Distance, "100m", "Distance between neighbours; in a star, from the hub."),
    key("prefix", Form::Text, "n", "Prefix of the names."),
];

pub(crate) const STATION: &[Key] = &[
    key("node", Form::Text, "", "Name of the node, which is created if it is not declared."),
    key("at", Form::List(&Form::Coordinate), "by layout", "Position: [x, y]."),
    STATION_QUEUE,
    ROUTER,
    CLASSES,
    KAPPA,
    BY_FLOWS,
    CAPACITY,
    CLOCK_TICK,
    ELEMENT,
];

pub(crate) const INTERFERER: &[Key] = &[
    key("at", Form::List(&Form::Coordinate), "", "Position: [x, y]."),
    key("on", Form::Time, "", "Length of a burst; the mean if `random`."),
    key("off", Form::Time, "", "Pause before and between bursts; the mean if `random`."),
    key("random", Form::Flag, "false", "Lengths are exponentially distributed instead of fixed."),
];

pub(crate) const FLOWS: &[Key] = &[
    key("name", Form::Text, "", "Name of the group; flow i is named `name.i`."),
    key("count", Form::Whole(1, limits::GROUP), "1; with arrivals, enough for the whole run", "Number of flows."),
    key("protocol", Form::Protocol, "", "A preset, a protocol, or protocol/recovery."),
    key(
        "stack",
        Form::Words(STACK_NAMES),
        "the scenario's",
        "The TCP of the hosts: retransmission timer, recovery, start and acknowledgements. `params` and a recovery in `protocol` \
         win over it; explicit protocols keep their own start and acknowledgements.",
    ),
    key("params", Form::FlowParams, "{}", "Parameters of the congestion controller, the recovery and the flow."),
    key("packet", Form::Bytes, "1500B", "IP length of a full data packet, with all headers."),
    key(
        "start",
        Form::OneOf(&[Form::Time, Form::Table(START)]),
        "0s",
        "Start times: all at once, spread evenly, or uniformly at random.",
    ),
    key(
        "processing",
        PROCESSING,
        "the scenario's",
        "Largest processing time of the sending host per data packet: each time is random, uniform from zero up to this, and \
         packets keep their order. `auto`: the transmission time of the largest packet on the slowest link of the path, at most \
         10ms; `none`: no processing time.",
    ),
    key("stop", Form::Time, "never", "Latest stop time."),
    key(
        "size",
        Form::OneOf(&[Form::Bytes, Form::Table(SIZE)]),
        "without end",
        "Payload bytes that each flow transfers.",
    ),
    key("on_off", Form::Table(ON_OFF), "always on", "Alternates between unlimited sending and silence."),
    key(
        "session",
        Form::Table(SESSION),
        "one connection without end",
        "Connections that end, or are aborted by timeouts, and restart after a pause.",
    ),
    key("arrivals", Form::Frequency, "none", "Flows start as a Poisson process with this rate, at most `count` of them."),
    key("paced", Form::Flag, "false", "Packets are paced over the round trip even if the congestion controller does not pace."),
    key(
        "path",
        NAMES,
        "long",
        "`long`, `reverse` (opposite direction), `cross` (spread over the hops), `cross.N`; or the names of the nodes in order.",
    )
    .words_formerly(&[("back", "reverse")]),
    key("from", NAMES, "by path", "Source node, or a list of them."),
    key("to", NAMES, "by path", "Destination node, or a list of them."),
];

pub(crate) const START: &[Key] = &[
    key("at", Form::Time, "0s", "Start time of all flows."),
    key("spread", Form::Time, "none", "Flow i of n starts at from + i * spread / n."),
    key("uniform", Form::Time, "none", "Each starts at a random time within this span."),
    key("from", Form::Time, "0s", "The earliest start."),
];

pub(crate) const SIZE: &[Key] = &[
    key("mean", Form::Bytes, "", "Mean."),
    key("distribution", Form::Words(&["exponential", "pareto"]), "exponential", "Distribution.").formerly("law"),
    key("shape", Form::Number(1.0, 100.0), "1.2", "Shape of the Pareto distribution, greater than 1."),
];

pub(crate) const ON_OFF: &[Key] = &[
    key("on", Form::Time, "", "Length of an on-period; the mean if `random`."),
    key("off", Form::Time, "", "Length of an off-period; the mean if `random`."),
    key("random", Form::Flag, "false", "Periods are exponentially distributed instead of fixed."),
];

pub(crate) const SESSION: &[Key] = &[
    key("timeouts", Form::Whole(1, limits::COUNT), "6", "Consecutive timeouts that abort a session."),
    key(
        "pause",
        Form::OneOf(&[Form::Time, Form::Table(PAUSE)]),
        "5s",
        "Time before the next session; a range draws each at random.",
    ),
    key("duration", Form::Time, "until it is aborted", "Length of a session; the mean if `random`."),
    key("random", Form::Flag, "false", "Durations are exponentially distributed instead of fixed."),
];

pub(crate) const PAUSE: &[Key] =
    &[key("from", Form::Time, "", "The shortest pause."), key("to", Form::Time, "", "The longest pause.")];

pub(crate) const SAMPLING: &[Key] = &[
    key("every", Form::Time, "100ms", "Sampling period."),
    key(
        "of",
        Form::List(&Form::Words(SAMPLED)),
        "[\"queue\", \"cwnd\", \"throughput\", \"rtt\"]",
        "Variables: queue and throughput of links; cwnd, rtt and goodput of flows; all variables of controllers (router), senders (flow) or agents (agent).",
    ),
];

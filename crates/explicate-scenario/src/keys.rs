//! Every key of a scenario file, declared once: unknown keys are found by it, and the JSON Schema is made from it.

use crate::limits;

/// What a key takes.
#[derive(Clone, Copy)]
pub(crate) enum Form {
    /// Any text.
    Text,
    /// One of these words.
    Words(&'static [&'static str]),
    Time,
    Rate,
    Bytes,
    /// A distance or its opposite.
    Coordinate,
    Distance,
    /// `"50/s"`.
    Frequency,
    /// A whole number, both bounds included.
    Whole(u64, u64),
    /// A number, both bounds included.
    Number(f64, f64),
    Flag,
    /// The `protocol` of a flow: preset, protocol or law/recovery.
    Protocol,
    /// The parameters of a flow, by the registry.
    FlowParams,
    /// A queue: `"unlimited"`, `"auto"`, a name, or a table by the registry.
    Queue,
    /// A router: `"auto"`, `"none"`, a name, or a table by the registry.
    Router,
    /// A list of channels: names, or tables by the registry.
    Channels,
    /// A medium: [`MEDIUM`] and the parameters of its kind, by the registry.
    Medium,
    /// Axes: any path of keys, with a list of values.
    Axes,
    /// Any of these.
    OneOf(&'static [Form]),
    /// A list of these.
    List(&'static Form),
    /// A table with these keys.
    Table(&'static [Key]),
}

/// A key.
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) form: Form,
    /// As a scenario would write it; a sentence in words if it depends; empty if the key is required.
    pub(crate) default: &'static str,
    pub(crate) doc: &'static str,
    /// Its name in earlier versions, which still works with a warning; empty if it has none.
    pub(crate) old_name: &'static str,
    /// Words that it takes, by their names in earlier versions and now.
    pub(crate) old_words: &'static [(&'static str, &'static str)],
}

impl Key {
    const fn formerly(self, old_name: &'static str) -> Key {
        Key { old_name, ..self }
    }
    const fn words_formerly(self, old_words: &'static [(&'static str, &'static str)]) -> Key {
        Key { old_words, ..self }
    }
}

const fn key(name: &'static str, form: Form, default: &'static str, doc: &'static str) -> Key {
    Key { name, form, default, doc, old_name: "", old_words: &[] }
}

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
    key("name", Form::Text, "the name of the file", "What results are called."),
    key("duration", Form::Time, "60s", "Simulated time of one run."),
    key("warmup", Form::Time, "0s", "Time at the start that every summary leaves out."),
    key("runs", Form::Whole(1, limits::COUNT), "1", "Independent repetitions; run i has the seed `seed + i`."),
    key("seed", Form::Whole(0, limits::SEED), "1", "Seed of the first run."),
    key("processing", PROCESSING, "auto", "The `processing` of groups of flows that say none."),
    key(
        "topology",
        Form::Table(TOPOLOGY),
        "a dumbbell, or explicit if there is a [[node]] or [[medium]]",
        "A generated topology.",
    ),
    key("node", Form::List(&Form::Table(NODE)), "none", "Nodes of one's own."),
    key(
        "link",
        Form::List(&Form::Table(LINK)),
        "none",
        "Links of one's own (`from` and `to`), or refinements of one direction of a named link.",
    ),
    key("medium", Form::List(&Form::Medium), "none", "Air that nodes share; links between its stations come with it."),
    key("reroute", Form::List(&Form::Table(REROUTE)), "none", "Changes of routes in mid-run, in order of time."),
    key("flows", Form::List(&Form::Table(FLOWS)), "", "Groups of like flows."),
    key("sampling", Form::Table(SAMPLING), "nothing is sampled", "What is recorded over time."),
    key("sweep", Form::Axes, "none", "Axes of a sweep: a path of keys and the values that it takes."),
];

pub(crate) const TOPOLOGY: &[Key] = &[
    key("kind", Form::Words(KINDS), "dumbbell", "Which generator makes the nodes and links."),
    key(
        "pairs",
        Form::Whole(1, limits::COUNT),
        "the number of flows",
        "Pairs of hosts at the ends (dumbbell, chain, parking_lot).",
    ),
    key("hops", Form::Whole(1, limits::HOPS), "2", "Links between routers (chain, parking_lot)."),
    key("cross", Form::Whole(1, limits::COUNT), "1", "Pairs of hosts beside every hop (parking_lot)."),
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
    "10Mbit/s; of access links ten times that of the middle",
    "Rate of IP bytes. A recorded channel replaces it by its mean.",
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
    "Controller of the port. `auto`: those of the protocols that flows use; `none`: plain IP.",
);
const CAPACITY: Key = key(
    "capacity",
    Form::OneOf(&[Form::Rate, Form::Table(BELIEF), Form::List(&Form::Table(BELIEF_STEP))]),
    "the rate; less what coding adds to long packets",
    "The capacity that controllers believe in: a rate, a factor of the link's, or steps over time.",
);
const HALF_DUPLEX: Key = key(
    "half_duplex",
    Form::Flag,
    "false",
    "Both directions share one line and take turns on it, packet by packet. It is enough that one of them says so.",
);
const CHANNEL: Key = key("channel", Form::Channels, "[]", "What the link does to packets, in order; empty is a wire.");
const CLASSES: Key = key(
    "classes",
    Form::List(&Form::Table(CLASS)),
    "[]",
    "Several queues that take turns by weight instead of one for all packets, each with a controller of its own.",
);
const KAPPA: Key = key(
    "kappa",
    Form::Number(0.0, 1.0),
    "0",
    "How far the weights of the classes `explicit` and `other` move each round trip, until flows have equal windows in both.",
);
const BY_FLOWS: Key = key(
    "share_by_flows",
    Form::Flag,
    "false",
    "Packets that the port's controller answers and all others wait in queues of their own, and each kind has a share of the line by how many flows of it send.",
);
const DELAY_DOC: &str = "Propagation delay, one way.";

const CLOCK_TICK: Key = key(
    "clock_tick",
    Form::Time,
    "0s",
    "Timers of controllers and disciplines expire at multiples of this, as in a kernel of that time; 0s is exact.",
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
];

/// Bounds of a class's weight.
pub(crate) const WEIGHT: (f64, f64) = (0.001, 1000.0);
/// What a class may match.
pub(crate) const MATCHES: &[&str] = &["explicit", "other"];

pub(crate) const CLASS: &[Key] = &[
    key(
        "match",
        Form::Words(MATCHES),
        "",
        "Which packets: `explicit`, those with a congestion header; `other`, all that no other class matches.",
    ),
    key("queue", Form::Queue, "the link's", "Its queue discipline. A `bdp` and a rate are the link's and its share."),
    key("router", Form::Router, "the link's", "Its controller, which believes in its share of the capacity."),
    key("weight", Form::Number(WEIGHT.0, WEIGHT.1), "1", "Its share of the line, beside the weights of the others."),
];

pub(crate) const ACCESS: &[Key] = &[
    RATE,
    key(
        "delay",
        Form::OneOf(&[Form::Time, Form::Table(RANGE)]),
        "1ms",
        "Propagation delay, one way; a range is spread evenly over the pairs.",
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
];

/// A capacity that is wrong by a factor.
pub(crate) const BELIEF: &[Key] =
    &[key("factor", Form::Number(1e-3, 1e3), "", "What is believed over the link's rate.")];

/// A step of a capacity over time.
pub(crate) const BELIEF_STEP: &[Key] = &[
    key("at", Form::Time, "", "From when on."),
    key("rate", Form::Rate, "by `factor`", "What is believed."),
    key("factor", Form::Number(1e-3, 1e3), "by `rate`", "What is believed over the link's rate."),
];

/// A step of a rate over time.
pub(crate) const STEP: &[Key] =
    &[key("at", Form::Time, "", "From when on."), key("rate", Form::Rate, "", "The rate; `0bit/s` is a pause.")];

pub(crate) const RANGE: &[Key] = &[
    key("from", Form::Time, "", "Delay of the first pair's links."),
    key("to", Form::Time, "", "Delay of the last pair's links."),
];

pub(crate) const NODE: &[Key] = &[
    key("name", Form::Text, "", "Its name."),
    key(
        "kind",
        Form::Words(NODE_KINDS),
        "host if it has one neighbour",
        "A host's own ports have unlimited queues unless said. A bridge, or what stands within a tunnel, does not count TTLs down \
         and has no controllers.",
    ),
];

pub(crate) const REROUTE: &[Key] = &[
    key("at", Form::Time, "", "From when on."),
    key(
        "without",
        Form::List(&Form::Text),
        "",
        "Links that routes leave out from then on; an empty list puts all back. Packets under way stay on theirs, and so do flows \
         whose `path` names every node.",
    ),
];

pub(crate) const LINK: &[Key] = &[
    key("name", Form::Text, "from->to", "Its name; without `from` and `to`, the name of the link to refine."),
    key("from", Form::Text, "", "The node that it leaves (a link of one's own)."),
    key("to", Form::Text, "", "The node that it reaches (a link of one's own)."),
    key(
        "duplex",
        Form::Flag,
        "false",
        "Makes the other direction too, called `to->from`, or `NAME-back` if there is a name.",
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
];

/// Ways to place stations.
pub(crate) const LAYOUTS: &[&str] = &["chain", "star", "mesh"];

const STATION_QUEUE: Key = key(
    "queue",
    Form::Queue,
    "auto",
    "Queue discipline of an interface, which serves all neighbours. `auto`: droptail with a limit of 100pkt.",
);

/// Keys of a medium beside the parameters of its kind.
pub(crate) const MEDIUM: &[Key] = &[
    key("name", Form::Text, "", "Its name."),
    key("kind", Form::Text, "dcf", "Which medium."),
    key("layout", Form::Table(LAYOUT), "none", "Stations at regular places."),
    key("station", Form::List(&Form::Table(STATION)), "none", "Stations one by one, or refinements of the layout's."),
    key("interferer", Form::List(&Form::Table(INTERFERER)), "none", "Sources of noise, as loud as a station."),
    STATION_QUEUE,
    ROUTER,
    CLASSES,
    KAPPA,
    BY_FLOWS,
    CAPACITY,
    CLOCK_TICK,
];

pub(crate) const LAYOUT: &[Key] = &[
    key(
        "kind",
        Form::Words(LAYOUTS),
        "chain",
        "chain: n1, n2, ... in a line, linked to the next; star: n1, n2, ... around the hub n0, linked to it; mesh: rows of \
         n1, n2, ..., linked to the four next.",
    ),
    key("stations", Form::Whole(1, limits::STATIONS), "2", "Stations of a chain; of a star without its hub."),
    key("rows", Form::Whole(1, limits::STATIONS), "2", "Rows of a mesh."),
    key("columns", Form::Whole(1, limits::STATIONS), "2", "Columns of a mesh."),
    key("spacing", Form::Distance, "100m", "From a station to the next, of a star to the hub."),
    key("prefix", Form::Text, "n", "What names begin with."),
];

pub(crate) const STATION: &[Key] = &[
    key("node", Form::Text, "", "The node; one that is not declared is made."),
    key("at", Form::List(&Form::Coordinate), "by layout", "Its place: [x, y]."),
    STATION_QUEUE,
    ROUTER,
    CLASSES,
    KAPPA,
    BY_FLOWS,
    CAPACITY,
    CLOCK_TICK,
];

pub(crate) const INTERFERER: &[Key] = &[
    key("at", Form::List(&Form::Coordinate), "", "Its place: [x, y]."),
    key("on", Form::Time, "", "Length of a burst, the mean if random."),
    key("off", Form::Time, "", "Pause before and between bursts, the mean if random."),
    key("random", Form::Flag, "false", "Lengths are exponential rather than fixed."),
];

pub(crate) const FLOWS: &[Key] = &[
    key("name", Form::Text, "", "Name of the group; flow i is called `name.i`."),
    key("count", Form::Whole(1, limits::GROUP), "1; with arrivals, enough for the whole run", "Number of flows."),
    key("protocol", Form::Protocol, "", "A preset, a protocol, or law/recovery."),
    key("params", Form::FlowParams, "{}", "Parameters of the law, the recovery and the flow."),
    key("packet", Form::Bytes, "1500B", "IP length of a full data packet, with all headers."),
    key(
        "start",
        Form::OneOf(&[Form::Time, Form::Table(START)]),
        "0s",
        "When they start: all at a time, spread evenly, or uniformly at random.",
    ),
    key(
        "processing",
        PROCESSING,
        "the scenario's",
        "The longest that the sending host takes for a data packet: each takes a random time, uniform from zero up to this, and \
         packets keep their order. `auto`: what the largest packet takes on the narrowest link of the way, at most 10ms; `none`: \
         no time.",
    ),
    key("stop", Form::Time, "never", "When they stop at the latest."),
    key(
        "size",
        Form::OneOf(&[Form::Bytes, Form::Table(SIZE)]),
        "without end",
        "Payload bytes that each flow transfers.",
    ),
    key("on_off", Form::Table(ON_OFF), "always on", "Alternately sends without end and nothing."),
    key(
        "session",
        Form::Table(SESSION),
        "one connection without end",
        "Connections that end, or are torn down by timeouts, and come again after a pause.",
    ),
    key("arrivals", Form::Frequency, "none", "Flows start as a Poisson process of this rate, `count` at most."),
    key("paced", Form::Flag, "false", "Packets are spread over the round trip even if the law does not ask for it."),
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
    key("at", Form::Time, "0s", "All at once."),
    key("spread", Form::Time, "none", "Flow i of n starts at from + i * spread / n."),
    key("uniform", Form::Time, "none", "Each starts at a random time of this span."),
    key("from", Form::Time, "0s", "The earliest start."),
];

pub(crate) const SIZE: &[Key] = &[
    key("mean", Form::Bytes, "", "Mean."),
    key("distribution", Form::Words(&["exponential", "pareto"]), "exponential", "Distribution.").formerly("law"),
    key("shape", Form::Number(1.0, 100.0), "1.2", "Shape of the Pareto distribution, greater than 1."),
];

pub(crate) const ON_OFF: &[Key] = &[
    key("on", Form::Time, "", "Length of an on-period, the mean if random."),
    key("off", Form::Time, "", "Length of an off-period, the mean if random."),
    key("random", Form::Flag, "false", "Periods are exponential rather than fixed."),
];

pub(crate) const SESSION: &[Key] = &[
    key("timeouts", Form::Whole(1, limits::COUNT), "6", "Timeouts in a row that tear a session down."),
    key(
        "pause",
        Form::OneOf(&[Form::Time, Form::Table(PAUSE)]),
        "5s",
        "Time before the next session; of a range each at random.",
    ),
    key("duration", Form::Time, "until it is torn down", "How long a session lasts, the mean if random."),
    key("random", Form::Flag, "false", "Durations are exponential rather than fixed."),
];

pub(crate) const PAUSE: &[Key] =
    &[key("from", Form::Time, "", "The shortest pause."), key("to", Form::Time, "", "The longest pause.")];

pub(crate) const SAMPLING: &[Key] = &[
    key("every", Form::Time, "100ms", "The period."),
    key(
        "of",
        Form::List(&Form::Words(SAMPLED)),
        "[\"queue\", \"cwnd\", \"throughput\", \"rtt\"]",
        "What: queue and throughput of links, cwnd, rtt and goodput of flows, all variables of controllers (router), senders (flow) or agents (agent).",
    ),
];

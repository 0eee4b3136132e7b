//! Properties of links as written: rate, delay, queue, router, configured capacity and channels.

use std::sync::LazyLock;

use explicate_core::api::AnyProtocol;
use explicate_core::channel::{AnyChannelKind, ChannelInit, ChannelStages};
use explicate_core::params::{Param, Values};
use explicate_core::qdisc::AnyQdiscKind;
use explicate_core::registry::{self, CHANNELS, QDISCS, protocols};
use explicate_core::rng::Rng;
use explicate_core::units::{Rate, Time};

use crate::classes::{self, Class};
use crate::document::{Data, Node, Place, Table, number, quoted};
use crate::keys;
use crate::limits;
use crate::params::{self, Chosen, Given};
use crate::problem::suggestion;
use crate::quantity::{self, Length, show};
use crate::reader::{Context, Reader, short, text};
use crate::steps::Capacity;

/// The default discipline of a queue.
pub(crate) const DEFAULT_QUEUE: &str = "droptail";
/// The parameter whose default depends on the port, not on the discipline.
const LIMIT: &str = "limit";
/// Default limit at a link, and at an interface to a medium, whose bandwidth-delay product is unknown: that of a
/// kernel at the time of paper Y.
pub(crate) const LINK_LIMIT: Length = Length::Bdp(1.0);
pub(crate) const INTERFACE_LIMIT: Length = Length::Packets(100.0);
/// The parameter that sets the unit of the limit, and the word for packets.
const COUNT: (&str, &str) = ("count", "packets");

/// A queue as written.
#[derive(Clone)]
pub(crate) enum Queue {
    /// Unlimited at a host's own port, the default discipline elsewhere.
    Auto,
    Unlimited,
    Kind(&'static AnyQdiscKind, Vec<Chosen>),
}

/// A router as written.
#[derive(Clone)]
pub(crate) enum Router {
    /// The controllers of the protocols that flows use.
    Auto,
    None,
    Of(&'static AnyProtocol, Vec<Chosen>),
}

/// A channel as written.
#[derive(Clone)]
pub(crate) struct Channel {
    pub(crate) kind: &'static AnyChannelKind,
    pub(crate) chosen: Vec<Chosen>,
}

/// A delay as written.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Delay {
    Fixed(Time),
    /// Spread evenly over the pairs of a generator.
    Range(Time, Time),
}

/// Defaults of properties, as the keys declare them.
struct Defaults {
    kappa: f64,
    by_flows: bool,
    half_duplex: bool,
    clock_tick: Time,
}

static DEFAULTS: LazyLock<Defaults> = LazyLock::new(|| Defaults {
    kappa: keys::default(keys::PROPS, "kappa", str::parse),
    by_flows: keys::default(keys::PROPS, "share_by_flows", str::parse),
    half_duplex: keys::default(keys::PROPS, "half_duplex", str::parse),
    clock_tick: keys::default(keys::PROPS, "clock_tick", quantity::time),
});

/// Properties as written for a link; `None` if not given.
#[derive(Clone, Default)]
pub(crate) struct Props {
    pub(crate) rate: Option<Rate>,
    pub(crate) delay: Option<Delay>,
    pub(crate) queue: Option<Queue>,
    pub(crate) router: Option<Router>,
    pub(crate) classes: Option<Vec<Class>>,
    kappa: Option<f64>,
    by_flows: Option<bool>,
    pub(crate) capacity: Option<Capacity>,
    half_duplex: Option<bool>,
    pub(crate) channel: Option<Vec<Channel>>,
    clock_tick: Option<Time>,
    /// Location, for later messages.
    pub(crate) place: Option<Place>,
}

impl Props {
    /// Reads the keys of all kinds of links.
    pub(crate) fn read(reader: &Reader<'_>) -> Props {
        let ctx = reader.ctx;
        Props {
            rate: reader.rate("rate"),
            delay: reader.get("delay").and_then(|node| read_delay(reader, node)),
            half_duplex: reader.flag("half_duplex"),
            channel: reader.get("channel").and_then(|node| read_channels(ctx, node)),
            ..Props::read_port(reader, LINK_LIMIT)
        }
    }

    /// Reads the keys of a port: of a link, or of an interface to a medium. Queues without a limit get this one.
    pub(crate) fn read_port(reader: &Reader<'_>, limit: Length) -> Props {
        let ctx = reader.ctx;
        Props {
            queue: reader.get("queue").and_then(|node| read_queue(ctx, node, limit)),
            router: reader.get("router").and_then(|node| read_router(ctx, node)),
            classes: reader.get("classes").and_then(|node| classes::read(ctx, node, limit)),
            kappa: reader.number("kappa"),
            by_flows: reader.flag("share_by_flows"),
            capacity: reader.get("capacity").and_then(|node| Capacity::read(ctx, node)),
            clock_tick: reader.get("clock_tick").and_then(|node| read_tick(ctx, node)),
            place: Some(reader.place),
            ..Props::default()
        }
    }

    pub(crate) fn kappa(&self) -> f64 {
        self.kappa.unwrap_or(DEFAULTS.kappa)
    }
    pub(crate) fn by_flows(&self) -> bool {
        self.by_flows.unwrap_or(DEFAULTS.by_flows)
    }
    pub(crate) fn half_duplex(&self) -> bool {
        self.half_duplex.unwrap_or(DEFAULTS.half_duplex)
    }
    pub(crate) fn clock_tick(&self) -> Time {
        self.clock_tick.unwrap_or(DEFAULTS.clock_tick)
    }

    /// These properties, overridden by those of `other`.
    pub(crate) fn refined(&self, other: &Props) -> Props {
        Props {
            rate: other.rate.or(self.rate),
            delay: other.delay.or(self.delay),
            queue: other.queue.clone().or_else(|| self.queue.clone()),
            router: other.router.clone().or_else(|| self.router.clone()),
            classes: other.classes.clone().or_else(|| self.classes.clone()),
            kappa: other.kappa.or(self.kappa),
            by_flows: other.by_flows.or(self.by_flows),
            capacity: other.capacity.clone().or_else(|| self.capacity.clone()),
            half_duplex: other.half_duplex.or(self.half_duplex),
            channel: other.channel.clone().or_else(|| self.channel.clone()),
            clock_tick: other.clock_tick.or(self.clock_tick),
            place: other.place.or(self.place),
        }
    }

    /// The rate: the mean of a channel that replaces the service, else the given rate, else `default`.
    pub(crate) fn nominal(&self, default: Rate) -> Rate {
        let service = self.stages(self.rate.unwrap_or(default)).filter_map(|s| s.service).next_back();
        let mean = service.map(|s| Rate::from_bytes_per_sec(s.mean_rate()));
        mean.or(self.rate).unwrap_or(default)
    }

    /// Whether a channel replaces the constant rate.
    pub(crate) fn has_service(&self) -> bool {
        self.stages(Rate::mbps(1)).any(|s| s.service.is_some())
    }

    fn stages(&self, rate: Rate) -> impl DoubleEndedIterator<Item = ChannelStages> {
        let channels = self.channel.iter().flatten();
        channels.map(move |c| c.stages(rate))
    }

    /// The configured capacity at the start, and its changes.
    pub(crate) fn beliefs(&self, rate: Rate) -> (Rate, Vec<(Time, Rate)>) {
        let efficiency: f64 = self.stages(rate).filter_map(|s| s.coding).map(|c| c.efficiency()).product();
        let usual = Rate((rate.0 as f64 * efficiency).round().max(1.0) as u64);
        match &self.capacity {
            None => (usual, Vec::new()),
            Some(capacity) => capacity.over(rate, usual),
        }
    }

    /// Every property as TOML, defaults filled in.
    pub(crate) fn written(&self, default_rate: Rate, default_delay: Time) -> Vec<(&'static str, String)> {
        let rate = self.nominal(default_rate);
        let time = |t: Time| quoted(&show(t.0 as f64, &quantity::TIME));
        let delay = match self.delay.unwrap_or(Delay::Fixed(default_delay)) {
            Delay::Fixed(t) => time(t),
            Delay::Range(from, to) => format!("{{ from = {}, to = {} }}", time(from), time(to)),
        };
        let mut all = vec![("rate", quoted(&show(rate.0 as f64, &quantity::RATE))), ("delay", delay)];
        all.extend(self.written_port(rate));
        all.push(("half_duplex", self.half_duplex().to_string()));
        all.push(("channel", self.written_channels()));
        all
    }

    /// The properties of a port as TOML.
    pub(crate) fn written_port(&self, rate: Rate) -> Vec<(&'static str, String)> {
        let rate_text = |r: Rate| quoted(&show(r.0 as f64, &quantity::RATE));
        let classes: Vec<String> = self.classes.iter().flatten().map(Class::written).collect();
        let mut all = vec![
            ("queue", self.queue.as_ref().map_or_else(|| quoted("auto"), Queue::written)),
            ("router", self.router.as_ref().map_or_else(|| quoted("auto"), Router::written)),
            ("classes", format!("[{}]", classes.join(", "))),
            ("kappa", number(self.kappa())),
            ("capacity", self.capacity.as_ref().map_or_else(|| rate_text(self.beliefs(rate).0), Capacity::written)),
        ];
        all.extend(self.by_flows.map(|by_flows| ("share_by_flows", by_flows.to_string())));
        all.extend(self.clock_tick.map(|t| ("clock_tick", quoted(&show(t.0 as f64, &quantity::TIME)))));
        all
    }

    /// The channels as TOML.
    pub(crate) fn written_channels(&self) -> String {
        let channels: Vec<String> = self.channel.iter().flatten().map(Channel::written).collect();
        format!("[{}]", channels.join(", "))
    }
}

impl Queue {
    pub(crate) fn written(&self) -> String {
        match self {
            Queue::Auto => quoted("auto"),
            Queue::Unlimited => quoted("unlimited"),
            Queue::Kind(kind, chosen) => inline(kind.name(), &params::written(&all(kind.params()), chosen)),
        }
    }

    /// The default queue of a port with this limit.
    pub(crate) fn standard(limit: Length) -> Queue {
        match registry::qdisc(DEFAULT_QUEUE) {
            Some(kind) => Queue::Kind(kind, limited(kind, Vec::new(), None, limit)),
            None => Queue::Unlimited,
        }
    }
}

impl Router {
    pub(crate) fn written(&self) -> String {
        match self {
            Router::Auto => quoted("auto"),
            Router::None => quoted("none"),
            Router::Of(protocol, chosen) => {
                inline(protocol.name(), &params::written(&all(protocol.router_params()), chosen))
            }
        }
    }
}

impl Channel {
    pub(crate) fn values(&self) -> Values {
        params::values(&self.chosen)
    }
    /// The stages of a channel; no random number is drawn.
    fn stages(&self, rate: Rate) -> ChannelStages {
        self.kind.build(ChannelInit { values: &self.values(), rate, rng: Rng::stream(0, "") })
    }
    fn written(&self) -> String {
        inline(self.kind.name(), &params::written(&all(self.kind.params()), &self.chosen))
    }
}

fn inline(kind: &str, params: &[(&'static str, String)]) -> String {
    let rest: String = params.iter().map(|(k, v)| format!(", {k} = {v}")).collect();
    format!("{{ kind = {}{rest} }}", quoted(kind))
}

fn all(params: &'static [Param]) -> Vec<&'static Param> {
    params.iter().collect()
}

fn read_delay(reader: &Reader<'_>, node: &Node) -> Option<Delay> {
    let Data::Table(_) = node.data else {
        return crate::reader::time(reader.ctx, node, "delay").map(Delay::Fixed);
    };
    if !reader.title.ends_with("access]") {
        reader.ctx.error(node.place, "a range of delays is for the `access` links of a topology; write one time here");
        return None;
    }
    let range = Reader::open(reader.ctx, node, crate::keys::RANGE, "`delay`".to_string())?;
    let (from, to) = (range.need("from").and(range.time("from")), range.need("to").and(range.time("to")));
    Some(Delay::Range(from?, to?))
}

fn read_tick(ctx: &Context<'_>, node: &Node) -> Option<Time> {
    let tick = crate::reader::time(ctx, node, "clock_tick")?;
    let good = tick.0.is_multiple_of(1000) && tick <= Time::secs(1);
    if !good {
        ctx.error(node.place, "`clock_tick` is a whole number of microseconds up to 1s, like \"10ms\"");
    }
    good.then_some(tick)
}

pub(crate) fn read_queue(ctx: &Context<'_>, node: &Node, limit: Length) -> Option<Queue> {
    let empty = Table::default();
    let (name, place, table) = match &node.data {
        Data::Text(word) if word == "unlimited" => return Some(Queue::Unlimited),
        Data::Text(word) if word == "auto" => return Some(Queue::Auto),
        Data::Text(word) => (word.as_str(), node.place, &empty),
        Data::Table(table) => match table.get("kind") {
            None => (DEFAULT_QUEUE, node.place, table),
            Some(kind) => (text(ctx, kind, "kind")?, kind.place, table),
        },
        _ => {
            let forms = "\"unlimited\", the name of a discipline, or a table like { limit = \"1.0bdp\" }";
            ctx.error(node.place, format!("`queue` is {forms}, not {}", node.what()));
            return None;
        }
    };
    let Some(kind) = registry::qdisc(name) else {
        let known = ["auto", "unlimited"].into_iter().chain(QDISCS.iter().map(|q| q.name()));
        ctx.error(place, format!("no queue discipline is called `{}`; {}", short(name), suggestion(name, known)));
        return None;
    };
    let chosen = params::read_all(ctx, table, &all(kind.params()), &["kind"], &format!("queue `{name}`"));
    Some(Queue::Kind(kind, limited(kind, chosen, Some(node.place), limit)))
}

/// Adds values that lengths imply: the limit `limit` if there is none, and with a length in packets the discipline
/// counts packets.
fn limited(kind: &'static AnyQdiscKind, mut chosen: Vec<Chosen>, place: Option<Place>, limit: Length) -> Vec<Chosen> {
    let find = |name: &str| kind.params().iter().find(|p| p.name == name);
    let place = place.unwrap_or(Place::START);
    if let Some(param) = find(LIMIT)
        && !chosen.iter().any(|c| c.param.name == LIMIT)
    {
        chosen.push(Chosen { param, given: Given::Length(limit), place });
    }
    let packets = chosen.iter().any(|c| matches!(c.given, Given::Length(Length::Packets(_))));
    if let Some(param) = find(COUNT.0)
        && let explicate_core::params::Unit::Choice(words) = param.unit
        && let Some(index) = words.iter().position(|w| *w == COUNT.1)
        && packets
        && !chosen.iter().any(|c| c.param.name == COUNT.0)
    {
        chosen.push(Chosen { param, given: Given::Number(index as f64), place });
    }
    chosen
}

pub(crate) fn read_router(ctx: &Context<'_>, node: &Node) -> Option<Router> {
    let empty = Table::default();
    let known = || protocols().filter(|p| p.has_router()).map(|p| p.name());
    let (name, place, table) = match &node.data {
        Data::Text(word) if word == "auto" => return Some(Router::Auto),
        Data::Text(word) if word == "none" => return Some(Router::None),
        Data::Text(word) => (word.as_str(), node.place, &empty),
        Data::Table(table) => match table.get("kind") {
            None => {
                let names: Vec<&str> = known().collect();
                ctx.error(node.place, format!("`router` needs `kind`; there are {}", names.join(", ")));
                return None;
            }
            Some(kind) => (text(ctx, kind, "kind")?, kind.place, table),
        },
        _ => {
            let forms = "\"auto\", \"none\", the name of a protocol, or a table with `kind`";
            ctx.error(node.place, format!("`router` is {forms}, not {}", node.what()));
            return None;
        }
    };
    let Some(protocol) = registry::protocol(name).filter(|p| p.has_router()) else {
        let words = ["auto", "none"].into_iter().chain(known());
        ctx.error(place, format!("no protocol with a router is called `{}`; {}", short(name), suggestion(name, words)));
        return None;
    };
    let declared = all(protocol.router_params());
    Some(Router::Of(protocol, params::read_all(ctx, table, &declared, &["kind"], &format!("router `{name}`"))))
}

fn read_channels(ctx: &Context<'_>, node: &Node) -> Option<Vec<Channel>> {
    let Data::List(nodes) = &node.data else {
        let form = "a list of tables, like [{ kind = ... }]";
        ctx.error(node.place, format!("`channel` is {form}, not {}; put it in square brackets", node.what()));
        return None;
    };
    if nodes.len() > limits::CHANNELS {
        ctx.error(node.place, format!("`channel` has {} entries; the maximum is {}", nodes.len(), limits::CHANNELS));
        return None;
    }
    let channels: Vec<Channel> = nodes.iter().filter_map(|n| read_channel(ctx, n)).collect();
    // Whether a channel determines the service does not depend on its numbers.
    let serves = |c: &&Channel| c.stages(Rate::mbps(1)).service.is_some();
    let serving: Vec<&str> = channels.iter().filter(serves).map(|c| c.kind.name()).collect();
    if let [first, second, ..] = serving.as_slice() {
        ctx.error(node.place, format!("`{first}` and `{second}` both set the link's rate; keep one"));
    }
    Some(channels)
}

fn read_channel(ctx: &Context<'_>, node: &Node) -> Option<Channel> {
    let known = || CHANNELS.iter().map(|c| c.name());
    let empty = Table::default();
    let (name, place, table) = match &node.data {
        Data::Text(word) => (word.as_str(), node.place, &empty),
        Data::Table(table) if table.get("kind").is_some() => {
            let kind = table.get("kind")?;
            (text(ctx, kind, "kind")?, kind.place, table)
        }
        _ => {
            let names: Vec<&str> = known().collect();
            ctx.error(node.place, format!("a channel is a table with `kind`; there are {}", names.join(", ")));
            return None;
        }
    };
    let Some(kind) = registry::channel(name) else {
        ctx.error(place, format!("no channel is called `{}`; {}", short(name), suggestion(name, known())));
        return None;
    };
    let chosen = params::read_all(ctx, table, &all(kind.params()), &["kind"], &format!("channel `{name}`"));
    let contents = kind.params().iter().filter(|p| params::is_content(p));
    for missing in contents.filter(|p| table.get(p.name).is_none()) {
        ctx.error(node.place, format!("channel `{name}` needs `{}`", missing.name));
    }
    ctx.checked(node.place, name, kind.check(&params::values(&chosen)))?;
    Some(Channel { kind, chosen })
}

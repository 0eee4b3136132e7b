//! Parts of a link as written: queue, router and channels.

use explicate_core::api::AnyProtocol;
use explicate_core::channel::{AnyChannelKind, ChannelInit, ChannelStages};
use explicate_core::params::{Param, Values};
use explicate_core::qdisc::AnyQdiscKind;
use explicate_core::registry::{self, CHANNELS, QDISCS, protocols};
use explicate_core::rng::Rng;
use explicate_core::units::Rate;

use crate::document::{Data, Node, Place, Table, quoted};
use crate::limits;
use crate::params::{self, Chosen, Given};
use crate::problem::suggestion;
use crate::quantity::{Length, show_length};
use crate::reader::{Context, short, text};

/// The default discipline of a queue.
pub(crate) const DEFAULT_QUEUE: &str = "droptail";
/// The parameter whose default depends on the port, not on the discipline.
const LIMIT: &str = "limit";
/// Default limit at a link, and at an interface to a medium, whose bandwidth-delay product is unknown: that of a
/// kernel at the time of paper Y.
pub(crate) const LINK_LIMIT: Length = Length::Bdp(1.0);
pub(crate) const INTERFACE_LIMIT: Length = Length::Packets(100.0);
/// The default that a scenario gives to a parameter of a queue discipline, at a link and at an interface to a medium; `None` if it
/// is the discipline's own.
pub fn queue_default(param: &str) -> Option<[String; 2]> {
    (param == LIMIT).then(|| [LINK_LIMIT, INTERFACE_LIMIT].map(show_length))
}
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
    pub(crate) fn stages(&self, rate: Rate) -> ChannelStages {
        self.kind.build(ChannelInit { values: &self.values(), rate, rng: Rng::stream(0, "") })
    }
    pub(crate) fn written(&self) -> String {
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
    if ["auto", "unlimited"].contains(&name) {
        return word_alone(ctx, place, "queue", name);
    }
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

/// Reports a table whose `kind` is a word that stands alone.
fn word_alone<T>(ctx: &Context<'_>, place: Place, key: &str, word: &str) -> Option<T> {
    ctx.error(place, format!("`{word}` takes no parameters; write `{key} = \"{word}\"`"));
    None
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
    if ["auto", "none"].contains(&name) {
        return word_alone(ctx, place, "router", name);
    }
    let Some(protocol) = registry::protocol(name).filter(|p| p.has_router()) else {
        let words = ["auto", "none"].into_iter().chain(known());
        ctx.error(place, format!("no protocol with a router is called `{}`; {}", short(name), suggestion(name, words)));
        return None;
    };
    let declared = all(protocol.router_params());
    Some(Router::Of(protocol, params::read_all(ctx, table, &declared, &["kind"], &format!("router `{name}`"))))
}

pub(crate) fn read_channels(ctx: &Context<'_>, node: &Node) -> Option<Vec<Channel>> {
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

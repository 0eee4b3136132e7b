//! Properties of links as written: rate, delay, queue, router, configured capacity and channels.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use explicate_core::channel::ChannelStages;
use explicate_core::estimate::hop_capacity;
use explicate_core::scone::Advises;
use explicate_core::units::{Rate, Time};

use crate::classes::{self, Class};
use crate::document::{Data, Node, Place, number, quoted};
use crate::keys;
use crate::parts::{Channel, LINK_LIMIT, Queue, Router, read_channels, read_queue, read_router};
use crate::quantity::{self, Length, show};
use crate::reader::{Context, Reader, quantity_of, quantity_that};
use crate::scone;
use crate::steps::Capacity;

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
    scone: Option<scone::Written>,
    /// One table gives `rate` and `channel`.
    rate_beside_channel: bool,
    /// Location, for later messages.
    pub(crate) place: Option<Place>,
    /// Locations of the keys that are given.
    places: BTreeMap<&'static str, Place>,
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
            rate_beside_channel: reader.get("channel").and(reader.get("rate")).is_some(),
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
            scone: reader.get("scone").and_then(|node| scone::read(ctx, node)),
            place: Some(reader.place),
            places: keys::PROPS.iter().filter_map(|key| Some((key.name, reader.table.get(key.name)?.place))).collect(),
            ..Props::default()
        }
    }

    /// The default properties of links; a scenario would set them by this path of keys.
    pub(crate) fn unwritten(path: &'static str) -> Props {
        Props { place: Some(Place::Unwritten(path)), ..Props::default() }
    }
    /// Where a key is given, else where it would be.
    pub(crate) fn at(&self, key: &str) -> Place {
        self.places.get(key).copied().or(self.place).unwrap_or(Place::Unwritten("link"))
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
    pub(crate) fn scone(&self) -> Option<Advises> {
        self.scone.flatten()
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
            scone: other.scone.or(self.scone),
            rate_beside_channel: match other.rate.is_some() || other.channel.is_some() {
                true => other.rate_beside_channel,
                false => self.rate_beside_channel,
            },
            place: other.place.or(self.place),
            places: self.places.iter().chain(&other.places).map(|(key, place)| (*key, *place)).collect(),
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

    /// Whether the written rate has no effect: a channel of the same table brings its own. That of another table may be meant
    /// for other links.
    pub(crate) fn rate_is_replaced(&self, default: Rate) -> bool {
        let Some(rate) = self.rate.filter(|_| self.rate_beside_channel) else { return false };
        let mean = |rate| self.stages(rate).filter_map(|s| s.service).next_back().map(|s| s.mean_rate());
        mean(rate).is_some_and(|x| mean(Rate(rate.0.saturating_mul(2))) == Some(x)) && self.nominal(default) != rate
    }

    fn stages(&self, rate: Rate) -> impl DoubleEndedIterator<Item = ChannelStages> {
        let channels = self.channel.iter().flatten();
        channels.map(move |c| c.stages(rate))
    }

    /// The configured capacity at the start, and its changes.
    pub(crate) fn configured_capacity(&self, rate: Rate) -> (Rate, Vec<(Time, Rate)>) {
        let usual = self.usual_capacity(rate);
        match &self.capacity {
            None => (usual, Vec::new()),
            Some(capacity) => capacity.over(rate, usual),
        }
    }
    fn usual_capacity(&self, rate: Rate) -> Rate {
        let efficiency: f64 = self.stages(rate).filter_map(|s| s.coding).map(|c| c.efficiency()).product();
        Rate((rate.0 as f64 * efficiency).round().max(1.0) as u64)
    }
    /// How the port measures its capacity, if it does.
    pub(crate) fn measured_capacity(&self) -> Option<hop_capacity::Params> {
        self.capacity.as_ref().and_then(Capacity::measured)
    }
    /// Whether controllers have another capacity than the usual one.
    pub(crate) fn sets_capacity(&self, rate: Rate) -> bool {
        self.measured_capacity().is_some() || self.configured_capacity(rate) != (self.usual_capacity(rate), Vec::new())
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
            (
                "capacity",
                self.capacity.as_ref().map_or_else(|| rate_text(self.configured_capacity(rate).0), Capacity::written),
            ),
        ];
        all.extend(self.by_flows.map(|by_flows| ("share_by_flows", by_flows.to_string())));
        all.extend(self.clock_tick.map(|t| ("clock_tick", quoted(&show(t.0 as f64, &quantity::TIME)))));
        all.extend(self.scone.map(|element| ("scone", scone::written(element))));
        all
    }

    /// The channels as TOML.
    pub(crate) fn written_channels(&self) -> String {
        let channels: Vec<String> = self.channel.iter().flatten().map(Channel::written).collect();
        format!("[{}]", channels.join(", "))
    }
}

fn read_delay(reader: &Reader<'_>, node: &Node) -> Option<Delay> {
    let Data::Table(_) = node.data else {
        return delay_of(reader.ctx, node, "delay").map(Delay::Fixed);
    };
    if !reader.title.ends_with("access]") {
        reader.ctx.error(node.place, "a range of delays is for the `access` links of a topology; write one time here");
        return None;
    }
    let range = Reader::open(reader.ctx, node, crate::keys::RANGE, "`delay`".to_string())?;
    let end = |key: &str| range.need(key).and_then(|node| delay_of(reader.ctx, node, key));
    let (from, to) = (end("from"), end("to"));
    Some(Delay::Range(from?, to?))
}

fn delay_of(ctx: &Context<'_>, node: &Node, key: &str) -> Option<Time> {
    quantity_of(ctx, node, key, &quantity::DELAY, quantity::time)
}

fn read_tick(ctx: &Context<'_>, node: &Node) -> Option<Time> {
    let fits = |tick: &Time| tick.0.is_multiple_of(1000) && *tick <= Time::secs(1);
    let tick = quantity_that(ctx, node, "clock_tick", &quantity::TIME, quantity::time, fits)?;
    let good = fits(&tick);
    if !good {
        ctx.error(node.place, "`clock_tick` is a whole number of microseconds up to 1s, like \"10ms\"");
    }
    good.then_some(tick)
}

//! Rates over time: lists of steps, each with its start time.

use std::sync::Arc;

use explicate_core::estimate::hop_capacity;
use explicate_core::params::Values;
use explicate_core::units::{Rate, Time};

use crate::document::{Data, Node, quoted};
use crate::keys::{self, Key};
use crate::limits;
use crate::quantity::{self, show};
use crate::reader::{Context, Reader, quantity_of};

/// A configured capacity, as written.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Configured {
    Rate(Rate),
    /// A factor of the link's rate.
    Factor(f64),
}

/// The configured capacity of a link, as written.
#[derive(Clone, PartialEq)]
pub(crate) enum Capacity {
    /// Over time. A constant is a single step at time zero.
    Steps(Vec<(Time, Configured)>),
    /// The port measures it.
    Measured(hop_capacity::Params),
}

impl Capacity {
    /// Reads `"4.5Mbit/s"`, `{ factor = 1.2 }`, `{ measured = "air_time" }` or a list of steps.
    pub(crate) fn read(ctx: &Context<'_>, node: &Node) -> Option<Capacity> {
        match &node.data {
            Data::List(_) => list(ctx, node, "capacity", keys::CAPACITY_STEP, configured).map(Capacity::Steps),
            Data::Table(_) => {
                let reader = Reader::open(ctx, node, keys::CAPACITY_TABLE, "`capacity`".to_string())?;
                match (reader.get("factor"), reader.get("measured")) {
                    (Some(node), None) => {
                        if let Some(window) = reader.get("window") {
                            ctx.error(window.place, "`window` belongs to `measured`; a factor needs none");
                        }
                        Some(Capacity::Steps(vec![(Time::ZERO, factor(&reader, node)?)]))
                    }
                    (None, Some(_)) => measured(&reader).map(Capacity::Measured),
                    _ => {
                        ctx.error(node.place, "`capacity` has either a `factor` or `measured`");
                        None
                    }
                }
            }
            Data::Text(_) | Data::Int(_) | Data::Float(_) => {
                let rate = quantity_of(ctx, node, "capacity", &quantity::RATE, quantity::rate)?;
                Some(Capacity::Steps(vec![(Time::ZERO, Configured::Rate(rate))]))
            }
            _ => {
                let forms = "a rate like \"54Mbit/s\", { factor = 1.2 }, { measured = \"air_time\" }, or a list like \
                             [{ at = \"10s\", factor = 1.2 }]";
                ctx.error(node.place, format!("`capacity` is {forms}, not {}", node.what()));
                None
            }
        }
    }
    /// How it is measured, if it is.
    pub(crate) fn measured(&self) -> Option<hop_capacity::Params> {
        match self {
            Capacity::Steps(_) => None,
            Capacity::Measured(params) => Some(*params),
        }
    }
    /// The configured capacity at the start, and its changes; before the first step or measurement it is `default`.
    pub(crate) fn over(&self, rate: Rate, default: Rate) -> (Rate, Vec<(Time, Rate)>) {
        let Capacity::Steps(steps) = self else { return (default, Vec::new()) };
        let rate = |configured: &Configured| match configured {
            Configured::Rate(rate) => *rate,
            Configured::Factor(factor) => Rate((rate.0 as f64 * factor).round().clamp(1.0, limits::RATE as f64) as u64),
        };
        let now = steps.iter().rev().find(|step| step.0 == Time::ZERO);
        let later = steps.iter().filter(|step| step.0 > Time::ZERO);
        (now.map_or(default, |step| rate(&step.1)), later.map(|step| (step.0, rate(&step.1))).collect())
    }
    /// As TOML.
    pub(crate) fn written(&self) -> String {
        let steps = match self {
            Capacity::Steps(steps) => steps.as_slice(),
            Capacity::Measured(params) => {
                let (word, window) = (keys::MEASURED[params.measured as usize], Time::from_secs_f64(params.window));
                let window = quoted(&show(window.0 as f64, &quantity::TIME));
                return format!("{{ measured = {}, window = {window} }}", quoted(word));
            }
        };
        match steps {
            [(Time::ZERO, Configured::Rate(rate))] => rate_text(*rate),
            [(Time::ZERO, Configured::Factor(factor))] => format!("{{ factor = {factor:?} }}"),
            steps => listed(steps.iter().map(|(at, configured)| match configured {
                Configured::Rate(rate) => (at, format!("rate = {}", rate_text(*rate))),
                Configured::Factor(factor) => (at, format!("factor = {factor:?}")),
            })),
        }
    }
}

/// Reads the steps of a channel's rate; zero is a pause.
pub(crate) fn rates(ctx: &Context<'_>, node: &Node, name: &str) -> Option<Arc<[(Time, Rate)]>> {
    let read = |text: &str| match quantity::read(text, &quantity::RATE) {
        Ok(0.0) => Ok(Rate(0)),
        _ => quantity::rate(text),
    };
    let step = |reader: &Reader<'_>| quantity_of(ctx, reader.need("rate")?, "rate", &quantity::RATE, read);
    list(ctx, node, name, keys::STEP, step).map(Arc::from)
}

/// As TOML.
pub(crate) fn written(steps: &[(Time, Rate)]) -> String {
    listed(steps.iter().map(|(at, rate)| (at, format!("rate = {}", rate_text(*rate)))))
}

fn rate_text(rate: Rate) -> String {
    quoted(&show(rate.0 as f64, &quantity::RATE))
}

fn listed<'a>(steps: impl Iterator<Item = (&'a Time, String)>) -> String {
    let time = |at: &Time| quoted(&show(at.0 as f64, &quantity::TIME));
    let steps: Vec<String> = steps.map(|(at, what)| format!("{{ at = {}, {what} }}", time(at))).collect();
    format!("[{}]", steps.join(", "))
}

fn configured(reader: &Reader<'_>) -> Option<Configured> {
    match (reader.get("rate"), reader.get("factor")) {
        (Some(_), None) => reader.rate("rate").map(Configured::Rate),
        (None, Some(node)) => factor(reader, node),
        _ => {
            reader.ctx.error(reader.place, "a step of `capacity` has either a `rate` or a `factor`");
            None
        }
    }
}

/// Reads how a capacity is measured.
fn measured(reader: &Reader<'_>) -> Option<hop_capacity::Params> {
    let [by, window] = hop_capacity::Params::PARAMS else { return None };
    let word = reader.word("measured")?;
    let mut values = Values::default();
    values.set(by, keys::MEASURED.iter().position(|known| *known == word)? as f64);
    if let Some(node) = reader.get("window") {
        let fits = |time: &Time| (window.min..=window.max).contains(&time.as_secs_f64());
        let given = reader.time_that("window", fits)?;
        if !fits(&given) {
            reader.ctx.error(node.place, "`window` is a time from 1ms to 100s, like \"100ms\"");
            return None;
        }
        values.set(window, given.as_secs_f64());
    }
    Some(hop_capacity::Params::of(&values))
}

fn factor(reader: &Reader<'_>, node: &Node) -> Option<Configured> {
    let factor = match node.data {
        Data::Int(i) => i as f64,
        Data::Float(x) => x,
        _ => f64::NAN,
    };
    if !(1e-3..=1e3).contains(&factor) {
        reader.ctx.error(node.place, "`factor` is a number from 0.001 to 1000: the configured capacity over the rate");
        return None;
    }
    Some(Configured::Factor(factor))
}

/// Reads a list of steps in order of time.
fn list<T>(
    ctx: &Context<'_>,
    node: &Node,
    name: &str,
    keys: &'static [Key],
    read: impl Fn(&Reader<'_>) -> Option<T>,
) -> Option<Vec<(Time, T)>> {
    let nodes = match &node.data {
        Data::List(nodes) if !nodes.is_empty() && nodes.len() <= limits::STEPS => nodes,
        _ => {
            let most = limits::STEPS;
            let form = format!("a list of 1 to {most} steps, like [{{ at = \"0s\", rate = \"5Mbit/s\" }}]");
            ctx.error(node.place, format!("`{name}` is {form}"));
            return None;
        }
    };
    let mut steps: Vec<(Time, T)> = Vec::new();
    for node in nodes {
        let reader = Reader::open(ctx, node, keys, format!("a step of `{name}`"))?;
        let at = reader.need("at").and(reader.time("at"))?;
        if steps.last().is_some_and(|last| last.0 >= at) {
            ctx.error(node.place, format!("the steps of `{name}` have to be in order, each later than the one before"));
            return None;
        }
        steps.push((at, read(&reader)?));
    }
    Some(steps)
}

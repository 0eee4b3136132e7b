//! Values of declared parameters (`explicate_core::params`): read from a scenario, checked, and written back.

use std::sync::Arc;

use explicate_core::params::{Param, Unit, Values};
use explicate_core::units::{Rate, Time};

use crate::document::{Data, Node, Place, Table, number, quoted};
use crate::problem::suggestion;
use crate::quantity::{self, Length, show, show_length};
use crate::reader::{Context, quantity_that, short, text};
use crate::{steps, trace};

/// A given value.
#[derive(Clone)]
pub(crate) enum Given {
    /// In the parameter's base unit.
    Number(f64),
    /// A length whose value in bytes depends on the link.
    Length(Length),
    /// A file name, and the contents.
    File(String, Arc<[u64]>),
    Steps(Arc<[(Time, Rate)]>),
}

/// A parameter and its value.
#[derive(Clone)]
pub(crate) struct Chosen {
    pub(crate) param: &'static Param,
    pub(crate) given: Given,
    pub(crate) place: Place,
}

/// Reads the keys of `table` by `declared`, except those named in `skip`; `owner` is its name in messages.
pub(crate) fn read_all(
    ctx: &Context<'_>,
    table: &Table,
    declared: &[&'static Param],
    skip: &[&str],
    owner: &str,
) -> Vec<Chosen> {
    let mut chosen = Vec::new();
    for entry in table.entries.iter().filter(|e| !skip.contains(&e.key.as_str())) {
        let Some(param) = declared.iter().copied().find(|p| p.name == entry.key) else {
            let known = skip.iter().copied().chain(declared.iter().map(|p| p.name));
            let hint = suggestion(&entry.key, known);
            ctx.error(entry.place, format!("unknown parameter `{}` of {owner}; {hint}", short(&entry.key)));
            continue;
        };
        if let Some(given) = read(ctx, &entry.node, param) {
            chosen.push(Chosen { param, given, place: entry.node.place });
        }
    }
    chosen
}

/// Reads one value and checks its bounds.
pub(crate) fn read(ctx: &Context<'_>, node: &Node, param: &Param) -> Option<Given> {
    if let Data::Text(word) = &node.data {
        if word == "unlimited" && param.default == f64::INFINITY {
            return Some(Given::Number(f64::INFINITY));
        }
        if word == "auto" && param.default.is_nan() && !is_content(param) {
            return Some(Given::Number(f64::NAN));
        }
    }
    let name = param.name;
    let of = |dimension: &quantity::Dimension, base: f64| {
        let value = |text: &str| quantity::read(text, dimension).map(|x| x / base);
        quantity_that(ctx, node, name, dimension, value, |x| is_likely(param, *x))
    };
    let x = match param.unit {
        Unit::Seconds => of(&quantity::TIME, 1e9),
        Unit::BitsPerSecond => of(&quantity::RATE, 1.0),
        Unit::Metres => of(&quantity::DISTANCE, 1.0),
        Unit::Bytes => of(&quantity::BYTES, 1.0),
        Unit::QueueLength => return length(ctx, node, name).map(Given::Length),
        Unit::Packets => plain(ctx, node, param, "a number of packets, like 50 or \"50pkt\"", quantity::packets),
        Unit::Fraction => plain(ctx, node, param, "a ratio, like 0.01 or \"1%\"", quantity::fraction),
        Unit::Number => plain(ctx, node, param, "a number", |t| {
            Err(format!("`{}` is a text; write a number without quotes", short(t)))
        }),
        Unit::Flag => match node.data {
            Data::Flag(flag) => Some(flag as u8 as f64),
            _ => {
                ctx.error(node.place, format!("`{name}` is true or false, without quotes, not {}", node.what()));
                None
            }
        },
        Unit::Choice(words) => choice(ctx, node, name, words).map(|i| i as f64),
        Unit::Decibels => plain(ctx, node, param, "a ratio in decibels, like 20 or \"20dB\"", quantity::decibels),
        Unit::Steps => return steps::rates(ctx, node, name).map(Given::Steps),
        Unit::File => return read_file(ctx, node, name),
    }?;
    if let (Unit::Fraction, Data::Int(_) | Data::Float(_)) = (param.unit, &node.data)
        && x > param.max
        && (param.min..=param.max).contains(&(x / 100.0))
    {
        let (percent, range) = (number(x), bounds(param));
        let hint = format!("for {percent} per cent write `{name} = \"{percent}%\"`");
        ctx.error(node.place, format!("`{name}` is {percent}; it has to be {range}; {hint}"));
        return None;
    }
    in_bounds(ctx, node.place, param, x).then_some(Given::Number(x))
}

/// Reads the length of a queue. A number without a unit may be packets, bytes or bandwidth-delay products.
fn length(ctx: &Context<'_>, node: &Node, name: &str) -> Option<Length> {
    let number = match &node.data {
        Data::Text(text) if !quantity::is_bare(text) => return ctx.checked(node.place, name, quantity::length(text)),
        Data::Text(text) => Some(text.trim().to_string()),
        Data::Int(_) | Data::Float(_) => Some(node.to_toml()),
        _ => None,
    };
    let hint = match number.filter(|number| quantity::length(&format!("{number}pkt")).is_ok()) {
        Some(x) => {
            format!("write \"{x}pkt\" (packets), \"{x}B\" (bytes) or \"{x}bdp\" (bandwidth-delay products)")
        }
        None => format!("write it like {}", quantity::any_length()),
    };
    ctx.error(node.place, format!("`{name}` is a length of a queue and needs a unit; {hint}"));
    None
}

/// Whether a number without a unit probably means this value: one that the parameter takes, and no thousand times its default.
fn is_likely(param: &Param, x: f64) -> bool {
    let too_long = param.unit == Unit::Seconds && param.default > 0.0 && x >= 1000.0 * param.default;
    !too_long && (param.min..=param.max).contains(&x)
}

/// The index of a word among `words`. A rate equals another by its value: `"54000000bit/s"` is `"54Mbit/s"`.
fn choice(ctx: &Context<'_>, node: &Node, name: &str, words: &'static [&'static str]) -> Option<usize> {
    if !has_rates(words) {
        let word = crate::reader::word(ctx, node, name, words)?;
        return words.iter().position(|w| *w == word);
    }
    let Data::Text(given) = &node.data else {
        let there = words.join(", ");
        ctx.error(node.place, format!("`{name}` is a text in quotes, not {}; there are {there}", node.what()));
        return None;
    };
    let rate = quantity::rate(given);
    let found = words.iter().position(|w| w == given || (rate.is_ok() && quantity::rate(w) == rate));
    if found.is_none() {
        // For rates all of them are listed: a similar spelling is no help.
        ctx.error(node.place, format!("`{name}` cannot be `{}`; there are {}", short(given), words.join(", ")));
    }
    found
}

/// Whether some choices are rates.
pub(crate) fn has_rates(words: &[&str]) -> bool {
    words.iter().any(|w| quantity::rate(w).is_ok())
}

/// Checks a value in base units against the declared bounds.
pub(crate) fn in_bounds(ctx: &Context<'_>, place: Place, param: &Param, x: f64) -> bool {
    let good = x >= param.min && x <= param.max;
    if !good {
        ctx.error(place, format!("`{}` is {}; it has to be {}", param.name, in_unit(param, x), bounds(param)));
    }
    good
}

/// The bounds in words.
fn bounds(param: &Param) -> String {
    let (least, most) = (in_unit(param, param.min), in_unit(param, param.max));
    if param.max == f64::INFINITY { format!("at least {least}") } else { format!("from {least} to {most}") }
}

fn plain(
    ctx: &Context<'_>,
    node: &Node,
    param: &Param,
    what: &str,
    read: impl Fn(&str) -> Result<f64, String>,
) -> Option<f64> {
    let name = param.name;
    match &node.data {
        Data::Int(i) => Some(*i as f64),
        Data::Float(x) if x.is_finite() => Some(*x),
        Data::Text(t) if quantity::is_bare(t) => {
            let inside = t.trim().parse().is_ok_and(|x| in_bounds(ctx, node.place, param, x));
            if !inside {
                return None; // reported
            }
            ctx.error(node.place, format!("`{name}` is {what}; write `{name} = {}`, without quotes", t.trim()));
            None
        }
        Data::Text(t) => ctx.checked(node.place, name, read(t)),
        _ => {
            ctx.error(node.place, format!("`{name}` is {what}, not {}", node.to_toml()));
            None
        }
    }
}

fn read_file(ctx: &Context<'_>, node: &Node, name: &str) -> Option<Given> {
    let file = text(ctx, node, name)?;
    let known = ctx.files.borrow().get(file).cloned();
    let contents = match known {
        Some(contents) => contents,
        None => {
            let loaded = match ctx.among {
                Some(files) => trace::find(files, file),
                None => trace::load(ctx.base, file),
            };
            let contents: Arc<[u64]> = ctx.checked(node.place, name, loaded)?.into();
            ctx.files.borrow_mut().insert(file.to_string(), contents.clone());
            contents
        }
    };
    Some(Given::File(file.to_string(), contents))
}

/// The values of a list of choices, without lengths, which depend on the link.
pub(crate) fn values(chosen: &[Chosen]) -> Values {
    let mut values = Values::default();
    for c in chosen {
        match &c.given {
            Given::Number(x) if differs(*x, c.param.default) => values.set(c.param, *x),
            Given::File(_, contents) => values.file = Some(contents.clone()),
            Given::Steps(steps) => values.steps = Some(steps.clone()),
            Given::Number(_) | Given::Length(_) => {}
        }
    }
    values
}

/// Whether a value is worth storing beside the default (NaN is the same as NaN).
pub(crate) fn differs(x: f64, default: f64) -> bool {
    x != default && !(x.is_nan() && default.is_nan())
}

/// Every declared parameter as TOML: the given value, otherwise the default.
pub(crate) fn written(declared: &[&'static Param], chosen: &[Chosen]) -> Vec<(&'static str, String)> {
    let mut all = Vec::new();
    for param in declared {
        let value = match chosen.iter().find(|c| c.param.name == param.name).map(|c| &c.given) {
            Some(Given::Length(length)) => quoted(&show_length(*length)),
            Some(Given::File(name, _)) => quoted(name),
            Some(Given::Steps(steps)) => steps::written(steps),
            Some(Given::Number(x)) => in_unit(param, *x),
            None if is_content(param) => continue,
            None => in_unit(param, param.default),
        };
        all.push((param.name, value));
    }
    all
}

/// Whether a parameter's value is not a number; then it has no default.
pub(crate) fn is_content(param: &Param) -> bool {
    matches!(param.unit, Unit::File | Unit::Steps)
}

/// A number in base units as a scenario writes it.
pub(crate) fn in_unit(param: &Param, x: f64) -> String {
    match param.unit {
        _ if x.is_nan() => quoted("auto"),
        _ if x.is_infinite() => quoted("unlimited"),
        Unit::Seconds => quoted(&seconds(x)),
        Unit::BitsPerSecond => quoted(&show(x, &quantity::RATE)),
        Unit::Bytes | Unit::QueueLength => quoted(&show(x, &quantity::BYTES)),
        Unit::Metres => quoted(&show(x, &quantity::DISTANCE)),
        Unit::Flag => (x != 0.0).to_string(),
        Unit::Choice(words) => quoted(words.get(x as usize).copied().unwrap_or("?")),
        Unit::Decibels => quoted(&format!("{x}dB")),
        Unit::Packets | Unit::Number | Unit::Fraction | Unit::File | Unit::Steps => number(x),
    }
}

/// A time in seconds such that reading it gives the same float again.
fn seconds(x: f64) -> String {
    let short = show(x * 1e9, &quantity::TIME);
    let again = quantity::read(&short, &quantity::TIME).map(|ns| ns / 1e9);
    if again == Ok(x) { short } else { format!("{x}s") }
}

//! The SCONE element of a port: as written, and whether its port can give the advice.

use std::collections::BTreeSet;

use explicate_core::scone::Advises;
use explicate_core::units::Rate;
use explicate_core::wire::scone::Advice;

use crate::document::{Data, Node, Place, quoted};
use crate::graph::Graph;
use crate::keys;
use crate::model::{Link, RouterSpec, Scenario};
use crate::problem::suggestion;
use crate::props::Props;
use crate::quantity::{self, show};
use crate::reader::{Context, Reader, quantity_of, short};

/// The signal of the highest rate; the next one is no advice.
const HIGHEST: u8 = 126;

/// An element as written; `None` is none.
pub(crate) type Written = Option<Advises>;

/// Reads `"none"` or a table.
pub(crate) fn read(ctx: &Context<'_>, node: &Node) -> Option<Written> {
    match &node.data {
        Data::Text(word) if word == keys::NO_ELEMENT[0] => Some(None),
        Data::Table(_) => read_table(ctx, node).map(Some),
        _ => {
            let forms = "{ advise = \"45Mbit/s\" }, { advise = \"fair\" }, { advise = \"measured\" } or \"none\"";
            ctx.error(node.place, format!("`scone` is {forms}, not {}", node.what()));
            None
        }
    }
}

fn read_table(ctx: &Context<'_>, node: &Node) -> Option<Advises> {
    let reader = Reader::open(ctx, node, keys::SCONE, "`scone`".to_string())?;
    let node = reader.need("advise")?;
    match &node.data {
        Data::Text(word) if word == "fair" => Some(Advises::Fair),
        Data::Text(word) if word == "measured" => Some(Advises::Measured),
        Data::Text(word) if word.trim().starts_with(|c: char| c.is_ascii_alphabetic()) => {
            let hint = suggestion(word, keys::ADVISED.iter().copied());
            let forms = "a rate like \"45Mbit/s\", \"fair\" or \"measured\"";
            ctx.error(node.place, format!("`advise` is {forms}, not `{}`; {hint}", short(word)));
            None
        }
        _ => read_rate(ctx, node).map(Advises::AtMost),
    }
}

/// A rate that SCONE has a signal for, rounded down.
fn read_rate(ctx: &Context<'_>, node: &Node) -> Option<Rate> {
    let rate = quantity_of(ctx, node, "advise", &quantity::RATE, quantity::rate)?;
    let [lowest, highest] = [0, HIGHEST].map(|index| Advice::from_index(index).and_then(Advice::rate).unwrap_or(0.0));
    if (lowest..=highest).contains(&(rate.0 as f64)) {
        return Some(rate);
    }
    let given = show(rate.0 as f64, &quantity::RATE);
    ctx.error(node.place, format!("`advise` is {given}; SCONE's rates go from 100kbit/s to 199.5Gbit/s"));
    None
}

/// As TOML.
pub(crate) fn written(element: Written) -> String {
    match element {
        None => quoted(keys::NO_ELEMENT[0]),
        Some(advises) => format!("{{ advise = {} }}", quoted(&text(advises))),
    }
}

/// What is advised, as text.
pub(crate) fn text(advises: Advises) -> String {
    match advises {
        Advises::AtMost(rate) => show(rate.0 as f64, &quantity::RATE),
        Advises::Fair => "fair".to_string(),
        Advises::Measured => "measured".to_string(),
    }
}

/// Reports ports that are to advise what their controller computes, and have none that computes it.
pub(crate) fn check(ctx: &Context<'_>, graph: &Graph, scenario: &Scenario) {
    let wired = scenario.links.iter().zip(&graph.links).filter(|(link, _)| link.over.is_none());
    let wired = wired.map(|(link, draft)| (link, &graph.props[draft.props].props));
    let media = scenario.media.iter().zip(&graph.media);
    let stations = media.flat_map(|(medium, draft)| medium.stations.iter().zip(&draft.stations));
    let stations = stations.map(|(station, draft)| (&station.interface, &draft.props));
    let mut seen: BTreeSet<Place> = BTreeSet::new();
    for (link, props) in wired.chain(stations).filter(|(link, _)| link.scone == Some(Advises::Fair)) {
        if let Some(why) = lacking(link)
            && seen.insert(place(props))
        {
            let with = "write `router = \"rcp\"` or \"xcp\" beside it, or advise \"measured\"";
            let message =
                format!("`advise = \"fair\"` needs a router that divides the line among flows; {why}; {with}");
            ctx.error(place(props), message);
        }
    }
}

fn place(props: &Props) -> Place {
    props.at("scone")
}

/// Why the controllers of a port give no flow a rate.
fn lacking(link: &Link) -> Option<String> {
    let name = &link.name;
    let of = |routers: &[RouterSpec]| match routers {
        [] => Some(format!("{name} has no router")),
        [spec, ..] if !spec.protocol.has_shares() => {
            Some(format!("the {} router of {name} does not", spec.protocol.name()))
        }
        _ => None,
    };
    if link.divides() {
        return Some(format!("{name} has a queue without a router, by `share_by_flows`"));
    }
    if link.classes.is_empty() {
        return of(&link.routers);
    }
    link.classes.iter().find_map(|class| {
        let why = of(&class.routers)?;
        Some(format!("{why} in its class `{}`", class.matches.word()))
    })
}

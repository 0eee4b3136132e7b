//! Custom nodes and links, and settings for named links.

use std::collections::HashMap;

use crate::document::{Data, Node, quoted};
use crate::graph::{Draft, Graph, Shared, lines};
use crate::keys;
use crate::media;
use crate::problem::suggestion;
use crate::props::{Delay, Props};
use crate::quantity;
use crate::reader::{Context, Reader, short};

/// Reads an entry of `[[node]]`.
pub(crate) fn read_node(
    ctx: &Context<'_>,
    graph: &mut Graph,
    kinds: &mut Vec<Option<bool>>,
    node: &Node,
    index: usize,
) {
    let title = format!("[[node]] number {}", index + 1);
    let Some(reader) = Reader::open(ctx, node, keys::NODE, title) else { return };
    let kind = reader.get("kind").and_then(|_| reader.word("kind"));
    let Some(name) = reader.need("name").and(reader.name("name")) else { return };
    if graph.by_name.contains_key(name) {
        let place = reader.get("name").map_or(reader.place, |n| n.place);
        ctx.error(place, format!("a node called `{name}` exists already; choose another name"));
        return;
    }
    graph.by_name.insert(name.to_string(), graph.nodes.len());
    graph.nodes.push(name.to_string());
    kinds.push(kind.map(|k| k == "host"));
    if kind == Some("bridge") {
        graph.bridges.insert(graph.nodes.len() - 1);
    }
    graph.written += &format!("[[node]]\nname = {}\n", quoted(name));
    if let Some(kind) = kind {
        graph.written += &format!("kind = {}\n", quoted(kind));
    }
}

/// Reads an entry of `[[link]]`: a new link, or a refinement.
pub(crate) fn read_link(
    ctx: &Context<'_>,
    graph: &mut Graph,
    names: &mut HashMap<String, usize>,
    node: &Node,
    index: usize,
) {
    let known = match &node.data {
        Data::Table(table) => table.text("name").map(|n| format!("[[link]] `{}`", short(n))),
        _ => None,
    };
    let title = known.unwrap_or_else(|| format!("[[link]] number {}", index + 1));
    let Some(reader) = Reader::open(ctx, node, keys::LINK, title) else { return };
    let props = Props::read(&reader);
    let duplex = reader.flag_or_default("duplex");
    let name = reader.get("name").map(|_| reader.name("name"));
    if name == Some(None) {
        return;
    }
    let name = name.flatten();
    match (reader.get("from"), reader.get("to"), name) {
        (None, None, Some(name)) => {
            if let Some(node) = reader.get("duplex") {
                ctx.error(
                    node.place,
                    "`duplex` is for links with `from` and `to`; configure each direction by its name",
                );
            }
            refine(&reader, graph, names, name, props);
        }
        (None, None, None) => {
            let message = "needs `from` and `to` (a new link) or the `name` of an existing link";
            ctx.error(reader.place, format!("{} {message}", reader.title));
        }
        _ => add_link(&reader, graph, names, name, duplex, props),
    }
}

fn refine(reader: &Reader<'_>, graph: &mut Graph, names: &HashMap<String, usize>, name: &str, props: Props) {
    let Some(&at) = names.get(name) else {
        let place = reader.get("name").map_or(reader.place, |n| n.place);
        let hint = suggestion(name, graph.links.iter().map(|l| l.name.as_str()));
        let more = "; a new link needs `from` and `to`";
        reader.ctx.error(place, format!("no link is called `{}`; {hint}{more}", short(name)));
        return;
    };
    if graph.links[at].over.is_some() {
        return media::refine_link(reader, graph, at, props);
    }
    let draft = &graph.links[at];
    let base = &graph.props[draft.props];
    let mut merged = base.props.refined(&props);
    let delay = match props.delay {
        Some(Delay::Fixed(t)) => t,
        _ => draft.delay,
    };
    merged.delay = Some(Delay::Fixed(delay));
    let rate = base.rate;
    let written = merged.written(rate, delay);
    graph.written += &format!("[[link]]\nname = {}\n{}", quoted(name), lines(&written));
    graph.links[at].delay = delay;
    graph.links[at].props = graph.props.len();
    graph.props.push(Shared { props: merged, rate });
}

fn add_link(
    reader: &Reader<'_>,
    graph: &mut Graph,
    names: &mut HashMap<String, usize>,
    name: Option<&str>,
    duplex: bool,
    props: Props,
) {
    let ctx = reader.ctx;
    let end = |key: &str| {
        let node = reader.need(key)?;
        let name = reader.text(key)?;
        Some((ctx.checked(node.place, key, graph.node(name))?, node.place))
    };
    let (from, to) = (end("from"), end("to"));
    let (Some((from, _)), Some((to, place))) = (from, to) else { return };
    if from == to {
        ctx.error(place, format!("the link goes from `{0}` to `{0}`; `to` has to be another node", graph.nodes[from]));
        return;
    }
    let delay = match props.delay {
        Some(Delay::Fixed(t)) => t,
        _ => keys::default(keys::LINK, "delay", quantity::time),
    };
    let forward = format!("{}->{}", graph.nodes[from], graph.nodes[to]);
    let backward = format!("{}->{}", graph.nodes[to], graph.nodes[from]);
    let both = match name {
        None => [forward, backward],
        Some(name) if name == forward => [forward, backward],
        Some(name) => [name.to_string(), format!("{name}-back")],
    };
    let rate = keys::default(keys::LINK, "rate", quantity::rate);
    let written = props.written(rate, delay);
    graph.written += &format!(
        "[[link]]\nname = {}\nfrom = {}\nto = {}\nduplex = {duplex}\n{}",
        quoted(name.unwrap_or(&both[0])),
        quoted(&graph.nodes[from]),
        quoted(&graph.nodes[to]),
        lines(&written)
    );
    graph.props.push(Shared { props, rate });
    let shared = graph.props.len() - 1;
    let ends = [(from, to), (to, from)];
    for (name, (from, to)) in both.into_iter().zip(ends).take(if duplex { 2 } else { 1 }) {
        if names.contains_key(&name) {
            let place = reader.get("name").map_or(reader.place, |n| n.place);
            ctx.error(place, format!("a link called `{}` exists already; give this one another `name`", short(&name)));
            continue;
        }
        names.insert(name.clone(), graph.links.len());
        graph.links.push(Draft { name, part: "", from, to, delay, props: shared, over: None });
    }
}

//! `[[reroute]]`: from a time on, routes do not use some links, as if a routing protocol had withdrawn them.

use explicate_core::units::Time;

use crate::document::{Data, Node, Place, quoted};
use crate::graph::Graph;
use crate::keys;
use crate::limits;
use crate::model::Reroute;
use crate::problem::suggestion;
use crate::quantity::{self, show};
use crate::reader::{Context, Reader, short, text};

/// Reads the list of the scenario `root`.
pub(crate) fn read(root: &Reader<'_>, graph: &Graph) -> Vec<Reroute> {
    let ctx = root.ctx;
    let nodes: &[Node] = match root.get("reroute") {
        None => return Vec::new(),
        Some(Node { data: Data::List(nodes), .. }) => nodes,
        Some(node) => {
            ctx.error(node.place, "`reroute` is a list of tables; write [[reroute]] with two brackets");
            return Vec::new();
        }
    };
    if nodes.len() > limits::REROUTES {
        let place = root.get("reroute").map_or(Place::START, |n| n.place);
        ctx.error(
            place,
            format!("{} changes of routes are too many; the maximum is {}", nodes.len(), limits::REROUTES),
        );
        return Vec::new();
    }
    let mut reroutes: Vec<Reroute> = Vec::new();
    for node in nodes {
        let Some(table) = Reader::open(ctx, node, keys::REROUTE, "[[reroute]]".to_string()) else { continue };
        let at = table.need("at").and(table.time("at"));
        let without = table.need("without").and_then(|node| links(ctx, graph, node));
        let (Some(at), Some(without)) = (at, without) else { continue };
        let before = reroutes.last().map_or(Time::ZERO, |r| r.at);
        if at <= before {
            ctx.error(
                table.place,
                "changes of routes come in order of time, each later than the one before and than 0s",
            );
        }
        reroutes.push(Reroute { at, without });
    }
    reroutes
}

fn links(ctx: &Context<'_>, graph: &Graph, node: &Node) -> Option<Vec<usize>> {
    let Data::List(nodes) = &node.data else {
        let message = format!("`without` is a list of names of links, like [\"r1->r2\"], not {}", node.what());
        ctx.error(node.place, message);
        return None;
    };
    let find = |node: &Node| {
        let name = text(ctx, node, "without")?;
        let found = graph.links.iter().position(|l| l.name == name);
        if found.is_none() {
            let hint = suggestion(name, graph.links.iter().map(|l| l.name.as_str()));
            ctx.error(node.place, format!("`without`: no link is called `{}`; {hint}", short(name)));
        }
        found
    };
    let found: Vec<Option<usize>> = nodes.iter().map(find).collect();
    found.into_iter().collect()
}

/// The list as TOML.
pub(crate) fn written(reroutes: &[Reroute], graph: &Graph) -> String {
    let entry = |r: &Reroute| {
        let names: Vec<String> = r.without.iter().map(|&l| quoted(&graph.links[l].name)).collect();
        let at = quoted(&show(r.at.0 as f64, &quantity::TIME));
        format!("[[reroute]]\nat = {at}\nwithout = [{}]\n", names.join(", "))
    };
    reroutes.iter().map(entry).collect()
}

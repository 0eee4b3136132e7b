//! Nodes and links as written: generated ones, custom ones, and settings for named links.

use std::collections::HashMap;

use crate::document::{Data, Node, Table};
use crate::generated;
use crate::graph::Graph;
use crate::media;
use crate::own;
use crate::reader::Context;

/// Reads `[topology]`, `[[node]]` and `[[link]]`; `flows` is the number of flows.
pub(crate) fn read(ctx: &Context<'_>, root: &Table, flows: usize) -> Graph {
    let nodes = tables(ctx, root, "node");
    let (media, links) = (tables(ctx, root, "medium"), tables(ctx, root, "link"));
    let mut graph = generated::generate(ctx, root, flows, !nodes.is_empty() || !media.is_empty());
    let mut kinds: Vec<Option<bool>> = vec![Some(false); graph.nodes.len()];
    for (i, host) in graph.host.iter().enumerate() {
        kinds[i] = Some(*host);
    }
    for (i, node) in nodes.iter().enumerate() {
        own::read_node(ctx, &mut graph, &mut kinds, node, i);
    }
    for (i, node) in media.iter().enumerate() {
        media::read(ctx, &mut graph, node, i);
    }
    kinds.resize(graph.nodes.len(), None);
    let mut link_names: HashMap<String, usize> = HashMap::new();
    if !links.is_empty() {
        link_names = graph.links.iter().enumerate().map(|(i, l)| (l.name.clone(), i)).collect();
    }
    for (i, node) in links.iter().enumerate() {
        own::read_link(ctx, &mut graph, &mut link_names, node, i);
    }
    let mut neighbours: Vec<(Option<usize>, bool)> = vec![(None, false); graph.nodes.len()];
    for link in &graph.links {
        for (a, b) in [(link.from, link.to), (link.to, link.from)] {
            let (first, several) = &mut neighbours[a];
            *several |= first.is_some_and(|f| f != b);
            *first = Some(b);
        }
    }
    graph.host = kinds.iter().zip(&neighbours).map(|(kind, (_, several))| kind.unwrap_or(!several)).collect();
    graph
}

/// The entries of an array of tables.
fn tables<'a>(ctx: &Context<'_>, root: &'a Table, name: &str) -> &'a [Node] {
    match root.get(name) {
        None => &[],
        Some(Node { data: Data::List(nodes), .. }) => nodes,
        Some(node) => {
            ctx.error(node.place, format!("`{name}` is a list of tables; write [[{name}]] with two brackets"));
            &[]
        }
    }
}

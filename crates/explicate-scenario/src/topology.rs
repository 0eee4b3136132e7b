//! Nodes and links as written: generated ones, custom ones, and settings for named links.

use std::collections::{BTreeSet, HashMap};

use explicate_core::units::{Rate, Time};

use crate::document::{Data, Node, Table, key};
use crate::generator::{self, Generator};
use crate::media::{self, MediumDraft};
use crate::own;
use crate::problem::suggestion;
use crate::props::Props;
use crate::reader::{Context, short};

/// A one-way link before its queue is known.
pub(crate) struct Draft {
    pub(crate) name: String,
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) delay: Time,
    /// Index in [`Graph::props`].
    pub(crate) props: usize,
    /// The medium that it uses, and its stations there.
    pub(crate) over: Option<(usize, usize, usize)>,
}

/// Properties shared by links, with their default rate.
pub(crate) struct Shared {
    pub(crate) props: Props,
    pub(crate) rate: Rate,
}

/// Nodes and links.
pub(crate) struct Graph {
    pub(crate) nodes: Vec<String>,
    /// Whether a node's own ports are a host's.
    pub(crate) host: Vec<bool>,
    /// Nodes that do not decrement TTLs.
    pub(crate) bridges: BTreeSet<usize>,
    pub(crate) links: Vec<Draft>,
    pub(crate) props: Vec<Shared>,
    pub(crate) media: Vec<MediumDraft>,
    /// All of it as TOML, defaults filled in.
    pub(crate) written: String,
    pub(crate) generator: Generator,
    /// Numbers of the nodes.
    pub(crate) by_name: HashMap<String, usize>,
}

impl Graph {
    /// A node by name; the error is a sentence.
    pub(crate) fn node(&self, name: &str) -> Result<usize, String> {
        match self.by_name.get(name) {
            Some(&i) => Ok(i),
            None => {
                let hint = suggestion(name, self.nodes.iter().map(String::as_str));
                Err(format!("no node is called `{}`; {hint}", short(name)))
            }
        }
    }
}

/// Reads `[topology]`, `[[node]]` and `[[link]]`; `flows` is the number of flows.
pub(crate) fn read(ctx: &Context<'_>, root: &Table, flows: usize) -> Graph {
    let nodes = tables(ctx, root, "node");
    let (media, links) = (tables(ctx, root, "medium"), tables(ctx, root, "link"));
    let mut graph = generator::generate(ctx, root, flows, !nodes.is_empty() || !media.is_empty());
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

/// Properties, one a line.
pub(crate) fn lines(props: &[(&'static str, String)]) -> String {
    props.iter().map(|(k, v)| format!("{} = {v}\n", key(k))).collect()
}

//! Classes as written: matched packets, queue, controller and weight of each.

use crate::document::{Data, Node, number, quoted};
use crate::keys;
use crate::model::Match;
use crate::parts::{Queue, Router, read_queue, read_router};
use crate::quantity::Length;
use crate::reader::{Context, Reader};

/// A class as written; missing properties are the link's.
#[derive(Clone)]
pub(crate) struct Class {
    pub(crate) matches: Match,
    pub(crate) queue: Option<Queue>,
    pub(crate) router: Option<Router>,
    pub(crate) weight: f64,
}

impl Class {
    /// As TOML, defaults filled in.
    pub(crate) fn written(&self) -> String {
        let queue = self.queue.as_ref().map_or_else(String::new, |q| format!(", queue = {}", q.written()));
        let router = self.router.as_ref().map_or_else(String::new, |r| format!(", router = {}", r.written()));
        format!("{{ match = {}{queue}{router}, weight = {} }}", quoted(self.matches.word()), number(self.weight))
    }
}

/// Reads the list of classes; with an empty list all packets share one queue.
pub(crate) fn read(ctx: &Context<'_>, node: &Node, limit: Length) -> Option<Vec<Class>> {
    let Data::List(nodes) = &node.data else {
        let form = "a list of tables, like [{ match = \"explicit\", weight = 2 }, { match = \"other\" }]";
        ctx.error(node.place, format!("`classes` is {form}, not {}", node.what()));
        return None;
    };
    let mut classes: Vec<Class> = Vec::new();
    for node in nodes {
        let class = read_class(ctx, node, limit)?;
        if classes.iter().any(|c| c.matches == class.matches) {
            let word = class.matches.word();
            ctx.error(node.place, format!("`classes`: two entries match `{word}`; make them one"));
            return None;
        }
        classes.push(class);
    }
    if !classes.is_empty() && !classes.iter().any(|c| c.matches == Match::Other) {
        let message = "`classes`: a packet that no entry matches needs one too; add { match = \"other\" }";
        ctx.error(node.place, message);
        return None;
    }
    Some(classes)
}

fn read_class(ctx: &Context<'_>, node: &Node, limit: Length) -> Option<Class> {
    let reader = Reader::open(ctx, node, keys::CLASS, "`classes`".to_string())?;
    let word = reader.need("match").and(reader.word("match"));
    let queue = reader.get("queue").map(|node| read_queue(ctx, node, limit));
    let router = reader.get("router").map(|node| read_router(ctx, node));
    let weight = Some(reader.number_or_default("weight"));
    let matches = Match::ALL.into_iter().find(|m| Some(m.word()) == word);
    if queue.as_ref().is_some_and(Option::is_none) || router.as_ref().is_some_and(Option::is_none) {
        return None; // already reported
    }
    Some(Class { matches: matches?, queue: queue.flatten(), router: router.flatten(), weight: weight? })
}

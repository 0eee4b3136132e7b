//! The graph that a scenario is resolved from: nodes, one-way links and media before their queues are known.

use std::collections::{BTreeSet, HashMap};

use explicate_core::medium::{AnyMediumKind, Interferer};
use explicate_core::params::Values;
use explicate_core::units::{Rate, Time};

use crate::document::key;
use crate::generator::{Generator, Kind};
use crate::params::Chosen;
use crate::problem::suggestion;
use crate::props::Props;
use crate::reader::short;

/// A one-way link before its queue is known.
pub(crate) struct Draft {
    pub(crate) name: String,
    /// The part of `[topology]` that it comes from, or nothing.
    pub(crate) part: &'static str,
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
    /// The properties of the port that feeds a link.
    pub(crate) fn port(&self, link: usize) -> &Props {
        let draft = &self.links[link];
        match draft.over {
            Some((medium, from, _)) => &self.media[medium].stations[from].props,
            None => &self.props[draft.props].props,
        }
    }
    /// A node by name; the error is a sentence.
    pub(crate) fn node(&self, name: &str) -> Result<usize, String> {
        match self.by_name.get(name) {
            Some(&i) => Ok(i),
            None => {
                let hint = suggestion(name, self.nodes.iter().map(String::as_str));
                let made =
                    if self.generator.kind == Kind::Explicit { "" } else { "; nodes of your own need a [[node]] each" };
                Err(format!("no node is called `{}`; {hint}{made}", short(name)))
            }
        }
    }
}

/// A medium as written.
pub(crate) struct MediumDraft {
    pub(crate) name: String,
    pub(crate) kind: &'static AnyMediumKind,
    /// The parameters as written, and their values.
    pub(crate) chosen: Vec<Chosen>,
    pub(crate) values: Values,
    pub(crate) stations: Vec<StationDraft>,
    pub(crate) interferers: Vec<Interferer>,
}

/// A station as written, with the settings of the medium.
pub(crate) struct StationDraft {
    pub(crate) node: usize,
    pub(crate) at: (f64, f64),
    pub(crate) props: Props,
}

/// Properties, one a line.
pub(crate) fn lines(props: &[(&'static str, String)]) -> String {
    props.iter().map(|(k, v)| format!("{} = {v}\n", key(k))).collect()
}

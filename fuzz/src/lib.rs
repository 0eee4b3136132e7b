//! Fuzz targets: what reads bytes or text from outside must answer whatever it is given, and keep its promises.
//!
//! A target panics if a promise is broken and otherwise returns a *signature* of what it did. An input with a new
//! signature is worth mutating further, which stands in for the coverage counters that the stable compiler lacks.

#![forbid(unsafe_code)]

use std::fs;
use std::path::{Path, PathBuf};

mod agents;
mod gateway;
pub mod mutate;
mod targets;

/// A fuzz target.
pub struct Target {
    /// The name on the command line, and of its folders.
    pub name: &'static str,
    /// What is read.
    pub summary: &'static str,
    /// Inputs are text: mutations keep tokens and lines together.
    pub text: bool,
    /// Runs the target; panics if a promise is broken.
    pub run: fn(&[u8]) -> u64,
}

/// All targets.
pub const TARGETS: &[Target] = &[
    Target {
        name: "headers",
        summary: "congestion and transport headers, and probes, from the wire",
        text: false,
        run: targets::headers,
    },
    Target {
        name: "scenario",
        summary: "scenario files; lines `#set KEY=VALUE` are overrides",
        text: true,
        run: targets::scenario,
    },
    Target {
        name: "agents",
        summary: "what nodes say to each other: operations on agents, malformed, forged and replayed",
        text: false,
        run: agents::agents,
    },
    Target {
        name: "gateway",
        summary: "what a gateway reads: datagrams of peers with parity, prefaces of streams, packets of the site",
        text: false,
        run: gateway::gateway,
    },
    Target {
        name: "gateway-texts",
        summary: "a gateway's texts: its configuration, public lines, answers of a source of the capacity, reports",
        text: true,
        run: gateway::gateway_texts,
    },
    Target { name: "trace", summary: "files of recorded capacity", text: true, run: targets::trace },
];

/// This crate's folder in the source tree.
pub fn home() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The files of a folder, in the order of their names; none if there is no such folder.
pub fn inputs(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder).into_iter().flatten().flatten().map(|e| e.path()).collect();
    paths.sort();
    paths.into_iter().filter_map(|p| fs::read(&p).ok().map(|bytes| (p, bytes))).collect()
}

impl Target {
    /// The target of this name.
    pub fn find(name: &str) -> Option<&'static Target> {
        TARGETS.iter().find(|t| t.name == name)
    }
    /// What fuzzing starts from: the committed corpus, inputs that once failed and, for scenarios, the examples and templates.
    pub fn seeds(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let folder = |kind: &str| inputs(&home().join(kind).join(self.name));
        let mut all = [folder("corpus"), folder("regressions")].concat();
        if self.name == "scenario" {
            let root = home().join("..");
            for place in ["scenarios", "crates/explicate-scenario/templates"] {
                all.extend(
                    inputs(&root.join(place)).into_iter().filter(|(p, _)| p.extension().is_some_and(|e| e == "toml")),
                );
            }
        }
        all
    }
}

//! Scenario files: types, units, errors with locations, JSON Schema.
//!
//! [`Scenario::parse`](model::Scenario::parse) is the entry point; [`model`] is the result.

pub mod agents;
mod checks;
mod classes;
mod document;
mod ends;
mod excerpt;
pub mod explain;
mod flows;
mod generated;
mod generator;
mod graph;
mod guards;
mod keys;
pub mod limits;
mod media;
pub mod model;
mod needs;
mod network;
mod own;
mod params;
mod parse;
mod parts;
mod path;
mod phase_effects;
pub mod problem;
mod props;
mod quantity;
mod reader;
mod relations;
mod renamed;
mod reroutes;
mod resolve;
pub mod routing;
pub mod schema;
mod scone;
pub mod settings;
mod steps;
pub mod templates;
mod topology;
mod trace;
mod unused;

pub use parse::{is_written, locate, locate_bytes};
pub use parts::queue_default;
pub use quantity::{bytes, rate};

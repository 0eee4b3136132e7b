//! Scenarios as text: their meaning, and every message. One binary, so that the parser is linked once.

mod examples;
mod excerpts;
mod hints;
mod meaning;
mod media;
mod messages;
mod normative;
mod overrides;
mod renamed;
mod robust;
mod routing;
mod schema;
mod stacks;
mod support;
mod warned;
mod warnings;

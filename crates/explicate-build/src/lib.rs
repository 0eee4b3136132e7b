//! Builds state machines from a scenario's model, and the tables of results.
//!
//! Simulator, fluid models and lab share this crate, so that a scenario means the same in all of them:
//!
//! - [`ports`], [`flows`], [`source`], [`session`] and [`paths`] build the core's state machines from the
//!   [model](explicate_scenario::model);
//! - [`tables`] defines the columns of the results and [`variables`] what can be sampled; [`rows`] makes rows from counters.

pub mod flows;
pub mod paths;
pub mod ports;
pub mod rows;
pub mod session;
pub mod source;
pub mod tables;
pub mod variables;

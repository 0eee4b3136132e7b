//! Laws of every registered protocol, recovery, queue discipline, channel and estimator, and of the parsers.
//!
//! They apply to a new entry as soon as a registry lists it.

mod channels;
mod disciplines;
mod estimators;
mod limits;
mod parsers;
mod protocols;
mod recoveries;
mod registry;

//! The simulator for browsers: runs that a page advances step by step, observes and changes.
//!
//! [`door`] has the functions that JavaScript calls, [`session`] a run that a page advances, [`output`] tables as text and their
//! hash. [`changes`] reads changes of the network and puts them into a scenario, as channels and queue disciplines of `changing.rs`;
//! [`hand`] is a router whose feedback a visitor sets.
//!
//! A change is part of a run from its beginning: to make one, a page starts the run again and continues to the
//! present. Up to the first change the run is the same to the last bit, and the same changes give the same tables.
#![forbid(unsafe_code)]

pub mod changes;
mod changing;
pub mod door;
pub mod hand;
pub mod output;
pub mod session;
mod steps;

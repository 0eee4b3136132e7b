//! The simulator for browsers: runs that go on step by step while somebody looks at them and changes the network.
//!
//! [`session`] is what a page drives, [`changes`] what changes while a run goes on, [`hand`] a router whose feedback a visitor
//! sets, [`output`] tables as text and their hash, [`door`] the functions that JavaScript calls.
//!
//! A change is part of a run from its beginning: to make one, a page starts the run again and goes on to the present. Up to the
//! first change the run is the same to the last bit, and the same changes give the same tables.
#![forbid(unsafe_code)]

pub mod changes;
pub mod door;
pub mod hand;
pub mod output;
pub mod session;

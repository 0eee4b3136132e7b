//! Fluid models: the scenario of a packet simulation as delay-differential equations of classes of flows.
//!
//! Flows that share protocol, path, start and everything else are one *class*, computed once however many they are. What
//! they send is a fluid that fills queues, carries its routers' answers and comes back as acknowledgements; cost grows with
//! links and with the hops of classes, not with packets. The equations stand in `docs/fluid.md` and at the head of each file:
//!
//! | file | what |
//! | --- | --- |
//! | `model` | what a model consists of: a law of senders, a law of routers |
//! | `models/` | one protocol, one file; the list of them |
//! | `network` | from a scenario to links, classes and the rings that delay them |
//! | `queue` | queues and what they drop |
//! | `engine` | a step of time |
//! | `check` | what no model covers, refused by file, line and key |
//! | `measure`, `sample` | result tables, in the simulator's columns |
#![forbid(unsafe_code)]

pub mod check;
pub mod engine;
mod measure;
pub mod model;
pub mod models;
pub mod network;
mod queue;
pub mod run;
mod sample;

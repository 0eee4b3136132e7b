//! Fluid models: the scenario of a packet simulation as delay-differential equations of classes of flows.
//!
//! Flows with equal protocol, path, start and parameters form one *class*, which is computed once. Their traffic is a fluid that
//! fills queues, carries the feedback of routers and returns as acknowledgements. The cost grows with links and with the hops
//! of classes, not with packets. The equations are in `docs/fluid.md` and at the head of each file:
//!
//! | file | contents |
//! | --- | --- |
//! | `model` | the parts of a model: senders and routers |
//! | `models/` | one file per protocol, and the list of them |
//! | `network` | from a scenario to links, classes and the rings that delay them |
//! | `queue` | queues and their drops |
//! | `engine` | one time step |
//! | `check` | rejects unsupported settings, by file, line and key |
//! | `link_stats` | counters of a link |
//! | `measure`, `sample` | result tables, in the simulator's columns |
#![forbid(unsafe_code)]

pub mod check;
pub mod engine;
pub mod error;
mod link_stats;
mod measure;
pub mod model;
pub mod models;
pub mod network;
mod queue;
pub mod run;
mod sample;

//! Packet trains: a train that is faster than the available bandwidth is slower at the end of the path than at its
//! start.
//!
//! Source: Hu, Steenkiste, "Evaluation and characterization of available bandwidth probing techniques", IEEE JSAC 2003 (PTR, the
//! packet transmission rate at the turning point); Melander, Bjorkman, Gunningberg 2000 (TOPP). Paper I names packet trains.
//!
//! The idea: while a train is not faster than the available bandwidth, it leaves the path at the rate at which it
//! entered. At the turning point, beyond which it is spread, its rate is the available bandwidth. A search
//! (`search.rs`) finds that point.
//!
//! | symbol | field | value | source |
//! | --- | --- | --- | --- |
//! | n | `probes` | 40 | 60 in the paper |
//! | g_out / g_in | `spread` | above 1.05: beyond the turning point | 1.05, ours |
//!
//! Deviations:
//! 1. The search halves intervals, where the paper widens the gap step by step.

use alloc::boxed::Box;

use super::search::{Arrived, Search};
use super::{Estimator, EstimatorInit, EstimatorKind, Probing};
use crate::params::Info;

/// Trains and their turning point.
pub struct PacketTrain;

impl EstimatorKind for PacketTrain {
    const INFO: Info = Info {
        name: "packet_train",
        summary: "Trains of probes, which arrive at a lower rate than they were sent if that exceeds the available bandwidth",
        source: "Hu, Steenkiste, IEEE JSAC 2003",
        params: Probing::PARAMS,
    };

    fn build(&self, init: EstimatorInit<'_>) -> Box<dyn Estimator> {
        Box::new(Search::new(&init, is_spread))
    }
}

fn is_spread(train: &[Arrived]) -> bool {
    let (Some(first), Some(last)) = (train.first(), train.last()) else { return true };
    let sent = last.sent.since(first.sent).as_secs_f64();
    last.came.since(first.came).as_secs_f64() > 1.05 * sent
}

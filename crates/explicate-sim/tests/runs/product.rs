//! Every law over every recovery and every queue discipline: a second of each, with losses. No run panics, every run conserves its packets
//! (the engine audits itself at the end of each), and something arrives.

use crate::common::{numbers, tables};
use explicate_core::registry::{PROTOCOLS, QDISCS, RECOVERIES};

fn text(law: &str, recovery: &str, queue: &str, ecn: bool) -> String {
    format!(
        r#"
name = "product"
duration = "1s"
[topology]
kind = "dumbbell"
pairs = 2
bottleneck = {{ rate = "5Mbit/s", delay = "10ms", queue = {{ kind = "{queue}" }} }}
[[link]]
name = "r1->r2"
channel = [{{ kind = "random_loss", rate = "1%" }}]
[[flows]]
name = "mine"
count = 2
protocol = "{law}/{recovery}"
packet = "1000B"
params = {{ ecn = {ecn} }}
[[flows]]
name = "tcp"
protocol = "newreno"
packet = "1000B"
"#
    )
}

#[test]
fn every_combination_runs_and_conserves_packets() {
    let mut cells = 0;
    for law in PROTOCOLS {
        for recovery in RECOVERIES {
            for queue in QDISCS {
                let t = tables(&text(law.name(), recovery.name(), queue.name(), cells % 2 == 1));
                let arrived: f64 = numbers(&t.flows, "goodput_bps").iter().sum();
                assert!(arrived > 0.0, "{}/{} over {}: nothing arrived", law.name(), recovery.name(), queue.name());
                cells += 1;
            }
        }
    }
    assert_eq!(cells, PROTOCOLS.len() * RECOVERIES.len() * QDISCS.len());
}

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

/// One of three parts of the combinations. Any two of law, recovery and discipline meet in each.
fn run_part(parts: &[usize]) {
    let mut cells = 0;
    for (i, law) in PROTOCOLS.iter().enumerate() {
        for (j, recovery) in RECOVERIES.iter().enumerate() {
            for (k, queue) in QDISCS.iter().enumerate() {
                if !parts.contains(&((i + j + k) % 3)) {
                    continue;
                }
                let t = tables(&text(law.name(), recovery.name(), queue.name(), (i + j + k) % 2 == 1));
                let arrived: f64 = numbers(&t.flows, "goodput_bps").iter().sum();
                assert!(arrived > 0.0, "{}/{} over {}: nothing arrived", law.name(), recovery.name(), queue.name());
                cells += 1;
            }
        }
    }
    let all = PROTOCOLS.len() * RECOVERIES.len() * QDISCS.len();
    assert!(4 * cells > all * parts.len(), "{cells} of {all}");
}

#[test]
fn every_two_run_together_and_conserve_packets() {
    run_part(&[0]);
}

#[test]
#[ignore = "takes long: make long-runs"]
fn the_other_combinations_run_and_conserve_packets() {
    run_part(&[1, 2]);
}

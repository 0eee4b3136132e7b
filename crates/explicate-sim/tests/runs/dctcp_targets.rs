//! Design goals of DCTCP: the queue stays near K, far below that of Reno, the line is busy, and alpha is what theory
//! says.
#![allow(clippy::print_stdout)] // `cargo test -- --nocapture` shows the numbers

use crate::common::jain;
use crate::outcome::{Outcome, mean, run};

const K: f64 = 20.0;
/// C RTT, packets of 1000 bytes: 100 Mbit/s and 8 ms.
const BDP: f64 = 100.0;
const FLOWS: f64 = 2.0;

fn over(protocol: &str, queue: &str) -> Outcome {
    run(&format!(
        r#"
duration = "20s"
warmup = "5s"
[topology]
kind = "dumbbell"
pairs = 2
access = {{ rate = "1Gbit/s", delay = "1ms" }}
bottleneck = {{ rate = "100Mbit/s", delay = "2ms", queue = {{ {queue}, limit = "200pkt" }} }}
[[flows]]
name = "f"
count = 2
protocol = "{protocol}"
packet = "1000B"
[sampling]
every = "5ms"
of = ["queue", "flow"]
"#
    ))
}

/// SIGCOMM 2010 section 3.3: windows oscillate below W* = (C RTT + K) / N, where alpha is sqrt(2 / W*), and the queue
/// between K + N and sqrt(2 N (C RTT + K)) / 2 packets below that.
#[test]
fn the_queue_stays_near_k_and_the_line_busy() {
    let step = over("dctcp", "kind = \"step\", threshold = \"20pkt\"");
    let reno = over("sack", "kind = \"droptail\"");
    let (queue, of_reno) = (step.link("r1->r2", "queue_mean_packets"), reno.link("r1->r2", "queue_mean_packets"));
    let alpha = mean(&step.samples("f.0", "alpha", 5.0));
    let utilisation = step.link("r1->r2", "utilisation");
    let fairness = jain(&step.flows("f", "goodput_bps"));
    let most = K + FLOWS;
    let (swing, theory) = ((2.0 * FLOWS * (BDP + K)).sqrt() / 2.0, (2.0 * FLOWS / (BDP + K)).sqrt());
    println!("queue {queue:.1} packets, in theory {:.1} to {most}; Reno's {of_reno:.1}", most - swing);
    println!("alpha {alpha:.3}, in theory {theory:.3}; utilisation {utilisation:.4}, Jain {fairness:.4}");
    assert!((most - 1.5 * swing..most + 3.0).contains(&queue), "{queue}");
    assert!(queue < of_reno / 3.0, "{queue} {of_reno}");
    assert!((0.5..2.0).contains(&(alpha / theory)), "{alpha} {theory}");
    assert!(utilisation > 0.98 && fairness > 0.95, "{utilisation} {fairness}");
    assert_eq!(step.drops(), 0.0, "nothing is lost, not even in slow start");
}

/// More of the queue is asked for, more waits.
#[test]
fn the_queue_follows_k() {
    let queue = |k: u32| {
        over("dctcp", &format!("kind = \"step\", threshold = \"{k}pkt\"")).link("r1->r2", "queue_mean_packets")
    };
    let queues = [10, 20, 40, 80].map(queue);
    println!("K 10, 20, 40, 80: {queues:.1?}");
    for pair in queues.windows(2) {
        assert!(pair[1] > 1.4 * pair[0], "{queues:?}");
    }
}

//! Design goals of RCP: processor sharing. A flow has its fair rate a few round trips after it starts, and at rest the
//! line is full and the queue short.
#![allow(clippy::print_stdout)] // `cargo test -- --nocapture` shows the numbers

use crate::common::jain;
use crate::outcome::{dumbbell, mean, run};

#[test]
fn a_full_line_a_short_queue_and_equal_shares() {
    for (mbps, rtt, flows) in [(20.0, (40.0, 40.0), 1), (100.0, (80.0, 80.0), 10), (100.0, (40.0, 160.0), 10)] {
        let done = run(&dumbbell("rcp", mbps, rtt, flows));
        let utilisation = done.link("r1->r2", "utilisation");
        let (queue, drops) = (done.link("r1->r2", "queue_mean_ms"), done.drops());
        let fairness = jain(&done.flows("f", "goodput_bps"));
        println!(
            "{mbps} Mbit/s, {rtt:?} ms, {flows} flows: {utilisation:.4}, queue {queue:.2} ms, {drops} drops, Jain {fairness:.5}"
        );
        assert!(utilisation > 0.95, "{mbps} {flows}: {utilisation}");
        assert!(queue < 0.1 * rtt.0, "{mbps} {flows}: {queue} ms");
        assert!(fairness > 0.999, "{mbps} {flows}: {fairness}");
    }
}

/// One flow has the line of 20 Mbit/s for itself; after 5 s another one comes. A round trip of 40 ms opens it, one has
/// its initial window, and from the third on it sends at the rate of the first: R = C, so that twice as much arrives as
/// leaves, until R has halved. The shares are equal from then on. What waits by then, 1.5 round trips, is drained at
/// their cost until the twentieth round trip.
#[test]
fn a_new_flow_has_its_fair_rate_within_round_trips() {
    let done = run(r#"
duration = "10s"
[topology]
kind = "dumbbell"
pairs = 2
access = { rate = "200Mbit/s", delay = "1ms" }
bottleneck = { rate = "20Mbit/s", delay = "18ms", queue = { kind = "droptail", limit = "400pkt" } }
[[flows]]
name = "first"
protocol = "rcp"
packet = "1000B"
[[flows]]
name = "second"
protocol = "rcp"
packet = "1000B"
start = "5s"
[sampling]
every = "40ms"
of = ["throughput", "queue", "router"]
"#);
    let rate = |flow: &str, rtt: usize, count: usize| {
        let all = done.samples(flow, "throughput_bps", 5.0);
        mean(&all[rtt..rtt + count]) / 1e6
    };
    for flow in ["first.0", "second.0"] {
        let rates = [0, 2, 4, 6, 8, 10, 15, 20].map(|rtt| (rtt, (10.0 * rate(flow, rtt, 2)).round() / 10.0));
        println!("{flow}, Mbit/s by round trips after 5 s: {rates:?}");
    }
    let early = rate("second.0", 4, 3);
    assert!(early > 9.0, "no slow start: {early} Mbit/s in the fifth to seventh round trip");
    let [first, second] = ["first.0", "second.0"].map(|flow| rate(flow, 4, 20));
    assert!((first / second - 1.0).abs() < 0.05, "equal shares from the fifth round trip on: {first} {second}");
    for flow in ["first.0", "second.0"] {
        let fair = rate(flow, 20, 40);
        assert!((fair / 10.0 - 1.0).abs() < 0.03, "{flow}: {fair} Mbit/s");
    }
    let queue = done.samples("r1->r2", "queue_bytes", 5.0 + 20.0 * 0.04);
    assert!(mean(&queue) / 2.5e6 < 0.004, "{} s of queue after 20 round trips", mean(&queue) / 2.5e6);
}

//! Design goals of RCP: processor sharing. A flow has its fair rate a few round trips after it starts, and at rest the
//! line is full and the queue short.
#![allow(clippy::print_stdout)] // `cargo test -- --nocapture` shows the numbers

use crate::common::jain;
use crate::outcome::{Outcome, dumbbell, mean, run};

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
        if rtt == (80.0, 80.0) {
            loses_nothing_at_first(&done);
        }
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

/// R is 0.05 C at first, and 0.0586 C after the 80 ms of set-up, 1.02^8 times as much. So ten flows that begin together
/// have 0.59 C, and the line is never overloaded by much. Their first windows, ten packets each, arrive at once.
fn loses_nothing_at_first(done: &Outcome) {
    let (peak, drops) = (done.link("r1->r2", "queue_peak_packets"), done.drops());
    println!("a first crowd: at most {peak} packets wait, {drops} drops");
    assert_eq!(drops, 0.0);
    assert!(peak < 150.0, "{peak} packets, of C d0 = 1000");
}

/// What a crowd of `n` flows loses that begins at R = C, in units of C d0, with a buffer of 1. In each interval of
/// d0 / `m` arrives n times the R of one d0 before; equation 2 follows.
fn lost_by_a_crowd(n: f64, m: usize) -> f64 {
    let (mut rates, mut queue, mut lost) = (vec![1.0; m + 1], 0.0f64, 0.0);
    for k in 0..20 * m {
        let (arrives, m) = (n * rates[k], m as f64);
        queue = (queue + (arrives - 1.0) / m).max(0.0);
        lost += (queue - 1.0).max(0.0);
        queue = queue.min(1.0);
        let change: f64 = 1.0 + (0.4 * (1.0 - arrives) - 0.226 * queue) / m;
        rates.push((rates[rates.len() - 1] * change).clamp(1e-4, 1.0));
    }
    lost
}

/// Ten flows that begin after 5 s without traffic. Then R = C, and 10 C arrives for a round trip: (n - 1) C d0 less the
/// buffer are eight times C d0, 8000 packets, and some 2000 more come until R has fallen. That is the law.
#[test]
fn a_crowd_at_the_full_rate_overloads_the_line_for_a_round_trip() {
    let text = dumbbell("rcp", 100.0, (80.0, 80.0), 10) + "start = \"5s\"\n";
    let done = run(&text.replace("\"40s\"", "\"15s\"").replace("\"20s\"", "\"12s\""));
    let (drops, expected) = (done.drops(), 1000.0 * lost_by_a_crowd(10.0, 8));
    let (utilisation, queue) = (done.link("r1->r2", "utilisation"), done.link("r1->r2", "queue_mean_ms"));
    println!("a crowd: {drops} drops, by equation 2 {expected:.0}; later {utilisation:.4} busy, queue {queue} ms");
    assert!((drops / expected - 1.0).abs() < 0.1, "{drops} drops, by equation 2 {expected}");
    assert!(utilisation > 0.95 && queue < 8.0, "seven seconds later: {utilisation}, {queue} ms");
}

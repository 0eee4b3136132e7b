//! What TCP over drop-tail is known for, under the conditions of `xcp_targets`: it fills the buffer, and it favours short
//! round trips.
#![allow(clippy::print_stdout)] // `cargo test -- --nocapture` shows the numbers

use crate::common::jain;
use crate::outcome::{Outcome, dumbbell, mean, ns2, run};

#[test]
fn tcp_keeps_the_buffer_full() {
    for protocol in ["reno", "sack"] {
        for (mbps, rtt, flows) in [(100.0, 80.0, 10), (100.0, 80.0, 50), (30.0, 100.0, 1), (10.0, 40.0, 2)] {
            // The tooth of one or two flows is longer than the run: it is the one that hosts without processing time begin.
            let processing = if flows <= 2 { "none" } else { "auto" };
            let text = dumbbell(protocol, mbps, (rtt, rtt), flows);
            let done = run(&format!("processing = {processing:?}{text}"));
            let share = done.link("r1->r2", "queue_mean_bytes") / (mbps * rtt * 125.0);
            let numbers = format!(
                "{protocol}, {mbps} Mbit/s, {rtt} ms, {flows} flows: mean queue {:.0} % of the buffer, {} drops",
                100.0 * share,
                done.drops()
            );
            println!("{numbers}");
            // A single saw-tooth between a full and an empty buffer is at half of it.
            assert!(share >= 0.5, "{numbers}");
            assert!(done.link("r1->r2", "utilisation") >= 0.99, "{numbers}");
            assert!(done.drops() > 0.0, "{numbers}");
        }
    }
}

#[test]
fn tcp_favours_short_round_trips() {
    for protocol in ["reno", "sack"] {
        // Means of five runs.
        let text = dumbbell(protocol, 45.0, (40.0, 330.0), 30);
        let runs: Vec<Outcome> = (1..=5).map(|seed| run(&ns2(&format!("seed = {seed}\n{text}")))).collect();
        let fairness = mean(&runs.iter().map(|done| jain(&done.flows("f", "goodput_bps"))).collect::<Vec<_>>());
        println!("{protocol}: Jain {fairness:.3}");
        assert!(fairness <= 0.9, "{protocol}: Jain {fairness}");
        // Flows that lose packets independently share by the inverse of their round trips, queues included; those that lose
        // them together, by its square.
        let sum = |value: &dyn Fn(&Outcome) -> Vec<f64>, of: std::ops::Range<usize>| {
            runs.iter().flat_map(|done| value(done)[of.clone()].to_vec()).sum::<f64>()
        };
        let ratio = |value: &dyn Fn(&Outcome) -> Vec<f64>| sum(value, 0..10) / sum(value, 20..30);
        let rates = ratio(&|done| done.flows("f", "goodput_bps"));
        let inverse = ratio(&|done| done.flows("f", "rtt_mean_ms").iter().map(|rtt| 1.0 / rtt).collect());
        println!(
            "{protocol}: the ten shortest have {rates:.2} times the rate of the ten longest, {inverse:.2} by round trips"
        );
        assert!(rates > 0.95 * inverse && rates < inverse * inverse, "{protocol}: {rates}, {inverse} by round trips");
    }
}

/// A lone AIMD flow moves between (1 + b) / 2 and 1 + b bandwidth-delay products over a buffer of b. Integrating its window
/// over a tooth gives the share of the link that it uses, 3/4 (1 + b)^2 / (1 + b + b^2): 75 % without a buffer, all with b = 1.
/// A formula of one flow, whose host takes no time: else its packets sometimes come in pairs, and a short buffer is full earlier.
#[test]
fn the_saw_tooth_uses_the_known_share() {
    for protocol in ["newreno", "sack"] {
        for buffer in [0.1_f64, 0.25, 0.5, 0.75] {
            let text = format!("processing = \"none\"{}", dumbbell(protocol, 10.0, (80.0, 80.0), 1))
                .replace("1.0bdp", &format!("{buffer}bdp"))
                .replace("40s", "240s")
                .replace("20s", "60s");
            let got = run(&ns2(&text)).link("r1->r2", "utilisation");
            let share = 0.75 * (1.0 + buffer) * (1.0 + buffer) / (1.0 + buffer + buffer * buffer);
            println!("{protocol}, buffer {buffer}: {got:.4}, expected {share:.4}");
            assert!((got / share - 1.0).abs() < 0.015, "{protocol}, buffer {buffer}: {got}, expected {share}");
        }
    }
}

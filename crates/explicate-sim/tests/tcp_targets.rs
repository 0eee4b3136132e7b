//! What TCP over drop-tail is known for, under the conditions of `xcp_targets`: it fills the buffer, and it favours short
//! round trips.
#![allow(clippy::print_stdout)] // `cargo test -- --nocapture` shows the numbers

mod common;
#[path = "common/outcome.rs"]
mod outcome;
use common::jain;
use outcome::{dumbbell, run};

#[test]
fn tcp_keeps_the_buffer_full() {
    for protocol in ["reno", "sack"] {
        for (mbps, rtt, flows) in [(100.0, 80.0, 10), (100.0, 80.0, 50), (30.0, 100.0, 1), (10.0, 40.0, 2)] {
            let done = run(&dumbbell(protocol, mbps, (rtt, rtt), flows));
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
        let done = run(&dumbbell(protocol, 45.0, (40.0, 330.0), 30));
        let goodput = done.flows("f", "goodput_bps");
        let fairness = jain(&goodput);
        println!("{protocol}: Jain {fairness:.3}");
        assert!(fairness <= 0.9, "{protocol}: Jain {fairness}");
        let (short, long): (f64, f64) = (goodput[..10].iter().sum(), goodput[20..].iter().sum());
        assert!(short > 2.0 * long, "{protocol}: the ten shortest got {short}, the ten longest {long} bit/s");
    }
}

//! What XCP is for: a full link, a near-empty queue, no loss, equal shares. Second half of 40 s, buffer of one
//! bandwidth-delay product, packets of 1000 bytes, all flows start at once.
#![allow(clippy::print_stdout)] // `cargo test -- --nocapture` shows the start-up transients

use crate::common::jain;
use crate::outcome::{dumbbell, run};

fn holds(mbps: f64, rtt: (f64, f64), flows: u32) {
    let mut text = dumbbell("xcp", mbps, rtt, flows);
    if mbps >= 1000.0 {
        // Half as long: a tenth of the seconds fills it, and packets are many.
        text = text.replace("\"40s\"\nwarmup = \"20s\"", "\"20s\"\nwarmup = \"10s\"");
    }
    let done = run(&text);
    let bdp = mbps * 1e6 / 8.0 * (rtt.0 + rtt.1) / 2.0 * 1e-3;
    let utilisation = done.link("r1->r2", "utilisation");
    let queue = done.link("r1->r2", "queue_mean_bytes") / bdp;
    let fairness = jain(&done.flows("f", "goodput_bps"));
    let numbers = format!(
        "{mbps} Mbit/s, {rtt:?} ms, {flows} flows: utilisation {utilisation:.4}, drops {}, Jain {fairness:.5}, mean queue \
         {:.2} % of BDP; 90 % after {} s, peak queue {} packets",
        done.drops(),
        100.0 * queue,
        done.link("r1->r2", "time_to_90_s"),
        done.link("r1->r2", "queue_peak_packets"),
    );
    println!("{numbers}");
    assert!(utilisation >= 0.99, "{numbers}");
    assert!(done.drops() == 0.0, "{numbers}");
    assert!(fairness >= 0.999, "{numbers}");
    assert!(queue <= 0.03, "{numbers}");
}

/// A gigabit is filled too, and round trips of 40 to 330 ms share alike.
#[test]
fn the_link_is_full_and_the_queue_is_not() {
    for (mbps, rtt, flows) in [
        (100.0, (80.0, 80.0), 10),
        (100.0, (80.0, 80.0), 50),
        (30.0, (100.0, 100.0), 1),
        (10.0, (40.0, 40.0), 2),
        (45.0, (40.0, 330.0), 30),
        (1000.0, (80.0, 80.0), 10),
    ] {
        holds(mbps, rtt, flows);
    }
}

/// Thirty flows with round trips of 40 to 330 ms send 6 to 45 packets a round trip. X reports the window in whole packets
/// as it is sent. With its fraction, flows with small windows had up to 8 % less than the others (Jain 0.99966,
/// queue 10 to 12 packets; ns-2.35 has 0.999998 and 15.4 to 16.0).
#[test]
fn small_windows_get_the_share_of_large_ones() {
    let done = run(r#"
        duration = "40s"
        warmup = "20s"
        [topology]
        kind = "dumbbell"
        pairs = 30
        access = { rate = "90Mbit/s", delay = { from = "1ms", to = "73.5ms" }, router = "none" }
        bottleneck = { rate = "45Mbit/s", delay = "18ms", queue = { kind = "droptail", limit = "1.0bdp" } }
        [[flows]]
        name = "f"
        count = 30
        protocol = "xcp"
        packet = "1050B"
        params = { host_queue = "none" } # as in ns-2
        start = { uniform = "100ms" }
        "#);
    let goodput = done.flows("f", "goodput_bps");
    let mean = goodput.iter().sum::<f64>() / goodput.len() as f64;
    let farthest = goodput.iter().map(|g| (g / mean - 1.0).abs()).fold(0.0, f64::max);
    let queue = done.link("r1->r2", "queue_mean_packets");
    let numbers = format!("Jain {:.6}, farthest {farthest:.4}, mean queue {queue:.2} packets", jain(&goodput));
    println!("{numbers}");
    assert!(jain(&goodput) >= 0.99999 && farthest <= 0.01, "{numbers}");
    assert!((15.0..=17.0).contains(&queue), "{numbers}");
}

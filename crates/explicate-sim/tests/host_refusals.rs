//! A host's own queue that refuses most of what its flows send is worth a warning.

mod common;

use common::{run, scenario};
use explicate_sim::measure::warnings;
use explicate_sim::simulation::Options;

/// Two hosts that send this much each over cables of 2 Mbit/s with a queue of their own.
fn said(rate: &str, queue: &str) -> Vec<String> {
    let scenario = scenario(&format!(
        r#"
duration = "5s"
[topology]
kind = "dumbbell"
pairs = 2
access = {{ rate = "2Mbit/s", queue = {queue} }}
bottleneck = {{ rate = "1Mbit/s", delay = "10ms" }}
[[flows]]
name = "loud"
protocol = "greedy/none"
count = 2
packet = "1000B"
params = {{ rate = "{rate}" }}
"#
    ));
    let run = run(&scenario, &Options::default());
    warnings(&scenario, &run)
}

#[test]
fn refusing_more_than_one_delivers() {
    let [warning] = &said("10Mbit/s", "{ limit = \"10pkt\" }")[..] else { panic!("one warning") };
    let numbers: Vec<f64> = warning.split(' ').filter_map(|word| word.parse().ok()).collect();
    // 10 Mbit/s for 5 s are 6250 packets, of which 2 Mbit/s leave: 1250.
    assert!(
        warning.starts_with("`s0` refused ") && warning.contains(" over s0->r1 (as did another host)"),
        "{warning}"
    );
    assert!((numbers[0] - 5000.0).abs() < 50.0 && (numbers[1] - 1250.0).abs() < 20.0, "{warning}");
}

#[test]
fn other_losses_are_the_networks() {
    // The bottleneck refuses half; the host refuses a third; the host has room.
    assert_eq!(said("2Mbit/s", "{ limit = \"10pkt\" }"), [""; 0]);
    assert_eq!(said("3Mbit/s", "{ limit = \"10pkt\" }"), [""; 0]);
    assert_eq!(said("10Mbit/s", "\"unlimited\""), [""; 0]);
}

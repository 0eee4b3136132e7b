//! A warning is given if a host's own queue refuses most of the packets of its flows.

use crate::common::{run, scenario};
use explicate_sim::measure::warnings;
use explicate_sim::simulation::Options;

/// Two hosts that send at this rate each over cables of 2 Mbit/s with separate queues: the warnings, and the packets that
/// the first one refused and sent on.
fn ran(rate: &str, queue: &str) -> (Vec<String>, [u64; 2]) {
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
    let own = scenario.links.iter().position(|l| l.name == "s0->r1").expect("its link");
    let stats = &run.engine.links[own].port.stats;
    (warnings(&scenario, &run), [stats.total().overflow, stats.delivered])
}

#[test]
fn refusing_more_than_one_delivers() {
    let (said, [refused, delivered]) = ran("10Mbit/s", "{ limit = \"10pkt\" }");
    // 10 Mbit/s for 5 s are 6250 packets; 2 Mbit/s of them leave: 1250.
    assert!(refused.abs_diff(5000) < 50 && delivered.abs_diff(1250) < 20, "{refused} {delivered}");
    let expected = "`s0` refused more packets of its own flows than it delivered over s0->r1 (as did another host): ";
    assert!(said.len() == 1 && said[0].starts_with(expected), "{said:?}");
}

#[test]
fn other_losses_are_the_networks() {
    // The bottleneck refuses half; the host refuses a third; the host has room.
    assert_eq!(ran("2Mbit/s", "{ limit = \"10pkt\" }").0, [""; 0]);
    assert_eq!(ran("3Mbit/s", "{ limit = \"10pkt\" }").0, [""; 0]);
}

/// 40 Mbit of 50 wait at the end: 20 seconds.
#[test]
fn packets_that_wait_for_seconds_in_a_host() {
    let (said, [refused, _]) = ran("10Mbit/s", "\"unlimited\"");
    let expected =
        "packets wait for more than 10 s in the queue of host `s0` (and of another host), which is unlimited: s0->r1 ";
    assert!(refused == 0 && said.len() == 1 && said[0].starts_with(expected), "{said:?}");
    // 0.4 Mbit/s more than the line carries are a second of packets after 5 s.
    assert!(ran("2.5Mbit/s", "\"unlimited\"").0[0].starts_with("packets wait for more than 1 s"));
    assert_eq!(ran("2.3Mbit/s", "\"unlimited\"").0, [""; 0]);
    assert_eq!(ran("1Mbit/s", "\"unlimited\"").0, [""; 0]);
}

/// The way is cut: nothing arrives. A flow that starts after the warm-up may be late, and one without warm-up may be slow.
#[test]
fn flows_that_deliver_nothing() {
    let said = |warmup: &str, start: &str, loss: &str| {
        let scenario = scenario(&format!(
            r#"
duration = "5s"
warmup = "{warmup}"
[topology]
pairs = 1
[[link]]
name = "r1->r2"
channel = [{{ kind = "random_loss", rate = "{loss}" }}]
[[flows]]
name = "cut"
protocol = "newreno"
start = "{start}"
"#
        ));
        warnings(&scenario, &run(&scenario, &Options::default()))
    };
    let warned = said("1s", "0s", "100%");
    assert!(
        warned.len() == 1 && warned[0].starts_with("a flow of `cut` delivered nothing after the warm-up"),
        "{warned:?}"
    );
    assert_eq!(said("1s", "0s", "1%"), [""; 0]);
    assert_eq!(said("1s", "2s", "100%"), [""; 0]);
}

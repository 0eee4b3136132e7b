//! A warning is given if a host's own queue refuses most of the packets of its flows.

use crate::common::{run, scenario};
use explicate_scenario::locate;
use explicate_scenario::model::Scenario;
use explicate_sim::measure::warnings;
use explicate_sim::simulation::{Options, Run};

/// The warnings of a run without their places, which have to be that of `key`.
fn told(scenario: &Scenario, text: &str, run: &Run, key: &str) -> Vec<String> {
    let place = format!("{}: ", locate(text, "x.toml", &[], &[key.to_string()]));
    assert!(!place.starts_with("x.toml:1:1:"), "{key} is in the text");
    let all = warnings(scenario, run).into_iter().map(|warning| warning.located(text, "x.toml", &[]));
    let first = |said: String| said.lines().next().unwrap_or_default().to_string();
    all.map(|said| first(said).strip_prefix(&place).expect("the place of its cause").to_string()).collect()
}

/// Two hosts that send at this rate each over cables of 2 Mbit/s with separate queues: the warnings, and the packets that
/// the first one refused and sent on.
fn ran(rate: &str, queue: &str) -> (Vec<String>, [u64; 2]) {
    let text = format!(
        r#"
duration = "5s"
stack = "ns2" # whose hosts have no queue of their own
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
    );
    let scenario = scenario(&text);
    let run = run(&scenario, &Options::default());
    let own = scenario.links.iter().position(|l| l.name == "s0->r1").expect("its link");
    let stats = &run.engine.links[own].port.stats;
    (told(&scenario, &text, &run, "topology.access.queue"), [stats.total().overflow, stats.delivered])
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
        let text = format!(
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
        );
        let scenario = scenario(&text);
        told(&scenario, &text, &run(&scenario, &Options::default()), "flows.cut")
    };
    let warned = said("1s", "0s", "100%");
    assert!(
        warned.len() == 1 && warned[0].starts_with("a flow of `cut` delivered nothing after the warm-up"),
        "{warned:?}"
    );
    assert_eq!(said("1s", "0s", "1%"), [""; 0]);
    assert_eq!(said("1s", "2s", "100%"), [""; 0]);
}

/// The place of a queue that a generated link, a part, a written link or its other direction sets; without one the flow's.
#[test]
fn places_of_what_a_run_warns_of() {
    let head = "duration = \"5s\"\n";
    let flow =
        "[[flows]]\nname = \"loud\"\nstack = \"ns2\"\nprotocol = \"greedy/none\"\nparams = { rate = \"10Mbit/s\" }\n";
    let nodes = "node = [{ name = \"a\" }, { name = \"b\" }]\n";
    let narrow = "rate = \"2Mbit/s\", delay = \"5ms\", queue = { limit = \"10pkt\" }";
    let access = "[topology]\npairs = 1\nbottleneck = { rate = \"1Mbit/s\", delay = \"9ms\" }\naccess = ";
    let both = |from: &str, to: &str, text: &str| {
        format!("{head}{nodes}link = [{{ from = \"{from}\", to = \"{to}\", duplex = true, {text} }}]\n")
    };
    let ends = "from = \"a\"\nto = \"b\"\n";
    let cases = [
        (format!("{head}{access}{{ {narrow} }}\n{flow}"), "x.toml:5:"),
        (format!("{head}{access}{{ rate = \"2Mbit/s\" }}\n{flow}"), "x.toml:5:"),
        (both("a", "b", narrow) + flow + ends, "x.toml:3:"),
        (both("b", "a", narrow) + flow + ends, "x.toml:3:"),
    ];
    for (text, start) in cases {
        let scenario = scenario(&text);
        let run = run(&scenario, &Options::default());
        let [warning] = &warnings(&scenario, &run)[..] else { panic!("{text}") };
        let said = warning.clone().located(&text, "x.toml", &[]);
        assert!(said.starts_with(start) && said.lines().count() > 1, "{said}\n{text}");
    }
    let (text, over) = (format!("{head}{access}{{ {narrow} }}\n{flow}"), ("topology.access.queue.limit", "5pkt"));
    let (over, scenario) = ([(over.0.to_string(), over.1.to_string())], scenario(&text));
    let [warning] = &warnings(&scenario, &run(&scenario, &Options::default()))[..] else { panic!("{text}") };
    // Made by a program: the key.
    assert!(warning.clone().located(&text, "<scenario>", &over).starts_with("topology.access.queue: "));
    let replaced = [("topology.access.queue".to_string(), "{ limit = \"5pkt\" }".to_string())];
    assert!(warning.clone().located(&text, "x.toml", &replaced).starts_with("--set topology.access.queue: "));
}

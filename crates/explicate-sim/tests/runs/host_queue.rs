//! Queues of sending hosts: they hold little, and push back instead of dropping.

use explicate_scenario::model::Scenario;
use explicate_scenario::templates::TEMPLATES;
use explicate_sim::measure::measure;
use explicate_sim::simulation::{EngineKind, Options, run_once};
use std::path::Path;

use crate::common::{number, numbers};

/// Runs a scenario with these overrides, in one of the two engines.
fn run(text: &str, overrides: &[(&str, &str)], engine: EngineKind) -> (Scenario, explicate_sim::measure::Tables) {
    let overrides: Vec<_> = overrides.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
    let parsed = Scenario::parse(text, "test.toml", Path::new("../explicate-scenario/templates"), &overrides);
    let scenario = parsed.unwrap_or_else(|problem| panic!("{problem}"));
    let options = Options { engine, ..Options::default() };
    let mut run = run_once(&scenario, 0, &options, &|_, _| true).unwrap_or_else(|problem| panic!("{problem}"));
    let tables = measure(&scenario, 0, &mut run, "test");
    (scenario, tables)
}

fn dumbbell(host_queue: &str) -> (Scenario, explicate_sim::measure::Tables) {
    let overrides = [
        ("stack", "ns2"), // whose window grows though nothing limits it
        ("topology.bottleneck.rate", "100Mbit/s"),
        ("flows.greedy.protocol", "reno"),
        ("flows.greedy.params.host_queue", host_queue),
        ("duration", "15s"),
        ("warmup", "5s"),
    ];
    run(template("dumbbell"), &overrides, EngineKind::Fast)
}
fn template(name: &str) -> &'static str {
    TEMPLATES.iter().find(|t| t.name == name).expect("a template").text
}

/// A flow that has the line for itself is not limited by the network: its window grows until something drops. The most packets in
/// the queue of any host, and the goodput of all flows.
#[test]
fn a_host_holds_a_few_packets() {
    let held = |queue: &str| {
        let (_, tables) = dumbbell(queue);
        let peaks = (0..4).map(|i| number(&tables.links, "link", &format!("s{i}->r1"), "queue_peak_packets"));
        (peaks.fold(0.0, f64::max), numbers(&tables.flows, "goodput_bps").iter().sum::<f64>())
    };
    let ((most, before), (few, after)) = (held("none"), held("fifo"));
    assert!(most > 5000.0, "{most} packets without");
    assert!(few <= 60.0, "{few} packets with");
    assert!(after > 0.98 * before.min(93e6), "{after} bit/s with, {before} without");
}

/// Each template, with TCP in place of its protocol: no host's queue exceeds 1000 packets or 0.2 s of its line, nor, for lines that
/// change their rate, what it had without a host queue.
#[test]
fn no_host_of_a_template_holds_more_than_a_fifth_of_a_second() {
    let mut checked = 0;
    for template in TEMPLATES {
        let parsed = Scenario::parse(template.text, "t", Path::new("../explicate-scenario/templates"), &[]);
        let parsed = parsed.unwrap_or_else(|problem| panic!("{problem}"));
        let mut overrides = vec![("duration".to_string(), "6s".to_string()), ("warmup".to_string(), "1s".to_string())];
        for group in &parsed.flows {
            overrides.push((format!("flows.{}.protocol", group.name), "cubic".to_string()));
            overrides.push((format!("flows.{}.params.host_queue", group.name), "fifo".to_string()));
        }
        let overrides: Vec<(&str, &str)> = overrides.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        let (scenario, tables) = run(template.text, &overrides, EngineKind::Fast);
        for link in &scenario.links {
            let host = scenario.flows.iter().any(|group| group.ends.iter().any(|(from, _)| *from == link.from));
            if !host || link.over.is_some() {
                continue;
            }
            let peak = number(&tables.links, "link", &link.name, "queue_peak_packets");
            let packet = scenario.flows.iter().map(|group| group.packet).min().expect("a group") as f64;
            let most = (0.2 * link.rate.bytes_per_sec() / packet).clamp(2.0, 1000.0);
            assert!(peak <= most, "{}, {}: {peak} of {most}", template.name, link.name);
            checked += 1;
        }
    }
    assert!(checked > 20, "{checked} links");
}

/// 300 flows on one host with 20 Mbit/s: 500 packets of 1000 bytes are 0.2 s. Each flow alone would hold four. SYNs, which do
/// not wait, come on top.
fn crowd(engine: EngineKind) -> explicate_sim::measure::Tables {
    let text = r#"
        duration = "20s"
        warmup = "10s"
        seed = 3
        [topology]
        kind = "dumbbell"
        pairs = 1
        access = { rate = "20Mbit/s", delay = "1ms" }
        bottleneck = { rate = "100Mbit/s", delay = "10ms" }
        [[flows]]
        name = "f"
        count = 300
        protocol = "sack"
        packet = "1000B"
        params = { host_queue = "fifo" }
        start = { uniform = "1s" }
        [sampling]
        every = "1s"
        of = ["cwnd"]
    "#;
    run(text, &[], engine).1
}

#[test]
fn a_full_queue_pushes_back_and_serves_all() {
    let tables = crowd(EngineKind::Fast);
    let link = |column| number(&tables.links, "link", "s0->r1", column);
    assert!(link("queue_peak_packets") <= 500.0 + 300.0, "{} packets", link("queue_peak_packets"));
    assert!(link("queue_max_packets") <= 505.0, "{} packets after the warm-up", link("queue_max_packets"));
    assert_eq!(link("drops_total"), 0.0);
    assert!(link("utilisation") > 0.99, "{}", link("utilisation"));
    let goodputs = numbers(&tables.flows, "goodput_bps");
    let mean = goodputs.iter().sum::<f64>() / 300.0;
    let (least, most) =
        (goodputs.iter().copied().fold(f64::MAX, f64::min), goodputs.iter().copied().fold(0.0, f64::max));
    assert!(least > 0.5 * mean && most < 2.0 * mean, "{least} to {most}, mean {mean}");
    assert_eq!(numbers(&tables.flows, "timeouts").iter().sum::<f64>(), 0.0);
}

#[test]
fn both_engines_have_the_same_queues() {
    let [fast, reference] = [EngineKind::Fast, EngineKind::Reference].map(crowd);
    assert_eq!(format!("{:?}", fast.flows), format!("{:?}", reference.flows));
    assert_eq!(format!("{:?}", fast.links), format!("{:?}", reference.links));
}

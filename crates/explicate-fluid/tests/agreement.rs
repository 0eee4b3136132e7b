//! Fluid against packets: the same scenario text through both, their tables side by side.
//!
//! Rates agree within 3 %; mean queues within 10 %, or 3 packets, or 1 % of the bandwidth-delay product.
//! `validation/fluid.py` has more and longer cases.
#![allow(clippy::print_stdout)] // `cargo test -- --nocapture` shows the numbers

mod common;

use std::path::Path;

use common::{fluid, numbers, texts};
use explicate_build::tables::Tables;
use explicate_scenario::model::Scenario;
use explicate_sim::measure::measure;
use explicate_sim::simulation::{Options, run_once};

fn packets(text: &str) -> Tables {
    let scenario = Scenario::parse(text, "test.toml", Path::new("."), &[]).unwrap();
    let mut done = run_once(&scenario, 0, &Options::default(), &|_, _| true).unwrap();
    measure(&scenario, 0, &mut done, "test")
}

/// Mean goodput of a group's flows, Mbit/s.
fn rate(tables: &Tables, group: &str) -> f64 {
    let flows = &tables.flows;
    let counts = if flows.get("count").is_some() { numbers(flows, "count") } else { vec![1.0; flows.rows()] };
    let rows = texts(flows, "group").iter().zip(numbers(flows, "goodput_bps")).zip(counts);
    let (sum, n) = rows.filter(|((g, _), _)| *g == group).fold((0.0, 0.0), |(s, n), ((_, x), c)| (s + c * x, n + c));
    sum / n / 1e6
}

fn of_link(tables: &Tables, link: &str, column: &str) -> f64 {
    let row = texts(&tables.links, "link").iter().position(|l| l == link).unwrap();
    numbers(&tables.links, column)[row]
}

/// Runs both and compares the groups' rates and the links' mean queues; `bdp` is in packets.
fn agree(name: &str, text: &str, groups: &[&str], links: &[&str], bdp: f64) {
    let (model, truth) = (fluid(text), packets(text));
    let mut wrong = Vec::new();
    for group in groups {
        let (m, t) = (rate(&model, group), rate(&truth, group));
        let line = format!("{name}: {group}: fluid {m:.3}, packets {t:.3} Mbit/s ({:+.1} %)", 100.0 * (m / t - 1.0));
        println!("{line}");
        wrong.extend(((m / t - 1.0).abs() > 0.03).then_some(line));
    }
    for link in links {
        let (m, t) = (of_link(&model, link, "queue_mean_packets"), of_link(&truth, link, "queue_mean_packets"));
        let used = (of_link(&model, link, "utilisation"), of_link(&truth, link, "utilisation"));
        let line = format!("{name}: {link}: queue: fluid {m:.2}, packets {t:.2} of {bdp:.0}; used {used:.4?}");
        println!("{line}");
        wrong.extend(((m - t).abs() > (0.1 * t).max(3.0).max(0.01 * bdp)).then_some(line));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

fn dumbbell(protocol: &str, mbps: f64, rtt: (f64, f64), flows: u32, seconds: u32, queue: &str) -> String {
    let (from, to) = rtt;
    let (bottleneck, last) = (from / 2.0 - 2.0, 1.0 + (to - from) / 4.0);
    format!(
        r#"
duration = "{seconds}s"
warmup = "{}s"
[topology]
kind = "dumbbell"
pairs = {flows}
access = {{ rate = "{}Mbit/s", delay = {{ from = "1ms", to = "{last}ms" }} }}
bottleneck = {{ rate = "{mbps}Mbit/s", delay = "{bottleneck}ms", queue = {queue} }}
[[flows]]
name = "f"
count = {flows}
protocol = "{protocol}"
packet = "1000B"
start = {{ spread = "1s" }}
"#,
        seconds / 2,
        10.0 * mbps,
    )
}

const BUFFER: &str = r#"{ kind = "droptail", limit = "1.0bdp" }"#;

fn bdp(mbps: f64, rtt: (f64, f64)) -> f64 {
    mbps * 0.125 * (rtt.0 + rtt.1) / 2.0
}

#[test]
fn xcp_dumbbells() {
    for (mbps, rtt, flows) in [(10.0, (40.0, 40.0), 2), (50.0, (80.0, 80.0), 10), (45.0, (40.0, 330.0), 15)] {
        let text = dumbbell("xcp", mbps, rtt, flows, 30, BUFFER);
        agree(&format!("xcp {mbps} {rtt:?} {flows}"), &text, &["f"], &["r1->r2"], bdp(mbps, rtt));
    }
}

#[test]
fn vcp_dumbbells() {
    for (mbps, rtt, flows) in [(10.0, (40.0, 40.0), 2), (50.0, (80.0, 80.0), 10), (45.0, (40.0, 160.0), 15)] {
        let text = dumbbell("vcp", mbps, rtt, flows, 80, BUFFER);
        agree(&format!("vcp {mbps} {rtt:?} {flows}"), &text, &["f"], &["r1->r2"], bdp(mbps, rtt));
    }
}

/// Ten flows on a narrow line have the queue of the closed form, 32 ms; five on a wide one have none.
#[test]
fn abc_dumbbells() {
    for (mbps, rtt, flows) in [(10.0, (40.0, 40.0), 10), (100.0, (80.0, 80.0), 5)] {
        let text = dumbbell("abc", mbps, rtt, flows, 40, r#"{ kind = "droptail", limit = "3bdp" }"#);
        agree(&format!("abc {mbps} {rtt:?} {flows}"), &text, &["f"], &["r1->r2"], bdp(mbps, rtt));
    }
}

#[test]
fn rcp_dumbbells() {
    for (mbps, rtt, flows) in [(10.0, (40.0, 40.0), 2), (50.0, (80.0, 80.0), 10), (45.0, (40.0, 160.0), 15)] {
        let text = dumbbell("rcp", mbps, rtt, flows, 30, BUFFER);
        agree(&format!("rcp {mbps} {rtt:?} {flows}"), &text, &["f"], &["r1->r2"], bdp(mbps, rtt));
    }
}

/// Here the queue swings, by sqrt(2 N (C RTT + K)) / 2 packets where all flows are in step (Alizadeh and others, SIGCOMM
/// 2010, section 3.3). Those of a fluid are; packets of a flow come in bursts, so the flows reduce at different times. The
/// means are within half of that swing of each other.
#[test]
fn dctcp_over_steps() {
    for (mbps, rtt, flows, threshold) in [(100.0, 8.0, 2, 20), (50.0, 40.0, 5, 50), (100.0, 80.0, 20, 200)] {
        let queue = format!(r#"{{ kind = "step", threshold = "{threshold}pkt", limit = "2000pkt" }}"#);
        let text = dumbbell("dctcp", mbps, (rtt, rtt), flows, 40, &queue);
        let (model, truth) = (fluid(&text), packets(&text));
        let [rates, queues] = [
            [&model, &truth].map(|tables| rate(tables, "f")),
            [&model, &truth].map(|tables| of_link(tables, "r1->r2", "queue_mean_packets")),
        ];
        let swing = (2.0 * flows as f64 * (bdp(mbps, (rtt, rtt)) + threshold as f64)).sqrt() / 2.0;
        println!("dctcp {mbps} {rtt} {flows}: Mbit/s {rates:.3?}, queue {queues:.2?}, swing {swing:.1}");
        assert!((rates[0] / rates[1] - 1.0).abs() < 0.03, "{rates:?}");
        assert!((queues[0] - queues[1]).abs() < 0.5 * swing, "{queues:?}");
        assert_eq!(of_link(&model, "r1->r2", "drops_overflow"), 0.0);
        assert!(of_link(&model, "r1->r2", "marks") > 0.0);
    }
}

#[test]
fn reno_over_red() {
    let red = r#"{ kind = "red", min_th = "20pkt", max_th = "1000pkt", limit = "3000pkt" }"#;
    let text = dumbbell("sack", 100.0, (80.0, 80.0), 60, 20, red);
    for stack in ["ns2", "linux"] {
        let text = format!("stack = \"{stack}\"\n{text}");
        agree(&format!("red {stack}"), &text, &["f"], &["r1->r2"], bdp(100.0, (80.0, 80.0)));
    }
}

/// A queue with `mark = false` drops packets early even if they are ECN-capable.
#[test]
fn red_without_marks_drops() {
    let red = r#"{ kind = "red", min_th = "20pkt", limit = "3000pkt", mark = false }"#;
    let text = dumbbell("sack", 100.0, (80.0, 80.0), 60, 20, red) + "params = { ecn = true }\n";
    let tables = fluid(&text);
    let count = |column| of_link(&tables, "r1->r2", column);
    assert_eq!(count("marks"), 0.0);
    assert!(count("drops_early") > 100.0, "{}", count("drops_early"));
    let marking = fluid(&text.replace("mark = false", "mark = true"));
    assert!(of_link(&marking, "r1->r2", "marks") > 100.0);
    assert_eq!(of_link(&marking, "r1->r2", "drops_early"), 0.0);
}

const LOT: &str = r#"
duration = "40s"
warmup = "20s"
[topology]
kind = "parking_lot"
hops = 3
cross = 1
link = { rate = "20Mbit/s", delay = "10ms", queue = { kind = "droptail", limit = "100pkt" } }
[[link]]
name = "r2->r3"
rate = "10Mbit/s"
[[flows]]
name = "long"
count = 2
protocol = "xcp"
packet = "1000B"
[[flows]]
name = "one"
protocol = "xcp"
packet = "1000B"
path = "cross.1"
[[flows]]
name = "two"
count = 2
protocol = "xcp"
packet = "1000B"
path = "cross.2"
[[flows]]
name = "three"
protocol = "xcp"
packet = "1000B"
path = "cross.3"
"#;

#[test]
fn parking_lot() {
    agree("lot", LOT, &["long", "one", "two", "three"], &["r1->r2", "r2->r3", "r3->r4"], 250.0);
}

//! Equilibria of XCP if some flows are limited elsewhere (Low, Andrew, Wydrowski, INFOCOM 2005): the same numbers as the packet
//! simulator's `equilibrium.rs`, whose first comment has their sources. Also classes of flows that start and stop.
#![allow(clippy::print_stdout)] // `cargo test -- --nocapture` shows the numbers

mod common;

use std::fmt::Write;

use common::{fluid, numbers, texts};
use explicate_fluid::models::MODELS;

/// A free flow a -> r1 -> r2 -> z, and others that also cross r1 -> r2 and are limited by a separate link after it or before
/// it. Returns the rate of the free flow, Mbit/s.
fn settles(upstream: bool, capacity: f64, others: u32, total: f64, pools: &str) -> f64 {
    let mut text = "duration = \"60s\"\nwarmup = \"40s\"\n".to_string();
    let mut links = vec![("r1", "r2".to_string(), capacity, 25.0)];
    let (fast, own) = (10.0 * capacity, total / others as f64);
    links.extend([("a", "r1".into(), fast, 12.5), ("z", "r2".into(), fast, 12.5)]);
    // One link replaces those of all limited flows, which are equal.
    links.push(("m", if upstream { "r1" } else { "r2" }.into(), own * others as f64, 7.5));
    links.push(("m", "s".into(), fast, 5.0));
    links.push(("d", if upstream { "r2" } else { "r1" }.into(), fast, 12.5));
    for node in ["r1", "r2", "a", "z", "m", "s", "d"] {
        writeln!(text, "[[node]]\nname = {node:?}\nkind = \"router\"").unwrap();
    }
    for (from, to, rate, delay) in links {
        writeln!(text, "[[link]]\nfrom = {from:?}\nto = {to:?}\nduplex = true\nrate = \"{rate}Mbit/s\"").unwrap();
        writeln!(text, "delay = \"{delay}ms\"\nqueue = {{ kind = \"droptail\", limit = \"4.0bdp\" }}").unwrap();
        writeln!(text, "router = {{ kind = \"xcp\", pools = {pools:?} }}").unwrap();
    }
    let (from, to) = if upstream { ("s", "d") } else { ("d", "s") };
    for (name, count, from, to) in [("free", 1, "a", "z"), ("limited", others, from, to)] {
        write!(text, "[[flows]]\nname = {name:?}\ncount = {count}\nprotocol = \"xcp\"\npacket = \"500B\"\n").unwrap();
        writeln!(text, "from = {from:?}\nto = {to:?}\npaced = true").unwrap();
    }
    numbers(&fluid(&text).flows, "throughput_bps")[0] / 1e6
}

#[test]
fn shuffling_keeps_a_free_flow_below_its_share() {
    let mut wrong = Vec::new();
    for (upstream, capacity, others, total, pools, expected) in [
        (false, 40.0, 1, 10.0, "draft", 27.08),
        (false, 100.0, 1, 10.0, "draft", 80.14),
        (false, 100.0, 1, 50.0, "draft", 50.0),
        (false, 100.0, 10, 10.0, "draft", 71.69),
        (false, 100.0, 100, 10.0, "draft", 70.18),
        (true, 40.0, 1, 10.0, "draft", 28.85),
        (true, 100.0, 1, 10.0, "draft", 86.03),
        (true, 100.0, 10, 10.0, "draft", 76.11),
        (true, 40.0, 1, 10.0, "paper", 27.77),
        (true, 100.0, 1, 10.0, "paper", 85.07),
    ] {
        let got = settles(upstream, capacity, others, total, pools);
        let line =
            format!("{pools}, upstream {upstream}, C {capacity}, {others} others: {got:.2}, expected {expected}");
        println!("{line}");
        wrong.extend(((got / expected - 1.0).abs() > 0.01).then_some(line));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Two classes share a link; the second comes at 10 s, and leaves at 20 s.
#[test]
fn a_class_joins_and_leaves() {
    let text = r#"
duration = "30s"
[topology]
kind = "dumbbell"
pairs = 10
bottleneck = { rate = "50Mbit/s", delay = "18ms" }
[[flows]]
name = "stays"
count = 5
protocol = "xcp"
[[flows]]
name = "visits"
count = 5
protocol = "xcp"
start = "10s"
stop = "20s"
[sampling]
every = "1s"
of = ["throughput"]
"#;
    let tables = fluid(text);
    let objects = texts(&tables.samples, "object");
    let (times, values) = (numbers(&tables.samples, "time_s"), numbers(&tables.samples, "value"));
    let at = |name: &str, time: f64| {
        let found = (0..objects.len()).find(|&i| objects[i] == name && (times[i] - time).abs() < 0.01);
        found.map_or(f64::NAN, |i| values[i] / 1e6)
    };
    for (time, stays, visits) in [(9.0, 10.0, f64::NAN), (19.0, 5.0, 5.0), (29.0, 10.0, 0.0)] {
        let (a, b) = (at("stays.0", time), at("visits.0", time));
        assert!((a - stays).abs() < 0.1, "at {time} s: {a}");
        // Before it comes it has no samples.
        assert!(if visits.is_nan() { b.is_nan() } else { (b - visits).abs() < 0.1 }, "at {time} s: {b}");
    }
}

/// A fixed size is done when its last byte is acknowledged, at the rate that the link has.
#[test]
fn a_size_is_done() {
    let text = r#"
duration = "30s"
[topology]
kind = "dumbbell"
pairs = 1
bottleneck = { rate = "10Mbit/s", delay = "18ms" }
[[flows]]
name = "one"
protocol = "xcp"
size = "10MB"
"#;
    let tables = fluid(text);
    let (done, size) = (numbers(&tables.flows, "completion_s")[0], numbers(&tables.flows, "size_bytes")[0]);
    assert!((size - 1e7).abs() < 1.0);
    // 8.4 s at the full rate with headers, plus set-up and the first round trips.
    assert!((8.4..9.6).contains(&done), "{done}");
}

#[test]
fn every_model_is_of_a_protocol() {
    for model in MODELS {
        assert!(explicate_core::registry::protocol(model.protocol()).is_some(), "{}", model.protocol());
        assert!(!model.summary().is_empty());
    }
}

//! The metrics of a gateway: each is on the page and has a description, and the dashboard uses no other.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::both::{Both, MILLISECOND, path, simulate, text};
use super::network::address;
use super::scene::SECOND;
use crate::gateway::status;
use crate::metrics::text_of;

const PAGE: &str = include_str!("../../../../docs/gateway.md");
const DASHBOARD: &str = include_str!("../../../../packaging/grafana-gateway.json");

/// Names of metrics in a text.
fn names(text: &str) -> BTreeSet<String> {
    let is_part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let starts = text.match_indices("explicated_").map(|(at, _)| &text[at..]);
    starts.map(|rest| rest.chars().take_while(|c| is_part(*c)).collect()).collect()
}

/// What a gateway with all parts answers.
fn answer() -> String {
    let mut answer = String::new();
    simulate(async {
        let texts = [text(0, &[1], Some(address(1))), text(1, &[0], None)];
        let both = Both::of(texts, path(20 * MILLISECOND), 1, Vec::new());
        both.machines.iter().for_each(|machine| machine.start());
        both.connected(5 * SECOND).await;
        let (gateway, _) = both.machines[0].gateway().unwrap();
        let mut report = status::report(&gateway);
        report["capacity"] = json!({ "failure": null, "at_floor": false });
        answer = text_of(status::metrics(&report));
    });
    answer
}

#[test]
fn every_metric_is_on_the_page_and_the_dashboard_uses_no_other() {
    let answer = answer();
    let samples: String =
        answer.lines().filter(|line| !line.starts_with('#')).map(|line| format!("{line}\n")).collect();
    let all = names(&samples);
    assert!(all.len() > 30 && all.contains("explicated_gateway_limit_connections"), "{all:?}");
    assert!(!answer.contains("A variable of the class's"), "one has no description: {answer}");
    let rows = PAGE.lines().filter(|line| line.starts_with("| `explicated_"));
    let told: BTreeSet<String> = rows.flat_map(|line| names(line.split('|').nth(1).unwrap_or(""))).collect();
    let (missing, gone) = (all.difference(&told).collect::<Vec<_>>(), told.difference(&all).collect::<Vec<_>>());
    assert!(missing.is_empty() && gone.is_empty(), "not on the page: {missing:?}; on the page alone: {gone:?}");
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets: Vec<&str> = panels
        .iter()
        .flat_map(|panel| panel["targets"].as_array().into_iter().flatten())
        .map(|target| target["expr"].as_str().unwrap())
        .collect();
    assert!(targets.len() >= panels.len() && targets.len() >= 10, "{targets:?}");
    for expression in targets {
        let used = names(expression);
        assert!(!used.is_empty() && used.is_subset(&all), "{expression}");
    }
    assert!(names(DASHBOARD).is_subset(&all), "also in words");
}

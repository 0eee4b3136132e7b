//! What the tests of agreement share: run a scenario, look up cells of its tables.
#![allow(dead_code)] // each test file is a program of its own and uses a part

use std::path::Path;

use explicate_scenario::model::Scenario;
use explicate_scenario::tables::{Data, Table};
use explicate_sim::measure::{Tables, measure};
use explicate_sim::simulation::{Options, run_once};

/// Runs a scenario once. Panics with the scenario's problems if it has any.
pub(crate) fn run(text: &str) -> Outcome {
    run_with(text, &[])
}

/// Runs a scenario once with some keys overridden.
pub(crate) fn run_with(text: &str, overrides: &[(&str, &str)]) -> Outcome {
    let overrides: Vec<_> = overrides.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    let scenario = match Scenario::parse(text, "test.toml", Path::new("."), &overrides) {
        Ok(scenario) => scenario,
        Err(problems) => panic!("{problems}"),
    };
    let mut run = run_once(&scenario, 0, &Options::default(), &|_, _| true).unwrap();
    Outcome { tables: measure(&scenario, 0, &mut run, "test") }
}

/// The tables of one run.
pub(crate) struct Outcome {
    tables: Tables,
}

impl Outcome {
    /// A cell of the table of links.
    pub(crate) fn link(&self, link: &str, column: &str) -> f64 {
        rows(&self.tables.links, "link", link, column)[0]
    }
    /// Cells of the table of flows: those of a group.
    pub(crate) fn flows(&self, group: &str, column: &str) -> Vec<f64> {
        rows(&self.tables.flows, "group", group, column)
    }
    /// Packets dropped on any link in the whole run.
    pub(crate) fn drops(&self) -> f64 {
        numbers(&self.tables.links, "drops_total").iter().sum()
    }
    /// Samples of a variable of a link or flow from `from` (s) on.
    pub(crate) fn samples(&self, object: &str, variable: &str, from: f64) -> Vec<f64> {
        let table = &self.tables.samples;
        let (objects, variables) = (texts(table, "object"), texts(table, "variable"));
        let (times, values) = (numbers(table, "time_s"), numbers(table, "value"));
        let wanted = |i: &usize| objects[*i] == object && variables[*i] == variable && times[*i] >= from;
        (0..table.rows()).filter(wanted).map(|i| values[i]).collect()
    }
}

fn rows(table: &Table, key: &str, name: &str, column: &str) -> Vec<f64> {
    let values = numbers(table, column);
    let found: Vec<f64> = texts(table, key).iter().zip(values).filter(|(k, _)| *k == name).map(|(_, v)| v).collect();
    assert!(!found.is_empty(), "no row with {key} = {name}");
    found
}

fn texts<'a>(table: &'a Table, column: &str) -> &'a [String] {
    match table.get(column) {
        Some(Data::Str(values)) => values,
        _ => panic!("no text column {column}"),
    }
}

fn numbers(table: &Table, column: &str) -> Vec<f64> {
    match table.get(column) {
        Some(Data::F64(values)) => values.clone(),
        Some(Data::U64(values)) => values.iter().map(|&v| v as f64).collect(),
        _ => panic!("no column of numbers {column}"),
    }
}

/// Arithmetic mean.
pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Jain's index: 1 if all are equal, 1/n if one has all.
pub(crate) fn jain(values: &[f64]) -> f64 {
    let squares: f64 = values.iter().map(|v| v * v).sum();
    values.iter().sum::<f64>().powi(2) / (values.len() as f64 * squares)
}

/// A dumbbell of `flows` flows of 1000-byte packets: bottleneck `mbps` with a buffer of one bandwidth-delay product,
/// access links ten times as fast, round trips evenly spread over `rtt` ms (access 1 ms each way and more).
pub(crate) fn dumbbell(protocol: &str, mbps: f64, rtt: (f64, f64), flows: u32) -> String {
    let (from, to) = rtt;
    // Two access links and the bottleneck, both ways.
    let bottleneck = from / 2.0 - 2.0;
    let last = 1.0 + (to - from) / 4.0;
    format!(
        r#"
duration = "40s"
warmup = "20s"
[topology]
kind = "dumbbell"
pairs = {flows}
access = {{ rate = "{access}Mbit/s", delay = {{ from = "1ms", to = "{last}ms" }} }}
bottleneck = {{ rate = "{mbps}Mbit/s", delay = "{bottleneck}ms", queue = {{ kind = "droptail", limit = "1.0bdp" }} }}
[[flows]]
name = "f"
count = {flows}
protocol = "{protocol}"
packet = "1000B"
"#,
        access = 10.0 * mbps,
    )
}

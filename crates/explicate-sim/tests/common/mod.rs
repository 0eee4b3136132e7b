//! What these tests share: scenarios as text, runs, columns by name.
#![allow(dead_code, reason = "each test file uses a part")]

use std::path::Path;

use explicate_build::tables::{Data, Table};
use explicate_scenario::model::Scenario;
use explicate_sim::measure::{Tables, flow_names, link_names, measure};
use explicate_sim::packet_log::Selector;
use explicate_sim::simulation::{Options, Run, run_once};

/// Parses a scenario that is known to be good.
pub(crate) fn scenario(text: &str) -> Scenario {
    match Scenario::parse(text, "test.toml", Path::new("."), &[]) {
        Ok(scenario) => scenario,
        Err(problems) => panic!("{problems}"),
    }
}

/// Carries out the first run.
pub(crate) fn run(scenario: &Scenario, options: &Options) -> Run {
    match run_once(scenario, 0, options, &|_, _| true) {
        Ok(run) => run,
        Err(problem) => panic!("{problem}"),
    }
}

/// The tables of the first run.
pub(crate) fn tables(text: &str) -> Tables {
    let scenario = scenario(text);
    let mut run = run(&scenario, &Options::default());
    measure(&scenario, 0, &mut run, "test")
}

/// What tables hold, exact to the bit: NaN equals NaN.
pub(crate) fn fingerprint(tables: &Tables) -> String {
    format!("{:?} {:?} {:?} {:?}", tables.flows, tables.links, tables.samples, tables.run)
}

/// The fingerprint of the first run.
pub(crate) fn leaves(scenario: &Scenario, options: &Options) -> String {
    fingerprint(&measure(scenario, 0, &mut run(scenario, options), "test"))
}

/// Following packets and taking links apart changes nothing; returns the run's fingerprint.
pub(crate) fn is_exact(scenario: &Scenario) -> String {
    let reference = leaves(scenario, &Options::default());
    assert_eq!(leaves(scenario, &Options { no_fuse: true, ..Options::default() }), reference, "not fused");
    let follow = Some(Selector::default());
    assert_eq!(leaves(scenario, &Options { follow, ..Options::default() }), reference, "followed");
    reference
}

/// The packet log of the first run.
pub(crate) fn packet_log(scenario: &Scenario, options: Options) -> String {
    let mut run = run(scenario, &Options { follow: Some(Selector::default()), ..options });
    let (links, flows) = (link_names(scenario), flow_names(scenario, &run));
    run.log.as_mut().expect("followed").text(&links, &flows)
}

/// Asserts that all packets on these links have these TTLs.
pub(crate) fn have_ttls(scenario: &Scenario, options: Options, expected: &[(&str, u8)]) {
    let mut run =
        run(scenario, &Options { follow: Some(Selector { capture: true, ..Selector::default() }), ..options });
    let names = link_names(scenario);
    let captures = run.log.as_mut().expect("followed").captures();
    for (link, ttl) in expected {
        let all: Vec<u8> = captures.iter().filter(|c| names[c.link as usize] == *link).map(|c| c.bytes[8]).collect();
        assert!(all.len() > 50 && all.iter().all(|t| t == ttl), "{link}: {:?}", &all[..5.min(all.len())]);
    }
}

/// The numbers of a column.
pub(crate) fn numbers(table: &Table, column: &str) -> Vec<f64> {
    match table.get(column) {
        Some(Data::F64(v)) => v.clone(),
        Some(Data::U64(v)) => v.iter().map(|&x| x as f64).collect(),
        other => panic!("no numbers in `{column}`: {other:?}"),
    }
}

/// The number in the row whose `key` column holds `name`.
pub(crate) fn number(table: &Table, key: &str, name: &str, column: &str) -> f64 {
    let Some(Data::Str(names)) = table.get(key) else { panic!("no column `{key}`") };
    let row = names.iter().position(|n| n == name).unwrap_or_else(|| panic!("no {key} is called {name}"));
    numbers(table, column)[row]
}

/// Jain's fairness index.
pub(crate) fn jain(rates: &[f64]) -> f64 {
    let sum: f64 = rates.iter().sum();
    sum * sum / (rates.len() as f64 * rates.iter().map(|r| r * r).sum::<f64>())
}

//! What these tests share: scenarios as text, runs, columns by name.
#![allow(dead_code, reason = "each test file uses a part")]

use std::path::Path;

use explicate_build::tables::{Data, Table};
use explicate_scenario::model::Scenario;
use explicate_sim::measure::{Tables, measure};
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

//! What the tests share: runs of the fluid model, and columns by name.

use std::path::Path;

use explicate_build::tables::{Data, Table, Tables};
use explicate_fluid::check::check;
use explicate_fluid::run::run;
use explicate_scenario::model::Scenario;

/// The tables of a scenario that the model covers.
pub(crate) fn fluid(text: &str) -> Tables {
    let scenario = Scenario::parse_fluid(text, "test.toml", Path::new("."), &[]);
    let scenario = scenario.unwrap_or_else(|problems| panic!("{problems}"));
    check(&scenario, text, "test.toml", &[]).unwrap_or_else(|problems| panic!("{problems}"));
    run(&scenario, 0, "test", &|_| true).unwrap().tables
}

/// The numbers of a column.
pub(crate) fn numbers(table: &Table, column: &str) -> Vec<f64> {
    match table.get(column) {
        Some(Data::F64(v)) => v.clone(),
        Some(Data::U64(v)) => v.iter().map(|&x| x as f64).collect(),
        other => panic!("no numbers in `{column}`: {other:?}"),
    }
}

/// The texts of a column.
pub(crate) fn texts<'a>(table: &'a Table, column: &str) -> &'a [String] {
    match table.get(column) {
        Some(Data::Str(v)) => v,
        _ => panic!("no texts in `{column}`"),
    }
}

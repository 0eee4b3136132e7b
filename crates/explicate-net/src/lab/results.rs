//! Result tables as text: as aligned columns, as CSV and as JSON, in the simulator's columns.

use std::fmt::Write as _;

use explicate_build::tables::{Data, Table, Tables};
use serde_json::{Map, Value, json};

/// The tables by name.
pub fn named(tables: &Tables) -> [(&'static str, &Table); 4] {
    [("flows", &tables.flows), ("links", &tables.links), ("samples", &tables.samples), ("run", &tables.run)]
}

fn number(x: f64) -> Value {
    serde_json::Number::from_f64(x).map_or(Value::Null, Value::Number)
}

fn cell(data: &Data, row: usize) -> Value {
    match data {
        Data::Str(v) => Value::String(v[row].clone()),
        Data::F64(v) => number(v[row]),
        Data::U64(v) => json!(v[row]),
    }
}

/// The rows as objects.
pub fn to_json(table: &Table) -> Vec<Value> {
    let object = |row| {
        let cells = table.columns.iter().map(|(column, data)| (column.name.to_string(), cell(data, row)));
        Value::Object(cells.collect::<Map<String, Value>>())
    };
    (0..table.rows()).map(object).collect()
}

/// Aligned columns: those of `wanted`, of the rows for which `keep` is true.
pub fn to_text(table: &Table, wanted: &[&str], keep: impl Fn(usize) -> bool) -> String {
    let columns: Vec<_> = wanted.iter().filter_map(|w| table.columns.iter().find(|(c, _)| c.name == *w)).collect();
    let mut lines = vec![wanted.iter().map(|w| w.to_string()).collect::<Vec<_>>()];
    for row in (0..table.rows()).filter(|row| keep(*row)) {
        let show = |data: &Data| match data {
            Data::Str(v) => v[row].clone(),
            Data::F64(v) if v[row].is_nan() => "-".to_string(),
            Data::F64(v) if v[row].abs() >= 1000.0 => format!("{:.0}", v[row]),
            Data::F64(v) => format!("{:.3}", v[row]),
            Data::U64(v) => v[row].to_string(),
        };
        lines.push(columns.iter().map(|(_, data)| show(data)).collect());
    }
    let widths: Vec<usize> =
        (0..columns.len()).map(|i| lines.iter().map(|l| l[i].chars().count()).max().unwrap_or(0)).collect();
    let mut text = String::new();
    for line in lines {
        for (i, (cell, width)) in line.iter().zip(&widths).enumerate() {
            let _ = if i == 0 { write!(text, "{cell:width$}") } else { write!(text, "  {cell:>width$}") };
        }
        text.push('\n');
    }
    text
}

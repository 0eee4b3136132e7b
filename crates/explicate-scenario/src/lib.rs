//! Scenario files: types, units, errors that point at the line, JSON Schema; and the columns of result tables.

pub mod model;

//! Parameters that Python declares, and their values as Python objects.

use explicate_core::params::{Param, Unit, Values};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::machine::interned;

/// A parameter as Python declares it.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Declared {
    name: String,
    /// The name of a unit.
    unit: String,
    /// The words of a choice; otherwise empty.
    words: Vec<String>,
    default: f64,
    min: f64,
    max: f64,
    source: String,
    doc: String,
}

/// Parameters that live as long as the process.
pub(super) fn declared(given: Vec<Declared>) -> PyResult<&'static [Param]> {
    let mut params: Vec<Param> = Vec::new();
    for one in given {
        params.push(Param {
            name: interned(&one.name),
            unit: unit(&one)?,
            default: one.default,
            min: one.min,
            max: one.max,
            source: interned(&one.source),
            doc: interned(&one.doc),
        });
    }
    Ok(Vec::leak(params))
}

fn unit(given: &Declared) -> PyResult<Unit> {
    Ok(match given.unit.as_str() {
        "seconds" => Unit::Seconds,
        "bit/s" => Unit::BitsPerSecond,
        "bytes" => Unit::Bytes,
        "packets" => Unit::Packets,
        "number" => Unit::Number,
        "fraction" => Unit::Fraction,
        "metres" => Unit::Metres,
        "decibels" => Unit::Decibels,
        "flag" => Unit::Flag,
        "choice" => {
            let words: Vec<&'static str> = given.words.iter().map(|word| interned(word)).collect();
            Unit::Choice(Vec::leak(words))
        }
        other => {
            let known = "seconds, bit/s, bytes, packets, number, fraction, metres, decibels, flag, choice";
            let name = &given.name;
            return Err(PyValueError::new_err(format!(
                "parameter `{name}`: no unit is called {other:?}; there are {known}"
            )));
        }
    })
}

/// Values by name: flags as bools, choices as words, "auto" as None.
pub(super) fn as_dict<'py>(py: Python<'py>, params: &[Param], values: &Values) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for param in params {
        let value = values.get(params, param.name);
        let object = match param.unit {
            _ if value.is_nan() => py.None().into_bound(py),
            Unit::Flag => (value != 0.0).into_bound_py_any(py)?,
            Unit::Choice(words) => words.get(value as usize).into_bound_py_any(py)?,
            _ => value.into_bound_py_any(py)?,
        };
        dict.set_item(param.name, object)?;
    }
    Ok(dict)
}

//! Calls into a Python object that implements a part of a protocol, and the handling of its exceptions.

use std::any::Any;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Mutex, PoisonError};

use explicate_core::api::Probe;
use explicate_core::units::Time;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use super::facts::seconds;

/// An exception that leaves the simulator: callbacks return no error, so the run is unwound.
struct Raised(PyErr);

/// Calls `run`; returns an exception that a callback raised as the error.
pub(crate) fn catching<T>(run: impl FnOnce() -> T) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(run)).map_err(|thrown: Box<dyn Any + Send>| match thrown.downcast::<Raised>() {
        Ok(raised) => raised.0,
        Err(other) => resume_unwind(other),
    })
}

/// One Python object: a sender, a receiver or a router.
pub(super) struct Machine {
    object: Py<PyAny>,
    /// Its class, for messages.
    class: String,
    /// When it was last called.
    now: Time,
}

impl Machine {
    /// Creates an object of `class` by `make`.
    pub(super) fn new(
        py: Python<'_>,
        class: &Py<PyAny>,
        make: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<Py<PyAny>>,
    ) -> Machine {
        let bound = class.bind(py);
        let name = bound.getattr("__qualname__").and_then(|n| n.extract()).unwrap_or_else(|_| "its class".to_string());
        let mut machine = Machine { object: py.None(), class: name, now: Time::ZERO };
        machine.object = make(bound).unwrap_or_else(|error| machine.fail(py, error, "__init__"));
        machine
    }

    /// Ends the run with an exception, to which it adds where and when it was raised.
    fn fail(&self, py: Python<'_>, error: PyErr, callback: &str) -> ! {
        let at = seconds(self.now);
        let note = format!("in {}.{callback}, at {at} s of simulated time", self.class);
        // If the note cannot be added, the exception is still raised.
        let _ = error.value(py).call_method1("add_note", (note,));
        resume_unwind(Box::new(Raised(error)))
    }

    /// Records the time of a call.
    pub(super) fn at(&mut self, now: Time) -> &Machine {
        self.now = now;
        self
    }

    /// The value that `call` computes; an exception ends the run.
    pub(super) fn with<T>(&self, callback: &str, call: impl FnOnce(Python<'_>, &Bound<'_, PyAny>) -> PyResult<T>) -> T {
        Python::attach(|py| call(py, self.object.bind(py)).unwrap_or_else(|error| self.fail(py, error, callback)))
    }

    /// Reports the variables of the object.
    pub(super) fn probe(&self, put: Probe<'_>) {
        let variables = self.with("probe", |py, object| {
            let put = Py::new(py, Put::default())?;
            object.call_method1("probe", (put.clone_ref(py),))?;
            Ok(std::mem::take(&mut put.borrow_mut(py).0))
        });
        for (name, value) in variables {
            put(interned(&name), value);
        }
    }
}

/// The argument of `probe`: a function of a variable's name and value.
#[pyclass]
#[derive(Default)]
struct Put(Vec<(String, f64)>);

#[pymethods]
impl Put {
    fn __call__(&mut self, name: String, value: f64) {
        self.0.push((name, value));
    }
}

/// A text that lives as long as the process; equal ones are stored once.
pub(super) fn interned(text: &str) -> &'static str {
    static KEPT: Mutex<Option<HashMap<String, &'static str>>> = Mutex::new(None);
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    let kept = kept.get_or_insert_default();
    if let Some(found) = kept.get(text) {
        return found;
    }
    let leaked: &'static str = Box::leak(text.to_string().into_boxed_str());
    kept.insert(text.to_string(), leaked);
    leaked
}

/// Whether `class` overrides a method of `base`.
pub(super) fn overrides(py: Python<'_>, class: &Py<PyAny>, base: &Py<PyAny>, method: &str) -> PyResult<bool> {
    let class = class.bind(py);
    let own = class.getattr(method).map_err(|_| {
        PyTypeError::new_err(format!("{class} has no method {method}; derive it from explicate's classes"))
    })?;
    Ok(!own.is(&base.bind(py).getattr(method)?))
}

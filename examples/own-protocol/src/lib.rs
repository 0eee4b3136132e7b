//! A protocol in a crate of its own: what it takes to register it, for Rust and for Python.
//!
//! `cargo run` simulates `scenario.toml`. For Python, `cargo build --lib --features python` makes a module that has the engine
//! with this protocol in it; CONTRIBUTING.md says how Explicate is given it.

// The file of the protocol takes what Explicate's core has, which is `no_std`, from here too.
extern crate alloc;

mod aimd;

pub use aimd::Aimd;
use explicate_core::registry::{self, RegisterError};

/// Makes the protocol known by its name in this process.
pub fn register() -> Result<(), RegisterError> {
    registry::register(&Aimd)
}

/// The engine as a Python module.
#[cfg(feature = "python")]
#[pyo3::pymodule]
fn own_protocol(module: &pyo3::Bound<'_, pyo3::types::PyModule>) -> pyo3::PyResult<()> {
    register().map_err(|error| pyo3::exceptions::PyValueError::new_err(error.to_string()))?;
    explicate_py::add_engine(module)
}

//! A protocol in a crate of its own, registered for Rust and for Python.
//!
//! `cargo run -- scenario.toml` simulates a scenario. `cargo build --lib --features python` builds a Python module that
//! contains the engine with this protocol; docs/own-protocol.md explains how to use it.

// `aimd.rs` imports `alloc`, as the files of the core do, which is `no_std`. It compiles in both places.
extern crate alloc;

mod aimd;

pub use aimd::Aimd;
use explicate_core::registry::{self, RegisterError};

/// Registers the protocol in this process.
pub fn register() -> Result<(), RegisterError> {
    registry::register(&Aimd)
}

/// The engine as a Python module. Its name is that of the library.
#[cfg(feature = "python")]
#[pyo3::pymodule]
fn own_protocol(module: &pyo3::Bound<'_, pyo3::types::PyModule>) -> pyo3::PyResult<()> {
    register().map_err(|error| pyo3::exceptions::PyValueError::new_err(error.to_string()))?;
    explicate_py::add_engine(module)
}

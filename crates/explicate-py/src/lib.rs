//! Python binding: conversions only.
use pyo3::prelude::*;
#[pymodule]
mod _native {
    use super::*;
    #[pyfunction]
    fn version() -> &'static str {
        env!("CARGO_PKG_VERSION")
    }
}

//! Result tables as Arrow data, passed through the Arrow C stream interface.

use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{ArrayRef, Float64Array, RecordBatch, RecordBatchIterator, StringArray, UInt64Array};
use arrow_schema::{DataType, Field, Schema};
use explicate_build::tables::{Data, Table};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

/// A table that Python frames import as a whole.
#[pyclass(frozen, name = "Table", module = "explicate._native")]
pub(crate) struct ArrowTable(RecordBatch);

impl From<&Table> for ArrowTable {
    fn from(table: &Table) -> ArrowTable {
        let column = |data: &Data| -> (DataType, ArrayRef) {
            match data {
                Data::Str(v) => (DataType::Utf8, Arc::new(StringArray::from_iter_values(v))),
                Data::U64(v) => (DataType::UInt64, Arc::new(UInt64Array::from_iter_values(v.iter().copied()))),
                Data::F64(v) => {
                    let nullable = v.iter().map(|x| (!x.is_nan()).then_some(*x));
                    (DataType::Float64, Arc::new(nullable.collect::<Float64Array>()))
                }
            }
        };
        let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = table
            .columns
            .iter()
            .map(|(c, data)| {
                let (kind, array) = column(data);
                (Field::new(c.name, kind, true), array)
            })
            .unzip();
        let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays);
        ArrowTable(batch.expect("the columns of a table are of equal length"))
    }
}

#[pymethods]
impl ArrowTable {
    /// The stream; a requested schema is optional in the interface and is ignored.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let reader = RecordBatchIterator::new([Ok(self.0.clone())], self.0.schema());
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(reader)), c"arrow_array_stream")
    }
}

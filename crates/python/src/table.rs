// SPDX-License-Identifier: MIT OR Apache-2.0
//! A table in Python: Arrow columns, handed over by the Arrow PyCapsule interface, so that nobody copies them.

use arrow_array::{
    Array, RecordBatch, RecordBatchIterator,
    cast::AsArray,
    ffi_stream::FFI_ArrowArrayStream,
    types::{Float64Type, Int64Type},
};
use arrow_schema::{DataType, ffi::FFI_ArrowSchema};
use pyo3::{
    IntoPyObjectExt,
    exceptions::PyKeyError,
    prelude::*,
    types::{PyCapsule, PyDict, PyList},
};
use unspin_report::{Row, Table as Printed};

use crate::{columns, error::failed};

/// Rows of one kind, as Arrow columns: `pyarrow.table(table)`, `polars.DataFrame(table)` and everything else that takes the Arrow
/// PyCapsule interface gets them without a copy. `str(table)` is what `unspin lab` prints.
#[pyclass(frozen, module = "unspin_lab")]
pub struct Table {
    batch: RecordBatch,
    text: String,
}

impl Table {
    /// The table of these rows.
    ///
    /// # Errors
    /// A number that does not fit into 63 bits.
    pub fn of<R: Row>(rows: impl IntoIterator<Item = R>) -> PyResult<Table> {
        let printed = Printed::of("", rows);
        let batch = columns::batch::<R>(&printed.json_rows());
        let mut text = Vec::new();
        printed.write_text(&mut text)?;
        Ok(Table {
            batch: batch.map_err(|error| failed(&error))?,
            text: String::from_utf8_lossy(&text).trim_matches('\n').to_owned(),
        })
    }

    /// The table of these columns.
    pub fn of_batch(batch: RecordBatch) -> Table {
        Table {
            batch,
            text: String::new(),
        }
    }

    /// One value.
    fn value<'py>(
        &self,
        py: Python<'py>,
        row: usize,
        column: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        let array = self.batch.column(column);
        if array.is_null(row) {
            return Ok(py.None().into_bound(py));
        }
        match array.data_type() {
            DataType::Int64 => array
                .as_primitive::<Int64Type>()
                .value(row)
                .into_bound_py_any(py),
            DataType::Float64 => array
                .as_primitive::<Float64Type>()
                .value(row)
                .into_bound_py_any(py),
            DataType::Boolean => array.as_boolean().value(row).into_bound_py_any(py),
            _ => array.as_string::<i32>().value(row).into_bound_py_any(py),
        }
    }
}

#[pymethods]
impl Table {
    /// The number of rows.
    #[getter]
    fn num_rows(&self) -> usize {
        self.batch.num_rows()
    }

    /// The names of the columns, which are the keys of `--json`.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        let fields = self.batch.schema();
        let names = fields.fields().iter().map(|field| field.name().clone());
        names.collect()
    }

    /// What each column is, with its unit; also in the fields' metadata of the Arrow schema.
    fn describe<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let described = PyDict::new(py);
        for field in self.batch.schema().fields() {
            described.set_item(field.name(), columns::description(field))?;
        }
        Ok(described)
    }

    /// The table as `pyarrow.Table`, which shares its memory.
    fn to_arrow(of: Bound<'_, Self>) -> PyResult<Bound<'_, PyAny>> {
        let py = of.py();
        py.import("pyarrow")?.call_method1("table", (of,))
    }

    /// The table as `pandas.DataFrame` with Arrow's types, which shares its memory.
    fn to_pandas(of: Bound<'_, Self>) -> PyResult<Bound<'_, PyAny>> {
        let py = of.py();
        let types = PyDict::new(py);
        types.set_item("types_mapper", py.import("pandas")?.getattr("ArrowDtype")?)?;
        Table::to_arrow(of)?.call_method("to_pandas", (), Some(&types))
    }

    /// The table as `polars.DataFrame`, which shares its memory.
    fn to_polars(of: Bound<'_, Self>) -> PyResult<Bound<'_, PyAny>> {
        let py = of.py();
        py.import("polars")?.call_method1("DataFrame", (of,))
    }

    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }

    /// The values of a column.
    fn __getitem__<'py>(&self, py: Python<'py>, column: &str) -> PyResult<Bound<'py, PyList>> {
        let Ok(at) = self.batch.schema().index_of(column) else {
            let known = self.column_names().join(", ");
            return Err(PyKeyError::new_err(format!(
                "there is no column {column}; there are {known}"
            )));
        };
        let values: PyResult<Vec<_>> = (0..self.batch.num_rows())
            .map(|row| self.value(py, row, at))
            .collect();
        PyList::new(py, values?)
    }

    /// A dictionary for each row.
    fn to_pylist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let names = self.column_names();
        let rows = PyList::empty(py);
        for row in 0..self.batch.num_rows() {
            let values = PyDict::new(py);
            for (column, name) in names.iter().enumerate() {
                values.set_item(name, self.value(py, row, column)?)?;
            }
            rows.append(values)?;
        }
        Ok(rows)
    }

    fn __str__(&self) -> String {
        match self.text.is_empty() {
            true => self.__repr__(),
            false => self.text.clone(),
        }
    }

    fn __repr__(&self) -> String {
        let (rows, names) = (self.batch.num_rows(), self.column_names());
        format!("<unspin_lab.Table of {rows} rows: {}>", names.join(", "))
    }

    /// The Arrow PyCapsule interface: the rows. Whatever schema is asked for, they are as they are, which it allows.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let batches = [Ok(self.batch.clone())];
        let reader = RecordBatchIterator::new(batches, self.batch.schema());
        let stream = FFI_ArrowArrayStream::new(Box::new(reader));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    /// The Arrow PyCapsule interface: the columns' types.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.batch.schema().as_ref());
        let schema = schema.map_err(|error| failed(&error.to_string()))?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }
}

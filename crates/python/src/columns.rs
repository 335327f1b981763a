// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rows of a table, as `--json` prints them, as columns of Arrow. What a column is called, holds and means is what the row's
//! type says.

use std::{collections::HashMap, sync::Arc};

use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use serde_json::Value;
use unspin_report::{COMMIT, Row};

/// The key of a field's metadata that says what it is.
const DESCRIPTION: &str = "description";

/// The columns of these rows, which are those of `R` as a table has them.
///
/// # Errors
/// A value that is not of its column's type, in words.
pub fn batch<R: Row>(rows: &[Value]) -> Result<RecordBatch, String> {
    let schema = unspin_report::schema::<R>();
    let keys = schema["properties"].as_object();
    let fields: Vec<Field> = keys
        .into_iter()
        .flatten()
        .map(|(key, property)| field(key, property))
        .collect();
    let metadata = [("unspin.table", R::TABLE), ("unspin.commit", COMMIT)];
    let metadata = metadata.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let columns: Result<Vec<ArrayRef>, String> =
        fields.iter().map(|field| column(field, rows)).collect();
    let schema = Schema::new(fields).with_metadata(metadata.into());
    RecordBatch::try_new(Arc::new(schema), columns?).map_err(|error| error.to_string())
}

/// What a column is, in words.
pub fn description(field: &Field) -> &str {
    field.metadata().get(DESCRIPTION).map_or("", String::as_str)
}

/// A key of the row as a column.
fn field(key: &str, property: &Value) -> Field {
    let one = property["type"].as_str();
    let several = property["type"].as_array();
    let types: Vec<&str> = match several {
        Some(types) => types.iter().filter_map(Value::as_str).collect(),
        None => one.into_iter().collect(),
    };
    let kind = match types.iter().find(|kind| **kind != "null") {
        Some(&"integer") => DataType::Int64,
        Some(&"number") => DataType::Float64,
        Some(&"boolean") => DataType::Boolean,
        _ => DataType::Utf8,
    };
    // A number that is not finite is null in every row.
    let nullable = types.contains(&"null") || types.is_empty() || kind == DataType::Float64;
    let description = property["description"].as_str().unwrap_or_default();
    let metadata = HashMap::from([(DESCRIPTION.to_owned(), description.to_owned())]);
    Field::new(key, kind, nullable).with_metadata(metadata)
}

fn column(field: &Field, rows: &[Value]) -> Result<ArrayRef, String> {
    let key = field.name();
    let wrong = |value: &Value| format!("{key} cannot be {value}");
    macro_rules! values {
        ($array:ty, $read:expr) => {{
            let read = |row: &Value| match &row[key] {
                Value::Null => Ok(None),
                value => ($read)(value).map(Some).ok_or_else(|| wrong(value)),
            };
            let values: Result<Vec<_>, String> = rows.iter().map(read).collect();
            Arc::new(<$array>::from(values?)) as ArrayRef
        }};
    }
    Ok(match field.data_type() {
        DataType::Int64 => values!(Int64Array, |value: &Value| value.as_i64()),
        DataType::Float64 => values!(Float64Array, |value: &Value| value.as_f64()),
        DataType::Boolean => values!(BooleanArray, |value: &Value| value.as_bool()),
        _ => values!(StringArray, |value: &Value| value
            .as_str()
            .map(str::to_owned)),
    })
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The JSON Schema of a scenario, for editors, for the reference page and for messages.

use std::sync::LazyLock;

use schemars::{Schema, schema_for, transform::RecursiveTransform, transform::Transform};
use serde_json::Value;

use crate::file::File;

static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
    let mut schema = schema_for!(File);
    // What is `None` when absent has no default that could be written, and the defaults of a table are those of its keys.
    RecursiveTransform(|schema: &mut Schema| {
        if let Some(Value::Null | Value::Object(_)) = schema.get("default") {
            schema.remove("default");
        }
    })
    .transform(&mut schema);
    schema.to_value()
});

/// The JSON Schema (draft 2020-12) of a scenario file.
pub fn json_schema() -> &'static Value {
    &SCHEMA
}

/// The schema of one of the tables of a scenario file: `host`, `lab`, `vm`, or the file itself for "".
pub fn table_schema(name: &str) -> &'static Value {
    if name.is_empty() {
        return &SCHEMA;
    }
    let property = &SCHEMA["properties"][name];
    let reference = property["$ref"]
        .as_str()
        .or(property["items"]["$ref"].as_str());
    let definition = reference.and_then(|path| path.rsplit('/').next());
    &SCHEMA["$defs"][definition.unwrap_or_default()]
}

/// Whether a table, named as in [`table_schema`], has that key.
pub(crate) fn has_key(table: &str, key: &str) -> bool {
    table_schema(table)["properties"].get(key).is_some()
}

/// What the value of a table's key may be, in words.
pub(crate) fn words_of(table: &str, key: &str) -> String {
    value_words(&table_schema(table)["properties"][key])
}

/// What a value of this schema, a part of [`json_schema`], may be, in words.
pub fn value_words(schema: &Value) -> String {
    if let Some(name) = schema["$ref"]
        .as_str()
        .and_then(|path| path.rsplit('/').next())
    {
        return value_words(&SCHEMA["$defs"][name]);
    }
    if let Some(title) = schema["title"].as_str() {
        return title.to_owned();
    }
    if schema["type"] == "boolean" {
        return "`true` or `false`".to_owned();
    }
    // Words with a description each, and words without.
    let each = schema["oneOf"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|word| &word["const"]);
    let words: Vec<String> = each
        .chain(schema["enum"].as_array().into_iter().flatten())
        .filter_map(Value::as_str)
        .map(|word| format!("`{word}`"))
        .collect();
    format!("one of {}", words.join(", "))
}

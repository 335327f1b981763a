// SPDX-License-Identifier: MIT OR Apache-2.0
//! A scenario back to TOML, in one canonical form, so that a run can print exactly what it did and name it.
//!
//! The form is our own, not the toml crate's: hashes of recorded runs are of it.

use std::fmt::{self, Write};

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::model::Scenario;

impl Scenario {
    /// The canonical text: every key, in order of the fields of the tables. Reading it back gives an equal scenario.
    pub fn to_toml(&self) -> String {
        let mut text = String::new();
        // Every table is a struct whose values are numbers, words and tables of these, which always make a JSON object; and
        // writing to a String cannot fail.
        if let Ok(Value::Object(file)) = serde_json::to_value(self.to_file()) {
            let _ = write_file(&file, &mut text);
        }
        text
    }

    /// SHA-256 of the canonical text, in hexadecimal: equal for two scenarios exactly when they say the same.
    pub fn hash(&self) -> String {
        Sha256::digest(self.to_toml())
            .iter()
            .fold(String::new(), |mut text, byte| {
                let _ = write!(text, "{byte:02x}");
                text
            })
    }
}

/// The keys of the top, then `[table]`s with their own as `[table.below]`, and `[[group]]`s with theirs on one line.
fn write_file(file: &Map<String, Value>, out: &mut String) -> fmt::Result {
    write_keys(file.iter().filter(|(_, value)| !is_table(value)), out)?;
    for (name, value) in file {
        match value {
            Value::Object(table) => {
                writeln!(out, "\n[{name}]")?;
                write_keys(table.iter().filter(|(_, value)| !value.is_object()), out)?;
                for (below, value) in table {
                    let table = value.as_object().filter(|table| !table.is_empty());
                    if let Some(table) = table {
                        writeln!(out, "\n[{name}.{below}]")?;
                        write_keys(table.iter(), out)?;
                    }
                }
            }
            Value::Array(groups) if is_table(value) => {
                for group in groups.iter().filter_map(Value::as_object) {
                    writeln!(out, "\n[[{name}]]")?;
                    write_keys(group.iter(), out)?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Whether a key of the top has a head of its own.
fn is_table(value: &Value) -> bool {
    value.is_object()
        || value
            .as_array()
            .is_some_and(|values| values.iter().any(Value::is_object))
}

/// `key = value`, a line for each; nothing for what is absent: no value, or a list without any.
fn write_keys<'a>(
    keys: impl Iterator<Item = (&'a String, &'a Value)>,
    out: &mut String,
) -> fmt::Result {
    for (key, value) in keys {
        match value {
            Value::Null => {}
            Value::Array(values) if values.is_empty() => {}
            _ => writeln!(out, "{key} = {}", in_line(value))?,
        }
    }
    Ok(())
}

/// A value on one line. No text in a scenario needs an escape, so JSON's form of it is TOML's.
fn in_line(value: &Value) -> String {
    let joined = |values: Vec<String>| values.join(", ");
    match value {
        Value::Array(values) => format!("[{}]", joined(values.iter().map(in_line).collect())),
        Value::Object(table) => {
            let keys = table
                .iter()
                .map(|(key, value)| format!("{key} = {}", in_line(value)));
            format!("{{ {} }}", joined(keys.collect()))
        }
        value => value.to_string(),
    }
}

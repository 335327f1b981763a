// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tables of `--json` and their keys: docs/reference/json.md, and the same for programs.

use std::{collections::BTreeMap, fmt::Write};

use serde_json::{Value, json};
use unspin_report::{FORMAT_VERSION, RegisteredRow, registered_rows};

/// Every table with the JSON Schema of its rows.
pub fn schemas() -> Value {
    let tables: Vec<Value> = registered_rows()
        .iter()
        .map(|row| json!({"table": row.table, "commands": row.commands, "row": (row.schema)()}))
        .collect();
    json!({"format_version": FORMAT_VERSION, "tables": tables})
}

/// Every table as a page. Writing to a string does not fail.
pub fn page() -> String {
    let mut out = format!(
        "# What --json prints\n\nWritten by `unspin help --tables --markdown`; a test fails while this page says something \
         else. `unspin help --tables` prints the same as JSON Schema.\n\nOne object: `format_version` (now {FORMAT_VERSION}; it \
         rises when a key or a table goes, or is called or means something else, not when one comes), `command`, `commit` \
         (what the binary was built from), `machine` (where it ran, or was recorded), `rows`. A row is flat: `table` says which \
         table it is of, the other keys are below. What is not known, and a number that is not finite, is null.\n"
    );
    let mut by_command: BTreeMap<&str, Vec<&RegisteredRow>> = BTreeMap::new();
    for row in registered_rows() {
        for command in row.commands {
            by_command.entry(command).or_default().push(row);
        }
    }
    for (command, mut rows) in by_command {
        rows.sort_by_key(|row| row.table);
        let _ = write!(out, "\n## {command}\n");
        for row in rows {
            table(row, command, &mut out);
        }
    }
    out
}

/// A table of one command; its keys where its first command is.
fn table(row: &RegisteredRow, command: &str, out: &mut String) {
    let schema = (row.schema)();
    let first = row.commands[0];
    let _ = write!(out, "\n### {}\n\n", row.table);
    if first != command {
        let _ = writeln!(out, "As `{}` of `{first}`.", row.table);
        return;
    }
    let _ = writeln!(
        out,
        "{}\n\n| key | value | what it says |\n|---|---|---|",
        words(&schema)
    );
    for (key, property) in schema["properties"].as_object().into_iter().flatten() {
        let _ = writeln!(
            out,
            "| `{key}` | {} | {} |",
            kinds(property),
            words(property)
        );
    }
}

/// What stands above it in the source, on one line.
fn words(schema: &Value) -> String {
    let words = schema["description"].as_str().unwrap_or_default();
    words
        .replace('\n', " ")
        .replace('|', "\\|")
        .replace('<', "&lt;")
}

/// What a value may be.
fn kinds(property: &Value) -> String {
    let kind = &property["type"];
    let kinds = kind
        .as_array()
        .map_or(std::slice::from_ref(kind), Vec::as_slice);
    let kinds: Vec<&str> = kinds
        .iter()
        .map(|kind| match kind.as_str() {
            Some("string") => "text",
            Some("integer") => "integer",
            Some("number") => "number",
            Some("boolean") => "true or false",
            Some("null") => "null",
            _ => "?",
        })
        .collect();
    kinds.join(" or ")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_key_is_said_and_every_column_is_a_key() {
        let mut seen = BTreeSet::new();
        for row in registered_rows() {
            let schema = (row.schema)();
            let at = format!("{:?} {}", row.commands, row.table);
            assert!(!words(&schema).is_empty(), "{at}: nothing is said");
            let properties = schema["properties"].as_object().expect("a struct");
            for (key, property) in properties {
                assert!(!words(property).is_empty(), "{at}: {key} is not said");
                assert!(!kinds(property).contains('?'), "{at}: {key} is not flat");
            }
            for column in row.columns {
                assert!(properties.contains_key(column.key), "{at}: {}", column.key);
            }
            for command in row.commands {
                assert!(seen.insert((command, row.table)), "{at}: twice");
            }
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The JSON Schema of scenarios as a page of Markdown: docs/reference/scenario.md.

use std::fmt::Write;

use serde_json::{Map, Value};

/// Tables of a scenario in the order of the page: heading, definition of the schema (none: the top).
const TABLES: [(&str, Option<&str>); 4] = [
    ("At the top", None),
    ("[host]", Some("Host")),
    ("[lab]", Some("LabSettings")),
    ("[[vm]]", Some("Vm")),
];

/// The page. Writing to a string does not fail.
pub fn page(schema: &Value) -> String {
    let mut out = String::from(
        "# Scenario reference\n\nWritten by `unspin scenario schema --markdown`; a test fails while this page says something \
         else. A key that is none, or a value that cannot be, is refused with its line and column.\n",
    );
    for (heading, definition) in TABLES {
        let table = definition.map_or(schema, |name| &schema["$defs"][name]);
        let required: Vec<&str> = table["required"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let _ = writeln!(
            out,
            "\n## {heading}\n\n| key | value | what it says |\n|---|---|---|"
        );
        for (key, property) in table["properties"].as_object().into_iter().flatten() {
            if matches!(key.as_str(), "host" | "lab" | "vm") && definition.is_none() {
                continue;
            }
            let must = if required.contains(&key.as_str()) {
                " (required)"
            } else {
                ""
            };
            let what = property["description"]
                .as_str()
                .unwrap_or_default()
                .replace('\n', " ");
            let value = value_of(property, schema).replace('|', "\\|");
            let _ = writeln!(
                out,
                "| `{key}`{must} | {value} | {} |",
                what.replace('|', "\\|")
            );
        }
    }
    out
}

/// What a value may be, in words.
fn value_of(property: &Value, schema: &Value) -> String {
    if let Some(name) = property["$ref"].as_str() {
        let name = name.rsplit('/').next().unwrap_or_default();
        return value_of(&schema["$defs"][name], schema);
    }
    for choice in ["anyOf", "oneOf"] {
        if let Some(choices) = property[choice].as_array() {
            let words: Vec<String> = choices
                .iter()
                .filter(|choice| choice["type"] != "null")
                .map(|choice| value_of(choice, schema))
                .collect();
            return words.join(", or ");
        }
    }
    if let Some(constant) = property["const"].as_str() {
        return format!("`{constant}`");
    }
    if let Some(words) = property["enum"].as_array() {
        let words: Vec<String> = words
            .iter()
            .filter_map(Value::as_str)
            .map(|word| format!("`{word}`"))
            .collect();
        return words.join(", ");
    }
    match kind(property) {
        "integer" | "number" => number(property),
        "boolean" => "`true` or `false`".to_owned(),
        "array" => format!("a list: {}", value_of(&property["items"], schema)),
        "object" => object(property, schema),
        _ if property["pattern"]
            .as_str()
            .is_some_and(|pattern| pattern.contains("loops")) =>
        {
            "a time or work: `\"6us\"`, `\"3000 loops\"`".to_owned()
        }
        _ if property["pattern"]
            .as_str()
            .is_some_and(|pattern| pattern.contains("ms|s")) =>
        {
            "a time: `\"250ms\"`".to_owned()
        }
        _ => "text".to_owned(),
    }
}

fn kind(property: &Value) -> &str {
    let kinds = property["type"].as_array();
    kinds
        .and_then(|kinds| kinds.iter().find(|kind| *kind != "null"))
        .unwrap_or(&property["type"])
        .as_str()
        .unwrap_or_default()
}

fn number(property: &Value) -> String {
    match (&property["minimum"], &property["maximum"]) {
        (Value::Null, Value::Null) => "a number".to_owned(),
        (low, Value::Null) => format!("{low} or more"),
        (Value::Null, high) => format!("up to {high}"),
        (low, high) => format!("{low} to {high}"),
    }
}

fn object(property: &Value, schema: &Value) -> String {
    if property["additionalProperties"].is_object() {
        return "a table of names and numbers".to_owned();
    }
    let none = Map::new();
    let keys = property["properties"].as_object().unwrap_or(&none);
    let keys: Vec<String> = keys
        .iter()
        .map(|(key, value)| format!("`{key}`: {}", value_of(value, schema)))
        .collect();
    format!("a table {{ {} }}", keys.join("; "))
}

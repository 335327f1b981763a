// SPDX-License-Identifier: MIT OR Apache-2.0
//! The JSON Schema of scenarios as a page of Markdown: docs/reference/scenario.md.

use std::fmt::Write;

use serde_json::Value;
use unspin_scenario::{json_schema, table_schema, value_words};

/// Headings of the page in their order, and the tables of a scenario file.
const TABLES: [(&str, &str); 4] = [
    ("At the top", ""),
    ("[host]", "host"),
    ("[lab]", "lab"),
    ("[[vm]]", "vm"),
];

/// The page. Writing to a string does not fail.
pub fn page() -> String {
    let mut out = String::from(
        "# Scenario reference\n\nWritten by `unspin scenario schema --markdown`; a test fails while this page says something \
         else. A key that is none, or a value that cannot be, is refused with its line and column.\n",
    );
    for (heading, table) in TABLES {
        let schema = table_schema(table);
        let required: Vec<&str> = schema["required"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let _ = writeln!(
            out,
            "\n## {heading}\n\n| key | value | when absent | what it says |\n|---|---|---|---|"
        );
        for (key, property) in schema["properties"].as_object().into_iter().flatten() {
            if table.is_empty() && TABLES.iter().any(|(_, name)| name == key) {
                continue;
            }
            let absent = match &property["default"] {
                _ if required.contains(&key.as_str()) => "required".to_owned(),
                Value::Null => String::new(),
                Value::Array(values) if values.is_empty() => String::new(),
                default => format!("`{default}`"),
            };
            let cells = [value_words(property), absent, what_it_says(property)];
            let [value, absent, what] =
                cells.map(|cell| cell.replace('\n', " ").replace('|', "\\|"));
            let _ = writeln!(out, "| `{key}` | {value} | {absent} | {what} |");
        }
    }
    out
}

/// What a key is for and, where its values are words with a meaning each, what these mean.
fn what_it_says(property: &Value) -> String {
    let description = |schema: &Value| {
        schema["description"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    let mut text = description(property);
    let definition = property["$ref"]
        .as_str()
        .and_then(|path| path.rsplit('/').next());
    let words = &json_schema()["$defs"][definition.unwrap_or_default()]["oneOf"];
    for word in words.as_array().into_iter().flatten() {
        let _ = write!(
            text,
            " `{}`: {}",
            word["const"].as_str().unwrap_or_default(),
            description(word)
        );
    }
    text
}

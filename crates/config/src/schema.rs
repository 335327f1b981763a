// SPDX-License-Identifier: MIT OR Apache-2.0
//! The configuration's JSON Schema, and what follows from it: the words of messages, and the file in which nothing is set.

use std::{fmt::Write, sync::LazyLock};

use schemars::schema_for;
use serde_json::Value;

use crate::model::Config;

/// Width of comments; characters.
const WIDTH: usize = 100;

static SCHEMA: LazyLock<Value> = LazyLock::new(|| schema_for!(Config).to_value());

/// What the value of a table's key may be.
pub fn words_of(table: &str, key: &str) -> String {
    let title = &table_schema(table)["properties"][key]["title"];
    title.as_str().unwrap_or("a value").to_owned()
}

/// The schema of `[serve]` or `[steer]`.
fn table_schema(table: &str) -> &'static Value {
    let reference = SCHEMA["properties"][table]["$ref"].as_str();
    let definition = reference.and_then(|path| path.rsplit('/').next());
    &SCHEMA["$defs"][definition.unwrap_or_default()]
}

/// The file in which every key stands, with what it says and its default, and none is set.
pub fn default_text() -> String {
    let mut out = String::from(
        "# What `unspin serve` and `unspin steer` do unless their command line says otherwise, and what the services\n\
         # unspin-watch and unspin-steer do. A key is the option of the same name. Every value below is the default, or an\n\
         # example where there is none. A key or a value that is not known is refused: `unspin config check`.\n",
    );
    let defaults = serde_json::to_value(Config::default()).unwrap_or_default();
    for (table, of_table) in SCHEMA["properties"].as_object().into_iter().flatten() {
        let about = of_table["description"].as_str().unwrap_or_default();
        let _ = write!(out, "\n# {about}\n[{table}]\n");
        let keys = table_schema(table)["properties"].as_object();
        for (key, property) in keys.into_iter().flatten() {
            out.push('\n');
            comment(
                property["description"].as_str().unwrap_or_default(),
                &mut out,
            );
            let default = &defaults[table][key];
            let unset = match default {
                Value::Null => true,
                Value::Array(values) => values.is_empty(),
                _ => false,
            };
            let shown = if unset {
                &property["examples"][0]
            } else {
                default
            };
            // Strings, numbers, booleans and arrays of strings are written alike in JSON and TOML.
            let shown = shown.to_string().replace("\",\"", "\", \"");
            let _ = writeln!(out, "#{key} = {shown}");
        }
    }
    out
}

/// `text` as comments.
fn comment(text: &str, out: &mut String) {
    let mut line = String::from("#");
    for word in text.split_whitespace() {
        if line.len() + 1 + word.len() > WIDTH {
            let _ = writeln!(out, "{line}");
            line = String::from("#");
        }
        line.push(' ');
        line.push_str(word);
    }
    let _ = writeln!(out, "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_sets_nothing_and_each_line_of_it_is_valid() {
        let text = default_text();
        assert_eq!(
            toml::from_str::<Config>(&text).expect("valid"),
            Config::default()
        );
        let mut set = 0;
        for table in ["serve", "steer"] {
            let from = text.find(&format!("[{table}]")).expect("a table");
            let lines = text[from..].lines().skip(1);
            for line in lines.take_while(|line| !line.starts_with('[')) {
                let value = line.strip_prefix('#').filter(|line| !line.starts_with(' '));
                let Some(value) = value else { continue };
                let one = format!("[{table}]\n{value}\n");
                assert!(toml::from_str::<Config>(&one).is_ok(), "{one}");
                set += 1;
            }
        }
        assert_eq!(set, 14);
    }

    #[test]
    fn every_key_says_what_it_is() {
        for table in ["serve", "steer"] {
            let keys = table_schema(table)["properties"].as_object();
            for (key, property) in keys.expect("keys") {
                assert!(property["description"].is_string(), "{table}.{key}");
            }
        }
        assert!(words_of("serve", "listen").contains("a port"));
    }
}

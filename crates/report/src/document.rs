// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a command prints: its tables, in order, for people or as one JSON object.

use std::io::{self, Write};

use serde_json::{Map, Value, json};

use crate::{COMMIT, table::Table};

/// The version of what `--json` prints. It rises when a key or a table goes, or is called or means something else; a new key
/// leaves it as it is. docs/reference/json.md says what the keys are.
pub const FORMAT_VERSION: u32 = 1;

/// The result of one command.
#[derive(Clone, Debug)]
pub struct Document {
    command: String,
    machine: String,
    parts: Vec<Part>,
}

#[derive(Clone, Debug)]
enum Part {
    Table(Table),
    Note(String),
}

impl Document {
    /// An empty one. `command` is what made it, such as `vm run`; `machine` is the one that was measured, in one line.
    pub fn new(command: &str, machine: impl ToString) -> Document {
        Document {
            command: command.to_owned(),
            machine: machine.to_string(),
            parts: Vec::new(),
        }
    }

    /// Adds a table.
    ///
    /// # Panics
    /// In a debug build, when the type of its rows does not name this command.
    pub fn table(&mut self, table: Table) {
        debug_assert!(
            table.is_of(&self.command),
            "{}: a table that is not in its reference: {table:?}",
            self.command
        );
        self.parts.push(Part::Table(table));
    }

    /// Adds a line for people. It is not in the JSON, so nothing may be said only here.
    pub fn note(&mut self, line: impl Into<String>) {
        self.parts.push(Part::Note(line.into()));
    }

    /// `{"format_version", "command", "commit", "machine", "rows": [...]}` on one line. Rows are flat; the first key of each, `table`,
    /// says which table it belongs to.
    ///
    /// # Errors
    /// When `out` cannot be written.
    pub fn write_json(&self, out: &mut dyn Write) -> io::Result<()> {
        let tables = self.parts.iter().filter_map(|part| match part {
            Part::Table(table) => Some(table),
            Part::Note(_) => None,
        });
        let rows: Vec<Value> = tables.flat_map(Table::json_rows).collect();
        let mut object = Map::new();
        object.insert("format_version".into(), json!(FORMAT_VERSION));
        object.insert("command".into(), json!(self.command));
        object.insert("commit".into(), json!(COMMIT));
        object.insert("machine".into(), json!(self.machine));
        object.insert("rows".into(), Value::Array(rows));
        writeln!(out, "{}", Value::Object(object))
    }

    /// Tables and notes in the order in which they were added, the machine and the commit below them.
    ///
    /// # Errors
    /// When `out` cannot be written.
    pub fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        for part in &self.parts {
            match part {
                Part::Table(table) => table.write_text(out)?,
                Part::Note(line) => writeln!(out, "{line}")?,
            }
        }
        writeln!(out, "\n{} (unspin {COMMIT})", self.machine)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Machine;

    crate::row! {
        "one", ["vm run"];
        /// A number.
        struct OneRow {
            /// It.
            number: u64 = ("no.", Count),
        }
    }

    crate::row! {
        "other", ["vm run"];
        /// Another number.
        struct OtherRow {
            /// It.
            number: u64 = ("no.", Count),
        }
    }

    fn document() -> Document {
        let machine = Machine {
            processor: "P".into(),
            cpus: 2,
            kernel: "7.2".into(),
            testbed: false,
        };
        let mut document = Document::new("vm run", machine);
        document.note("first");
        document.table(Table::of("", [OneRow { number: 7 }]));
        document.table(Table::of("", [OtherRow { number: 7 }]));
        document
    }

    #[test]
    fn json_is_one_object_with_all_rows() {
        let mut out = Vec::new();
        document().write_json(&mut out).expect("a Vec takes it");
        let text = String::from_utf8(out).expect("UTF-8");
        assert_eq!(text.matches('\n').count(), 1);
        let object: Value = serde_json::from_str(&text).expect("JSON");
        let keys: Vec<_> = object.as_object().expect("an object").keys().collect();
        assert_eq!(
            keys,
            ["format_version", "command", "commit", "machine", "rows"]
        );
        assert_eq!(object["command"], "vm run");
        assert_eq!(object["commit"], COMMIT);
        assert_eq!(object["machine"], "P, 2 CPUs, Linux 7.2");
        assert_eq!(
            object["rows"],
            json!([{"table": "one", "number": 7}, {"table": "other", "number": 7}])
        );
    }

    #[test]
    fn text_keeps_the_order() {
        let mut out = Vec::new();
        document().write_text(&mut out).expect("a Vec takes it");
        let text = String::from_utf8(out).expect("UTF-8");
        assert!(text.starts_with("first\n"), "{text}");
        assert!(text.ends_with(&format!("\nP, 2 CPUs, Linux 7.2 (unspin {COMMIT})\n")));
    }
}

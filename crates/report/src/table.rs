// SPDX-License-Identifier: MIT OR Apache-2.0
//! A table that prints for people or as one JSON object. The same cells feed both.

use std::io::{self, Write};

use comfy_table::{CellAlignment, ContentArrangement, presets::UTF8_HORIZONTAL_ONLY};
use serde_json::{Map, Value, json};

use crate::{COMMIT, machine::Machine};

/// What a number counts; it decides how people see it. JSON always has the full number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Text.
    Text,
    /// A whole number or a rate: no fraction, thousands apart.
    Count,
    /// A share of 100: one digit after the point.
    Percent,
    /// A ratio: three digits after the point.
    Ratio,
    /// Nanoseconds in the cell; people see ns, us, ms or s.
    Nanoseconds,
}

/// One column: its key in JSON, its header for people.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Spelled out, units last: `ops_per_second`.
    pub key: &'static str,
    /// Short, for people.
    pub header: &'static str,
    /// What its numbers count.
    pub unit: Unit,
}

/// One cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Nothing is known: `-` for people, null in JSON.
    Unknown,
    /// Text.
    Text(String),
    /// A number.
    Integer(u64),
    /// A number; one that is not finite is null in JSON.
    Real(f64),
}

/// Rows under columns, with the command that made them.
#[derive(Clone, Debug)]
pub struct Table {
    command: String,
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
}

impl Column {
    /// A column; see the fields.
    pub const fn new(key: &'static str, header: &'static str, unit: Unit) -> Column {
        Column { key, header, unit }
    }
}

impl Table {
    /// An empty table. `command` is what made it, such as `vm run`.
    pub fn new(command: &str, columns: &[Column]) -> Table {
        Table {
            command: command.to_owned(),
            columns: columns.to_vec(),
            rows: Vec::new(),
        }
    }

    /// Adds a row.
    ///
    /// # Panics
    /// When it has not one cell for each column: that is a mistake of the caller.
    pub fn push(&mut self, row: Vec<Cell>) {
        assert_eq!(row.len(), self.columns.len(), "a cell for each column");
        self.rows.push(row);
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The rows as flat JSON objects, keys in the order of the columns.
    pub fn json_rows(&self) -> Vec<Value> {
        let row = |cells: &Vec<Cell>| {
            let pairs = self.columns.iter().zip(cells);
            Value::Object(
                pairs
                    .map(|(c, cell)| (c.key.to_owned(), cell.json()))
                    .collect(),
            )
        };
        self.rows.iter().map(row).collect()
    }

    /// `{"command", "commit", "machine", "rows": [...]}` on one line.
    ///
    /// # Errors
    /// When `out` cannot be written.
    pub fn write_json(&self, machine: &Machine, out: &mut dyn Write) -> io::Result<()> {
        let object = json_object(&self.command, machine, self.json_rows());
        writeln!(out, "{object}")
    }

    /// For people: headers, aligned columns, numbers to the right.
    ///
    /// # Errors
    /// When `out` cannot be written.
    pub fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut table = comfy_table::Table::new();
        table
            .load_preset(UTF8_HORIZONTAL_ONLY)
            .set_content_arrangement(ContentArrangement::Disabled)
            .set_header(self.columns.iter().map(|column| column.header));
        for row in &self.rows {
            table.add_row(
                row.iter()
                    .zip(&self.columns)
                    .map(|(c, column)| c.text(column.unit)),
            );
        }
        for (index, column) in self.columns.iter().enumerate() {
            if let (true, Some(shown)) = (column.unit != Unit::Text, table.column_mut(index)) {
                shown.set_cell_alignment(CellAlignment::Right);
            }
        }
        for line in table.lines() {
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// The one object that `--json` prints.
pub(crate) fn json_object(command: &str, machine: &Machine, rows: Vec<Value>) -> Value {
    let mut object = Map::new();
    object.insert("command".into(), json!(command));
    object.insert("commit".into(), json!(COMMIT));
    object.insert("machine".into(), json!(machine.to_string()));
    object.insert("rows".into(), Value::Array(rows));
    Value::Object(object)
}

impl Cell {
    fn json(&self) -> Value {
        match self {
            Cell::Unknown => Value::Null,
            Cell::Text(text) => json!(text),
            Cell::Integer(value) => json!(value),
            // serde_json turns what is not finite into null.
            Cell::Real(value) => json!(value),
        }
    }

    fn text(&self, unit: Unit) -> String {
        let value = match self {
            Cell::Unknown => return "-".into(),
            Cell::Text(text) => return text.clone(),
            Cell::Integer(value) if unit == Unit::Count => return thousands(*value as f64),
            Cell::Integer(value) => *value as f64,
            Cell::Real(value) => *value,
        };
        if !value.is_finite() {
            return "-".into();
        }
        match unit {
            Unit::Text => value.to_string(),
            Unit::Count => thousands(value),
            Unit::Percent => format!("{value:.1}"),
            Unit::Ratio => format!("{value:.3}"),
            Unit::Nanoseconds => nanoseconds(value),
        }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::Text(text.to_owned())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell::Text(text)
    }
}

impl From<u64> for Cell {
    fn from(value: u64) -> Cell {
        Cell::Integer(value)
    }
}

impl From<u32> for Cell {
    fn from(value: u32) -> Cell {
        Cell::Integer(u64::from(value))
    }
}

impl From<usize> for Cell {
    fn from(value: usize) -> Cell {
        Cell::Integer(value as u64)
    }
}

impl From<f64> for Cell {
    fn from(value: f64) -> Cell {
        Cell::Real(value)
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Cell {
        value.map_or(Cell::Unknown, Into::into)
    }
}

/// Rounded to a whole number, with a comma at every third digit.
fn thousands(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    if value < 0.0 && digits != "0" {
        format!("-{text}")
    } else {
        text
    }
}

/// A time in the unit that leaves one to three digits before the point.
fn nanoseconds(value: f64) -> String {
    let (unit, size) = match value.abs() {
        x if x < 1e3 => return format!("{value:.0} ns"),
        x if x < 1e6 => ("us", 1e3),
        x if x < 1e9 => ("ms", 1e6),
        _ => ("s", 1e9),
    };
    format!("{:.1} {unit}", value / size)
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: &[Column] = &[
        Column::new("vm", "VM", Unit::Text),
        Column::new("ops_per_second", "ops/s", Unit::Count),
        Column::new("spin_share_percent", "spin %", Unit::Percent),
        Column::new("longest_wait_ns", "longest wait", Unit::Nanoseconds),
    ];

    fn table() -> Table {
        let mut table = Table::new("vm run", COLUMNS);
        table.push(vec![
            "vm0".into(),
            1_234_567.4.into(),
            12.34.into(),
            5_600_000u64.into(),
        ]);
        table.push(vec![
            "all".into(),
            7u64.into(),
            f64::NAN.into(),
            Cell::Unknown,
        ]);
        table
    }

    #[test]
    fn json_is_one_flat_object() {
        let machine = Machine {
            processor: "P".into(),
            cpus: 2,
            kernel: "7.2".into(),
            testbed: false,
        };
        let mut out = Vec::new();
        table()
            .write_json(&machine, &mut out)
            .expect("a Vec takes it");
        let text = String::from_utf8(out).expect("UTF-8");
        assert_eq!(text.matches('\n').count(), 1);
        let object: Value = serde_json::from_str(&text).expect("JSON");
        let keys: Vec<_> = object.as_object().expect("an object").keys().collect();
        assert_eq!(keys, ["command", "commit", "machine", "rows"]);
        assert_eq!(object["command"], "vm run");
        assert_eq!(object["commit"], COMMIT);
        assert_eq!(object["machine"], "P, 2 CPUs, Linux 7.2");
        assert_eq!(object["rows"][0]["ops_per_second"], 1_234_567.4);
        assert_eq!(object["rows"][0]["longest_wait_ns"], 5_600_000);
        assert_eq!(object["rows"][1]["spin_share_percent"], Value::Null);
        assert_eq!(object["rows"][1]["longest_wait_ns"], Value::Null);
    }

    #[test]
    fn text_is_aligned_and_rounded() {
        let mut out = Vec::new();
        table().write_text(&mut out).expect("a Vec takes it");
        let text = String::from_utf8(out).expect("UTF-8");
        for piece in ["ops/s", "1,234,567", "12.3", "5.6 ms", "-"] {
            assert!(text.contains(piece), "{text}");
        }
        assert!(text.lines().all(|line| line == line.trim_end()));
    }

    #[test]
    fn numbers_for_people() {
        assert_eq!(thousands(0.0), "0");
        assert_eq!(thousands(999.6), "1,000");
        assert_eq!(thousands(-1_000_000.0), "-1,000,000");
        assert_eq!(nanoseconds(999.0), "999 ns");
        assert_eq!(nanoseconds(1_500.0), "1.5 us");
        assert_eq!(nanoseconds(2.5e9), "2.5 s");
    }

    #[test]
    #[should_panic(expected = "a cell for each column")]
    fn a_row_of_another_length_is_refused() {
        table().push(vec![Cell::Unknown]);
    }
}

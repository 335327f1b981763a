// SPDX-License-Identifier: MIT OR Apache-2.0
//! A table for people and its rows for programs. The same values feed both.

use std::io::{self, Write};

use comfy_table::{CellAlignment, ContentArrangement, TableComponent, presets::NOTHING};
use serde_json::{Map, Value, json};

use crate::{
    cell::{Unit, text},
    row::{self, Column, Row},
};

/// Rows under columns.
#[derive(Clone, Debug)]
pub struct Table {
    name: &'static str,
    title: String,
    columns: Vec<Column>,
    rows: Vec<Map<String, Value>>,
    commands: &'static [&'static str],
}

impl Table {
    /// The table of these rows: the keys of [`Row`]'s type in the JSON, its columns for people. `title` is a line above it.
    pub fn of<R: Row>(title: impl Into<String>, rows: impl IntoIterator<Item = R>) -> Table {
        Table {
            name: R::TABLE,
            title: title.into(),
            columns: R::COLUMNS.to_vec(),
            rows: rows.into_iter().map(|row| row::object(&row)).collect(),
            commands: R::COMMANDS,
        }
    }

    /// The same without the columns of these keys, which stay in the JSON.
    #[must_use]
    pub fn without_columns(mut self, keys: &[&str]) -> Table {
        self.columns.retain(|column| !keys.contains(&column.key));
        self
    }

    /// Whether that command says that it prints such a table.
    pub(crate) fn is_of(&self, command: &str) -> bool {
        self.commands.contains(&command)
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The rows as flat JSON objects: `table`, then the keys in the order of the row's type.
    pub fn json_rows(&self) -> Vec<Value> {
        let row = |row: &Map<String, Value>| {
            let mut object = Map::new();
            object.insert("table".into(), json!(self.name));
            object.extend(row.clone());
            Value::Object(object)
        };
        self.rows.iter().map(row).collect()
    }

    /// For people: an empty line, the title, headers, aligned columns, numbers to the right. Nothing when all columns are
    /// for programs.
    ///
    /// # Errors
    /// When `out` cannot be written.
    pub fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        if self.columns.is_empty() {
            return Ok(());
        }
        let mut table = comfy_table::Table::new();
        table
            .load_preset(NOTHING)
            .set_style(TableComponent::HeaderLines, '─')
            .set_style(TableComponent::MiddleHeaderIntersections, '─')
            .set_content_arrangement(ContentArrangement::Disabled)
            .set_header(self.columns.iter().map(|column| column.header));
        for row in &self.rows {
            let text = |column: &Column| text(&row[column.key], column.unit);
            table.add_row(self.columns.iter().map(text));
        }
        for (place, column) in self.columns.iter().enumerate() {
            let number = !matches!(column.unit, Unit::Text | Unit::Bar);
            if let (true, Some(column)) = (number, table.column_mut(place)) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        writeln!(out)?;
        if !self.title.is_empty() {
            writeln!(out, "{}", self.title)?;
        }
        for line in table.lines() {
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    crate::row! {
        "spinning", ["vm run"];
        /// How much a VM spun.
        struct SpinningRow {
            /// Its VM.
            vm: &'static str = ("VM", Text),
            /// Operations per second.
            ops_per_second: f64 = ("ops/s", Count),
            /// Share of its time; percent.
            spin_share_percent: f64 = ("spin %", Percent),
            /// Its longest wait; ns.
            longest_wait_ns: Option<u64> = ("longest wait", Nanoseconds),
            /// Exits.
            exits: u64,
        }
    }

    fn table() -> Table {
        let one = SpinningRow {
            vm: "vm0",
            ops_per_second: 1_234_567.4,
            spin_share_percent: 12.34,
            longest_wait_ns: Some(5_600_000),
            exits: 987_654,
        };
        let all = SpinningRow {
            vm: "all",
            ops_per_second: 7.0,
            spin_share_percent: f64::NAN,
            longest_wait_ns: None,
            exits: 5,
        };
        Table::of("Per vCPU", [one, all])
    }

    #[test]
    fn json_rows_are_flat_and_whole() {
        let rows = table().json_rows();
        assert_eq!(rows[0]["table"], "spinning");
        assert_eq!(rows[0]["ops_per_second"], 1_234_567.4);
        assert_eq!(rows[0]["longest_wait_ns"], 5_600_000);
        assert_eq!(rows[0]["exits"], 987_654);
        assert_eq!(rows[1]["spin_share_percent"], Value::Null);
        assert_eq!(rows[1]["longest_wait_ns"], Value::Null);
    }

    #[test]
    fn text_is_aligned_and_rounded() {
        let mut out = Vec::new();
        table().write_text(&mut out).expect("a Vec takes it");
        let text = String::from_utf8(out).expect("UTF-8");
        for piece in ["Per vCPU", "ops/s", "1,234,567", "12.3", "5.6 ms", "-"] {
            assert!(text.contains(piece), "{text}");
        }
        assert!(!text.contains("987,654"), "{text}");
        assert!(text.lines().all(|line| line == line.trim_end()));
    }
}

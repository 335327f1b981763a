// SPDX-License-Identifier: MIT OR Apache-2.0
//! A table for people and its rows for programs. The same cells feed both.

use std::io::{self, Write};

use comfy_table::{CellAlignment, ContentArrangement, TableComponent, presets::NOTHING};
use serde_json::{Map, Value, json};

use crate::{
    cell::{Cell, Unit, text},
    row::{self, Column, Row},
};

/// Rows under columns.
#[derive(Clone, Debug)]
pub struct Table {
    name: &'static str,
    title: String,
    columns: Vec<Column>,
    rows: Vec<Map<String, Value>>,
    commands: Option<&'static [&'static str]>,
}

impl Table {
    /// The table of these rows: the keys of [`Row`]'s type in the JSON, its columns for people. `title` is a line above it.
    pub fn of<R: Row>(title: impl Into<String>, rows: impl IntoIterator<Item = R>) -> Table {
        Table {
            name: R::TABLE,
            title: title.into(),
            columns: R::COLUMNS.to_vec(),
            rows: rows.into_iter().map(|row| row::object(&row)).collect(),
            commands: Some(R::COMMANDS),
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
        self.commands
            .is_none_or(|commands| commands.contains(&command))
    }

    /// An empty table. `name` is its word in the JSON (`"table": "vcpu"`), `title` a line above it for people.
    pub fn new(name: &'static str, title: impl Into<String>, columns: &[Column]) -> Table {
        Table {
            name,
            title: title.into(),
            columns: columns.to_vec(),
            rows: Vec::new(),
            commands: None,
        }
    }

    /// Adds a row.
    ///
    /// # Panics
    /// When it has not one cell for each column: that is a mistake of the caller.
    pub fn push(&mut self, row: Vec<Cell>) {
        assert_eq!(row.len(), self.columns.len(), "a cell for each column");
        let keys = self.columns.iter().map(|column| column.key.to_owned());
        self.rows
            .push(keys.zip(row.iter().map(Cell::json)).collect());
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
        let shown: Vec<usize> = (0..self.columns.len())
            .filter(|&index| !self.columns[index].json_only)
            .collect();
        if shown.is_empty() {
            return Ok(());
        }
        let mut table = comfy_table::Table::new();
        table
            .load_preset(NOTHING)
            .set_style(TableComponent::HeaderLines, '─')
            .set_style(TableComponent::MiddleHeaderIntersections, '─')
            .set_content_arrangement(ContentArrangement::Disabled)
            .set_header(shown.iter().map(|&index| self.columns[index].header));
        for row in &self.rows {
            let text = |&index: &usize| {
                let column = &self.columns[index];
                text(&row[column.key], column.unit)
            };
            table.add_row(shown.iter().map(text));
        }
        for (place, &index) in shown.iter().enumerate() {
            let number = self.columns[index].unit != Unit::Text;
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

    const COLUMNS: &[Column] = &[
        Column::new("vm", "VM", Unit::Text),
        Column::new("ops_per_second", "ops/s", Unit::Count),
        Column::new("spin_share_percent", "spin %", Unit::Percent),
        Column::new("longest_wait_ns", "longest wait", Unit::Nanoseconds),
        Column::json_only("exits", Unit::Count),
    ];

    fn table() -> Table {
        let mut table = Table::new("vcpu", "Per vCPU", COLUMNS);
        table.push(vec![
            "vm0".into(),
            1_234_567.4.into(),
            12.34.into(),
            5_600_000u64.into(),
            987_654u64.into(),
        ]);
        table.push(vec![
            "all".into(),
            7u64.into(),
            f64::NAN.into(),
            Cell::Unknown,
            5u64.into(),
        ]);
        table
    }

    #[test]
    fn json_rows_are_flat_and_whole() {
        let rows = table().json_rows();
        assert_eq!(rows[0]["table"], "vcpu");
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

    #[test]
    #[should_panic(expected = "a cell for each column")]
    fn a_row_of_another_length_is_refused() {
        table().push(vec![Cell::Unknown]);
    }
}

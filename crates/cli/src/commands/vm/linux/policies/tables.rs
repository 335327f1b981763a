// SPDX-License-Identifier: MIT OR Apache-2.0
//! How compared Linux guests are shown.

use unspin_experiment::{
    Row,
    linux::{Figures, SampleRow},
};
use unspin_report::{Column, Document, Table, Unit};

use crate::commands::compare::tables::cells;

/// Keys are the fields of [`Row`] and its [`Figures`].
const ROW: &[Column] = &[
    Column::new("load", "load", Unit::Text),
    Column::new("features", "features", Unit::Text),
    Column::new("shape", "VMs x vCPUs", Unit::Text),
    Column::json_only("overcommit", Unit::Ratio),
    Column::json_only("command", Unit::Text),
    Column::new("ideal_run_ns", "ideal run", Unit::Nanoseconds),
    Column::new("stock_run_ns", "stock run", Unit::Nanoseconds),
    Column::new("stock_ratio_to_ideal", "stock / ideal", Unit::Ratio),
    Column::json_only("stock_ratio_to_ideal_low", Unit::Ratio),
    Column::json_only("stock_ratio_to_ideal_high", Unit::Ratio),
    Column::json_only("stock_verdict", Unit::Text),
    Column::new("stock_ratio_to_stock", "stock / stock", Unit::Ratio),
    Column::json_only("stock_ratio_to_stock_low", Unit::Ratio),
    Column::json_only("stock_ratio_to_stock_high", Unit::Ratio),
    Column::new("null_verdict", "null", Unit::Text),
    Column::new(
        "refuse_yields_ratio_to_stock",
        "refuse-yields / stock",
        Unit::Ratio,
    ),
    Column::json_only("refuse_yields_ratio_to_stock_low", Unit::Ratio),
    Column::json_only("refuse_yields_ratio_to_stock_high", Unit::Ratio),
    Column::new("policy", "policy", Unit::Text),
    Column::new("policy_run_ns", "policy run", Unit::Nanoseconds),
    Column::new("throughput_ratio_to_stock", "policy / stock", Unit::Ratio),
    Column::new("throughput_ratio_to_stock_low", "95 % from", Unit::Ratio),
    Column::new("throughput_ratio_to_stock_high", "to", Unit::Ratio),
    Column::new("verdict", "is", Unit::Text),
    Column::new("gap_closed", "gap closed", Unit::Ratio),
    Column::json_only("gap_closed_low", Unit::Ratio),
    Column::json_only("gap_closed_high", Unit::Ratio),
    Column::new("harm", "harm", Unit::Text),
    Column::new(
        "stock_ple_exits_per_run",
        "PLE exits per run, stock",
        Unit::Count,
    ),
    Column::new("policy_ple_exits_per_run", "policy", Unit::Count),
    Column::new("pairs", "pairs", Unit::Count),
    Column::json_only("unusable_pairs", Unit::Count),
    Column::json_only("runs", Unit::Count),
    Column::json_only("not_measured", Unit::Text),
];

/// Keys are the fields of [`SampleRow`]; for programs alone.
const SAMPLE: &[Column] = &[
    Column::json_only("load", Unit::Text),
    Column::json_only("features", Unit::Text),
    Column::json_only("shape", Unit::Text),
    Column::json_only("column", Unit::Text),
    Column::json_only("pair", Unit::Count),
    Column::json_only("runs_per_s", Unit::Ratio),
    Column::json_only("run_ns", Unit::Nanoseconds),
    Column::json_only("ple_exits_per_run", Unit::Count),
];

/// Adds the tables.
pub fn add(document: &mut Document, rows: &[Row<Figures>], samples: &[SampleRow]) {
    let mut columns = ROW.to_vec();
    // People see why a cell has no figures where one has none.
    if rows.iter().any(|row| row.world.not_measured.is_some()) {
        let last = columns.last_mut().expect("there are columns");
        *last = Column::new("not_measured", "not measured", Unit::Text);
    }
    let mut table = Table::new("cell", "Linux guests", &columns);
    rows.iter().for_each(|row| table.push(cells(row, &columns)));
    document.table(table);
    let mut table = Table::new("sample", "", SAMPLE);
    samples
        .iter()
        .for_each(|row| table.push(cells(row, SAMPLE)));
    document.table(table);
}

#[cfg(test)]
mod tests {
    use serde::Serialize;

    use super::*;

    fn fields(row: &impl Serialize) -> Vec<String> {
        let object = serde_json::to_value(row).expect("JSON");
        let mut fields: Vec<String> = object
            .as_object()
            .expect("an object")
            .keys()
            .cloned()
            .collect();
        fields.sort();
        fields
    }

    fn keys(columns: &[Column]) -> Vec<String> {
        let mut keys: Vec<String> = columns.iter().map(|column| column.key.to_owned()).collect();
        keys.sort();
        keys
    }

    #[test]
    fn columns_are_the_fields_and_a_cell_without_figures_says_why() {
        let mut row: Row<Figures> = Row::default();
        row.world.not_measured = Some("linux0 has not done".to_owned());
        let sample = SampleRow {
            load: "hackbench".to_owned(),
            features: String::new(),
            shape: String::new(),
            column: String::new(),
            pair: 0,
            runs_per_s: 1.0,
            run_ns: 1.0,
            ple_exits_per_run: None,
        };
        assert_eq!(keys(ROW), fields(&row));
        assert_eq!(keys(SAMPLE), fields(&sample));
        let mut document = Document::new("vm linux-policies", "here");
        add(&mut document, &[row], &[]);
        let mut out = Vec::new();
        document.write_text(&mut out).expect("a Vec takes it");
        let text = String::from_utf8(out).expect("UTF-8");
        assert!(text.contains("linux0 has not done"), "{text}");
    }
}

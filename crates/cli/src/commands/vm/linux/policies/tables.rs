// SPDX-License-Identifier: MIT OR Apache-2.0
//! How compared Linux guests are shown.

use unspin_experiment::{
    Row,
    linux::{self, Figures},
};
use unspin_report::{Column, Document, Table, Unit};

use crate::terminal::output::rows;

/// What people see of a row; the last only where a cell has no figures.
const ROW: &[Column] = &[
    Column::new("load", "load", Unit::Text),
    Column::new("features", "features", Unit::Text),
    Column::new("shape", "VMs x vCPUs", Unit::Text),
    Column::new("ideal_run_ns", "ideal run", Unit::Nanoseconds),
    Column::new("stock_run_ns", "stock run", Unit::Nanoseconds),
    Column::new("stock_ratio_to_ideal", "stock / ideal", Unit::Ratio),
    Column::new("stock_ratio_to_stock", "stock / stock", Unit::Ratio),
    Column::new("null_verdict", "null", Unit::Text),
    Column::new(
        "refuse_yields_ratio_to_stock",
        "refuse-yields / stock",
        Unit::Ratio,
    ),
    Column::new("policy", "policy", Unit::Text),
    Column::new("policy_run_ns", "policy run", Unit::Nanoseconds),
    Column::new("throughput_ratio_to_stock", "policy / stock", Unit::Ratio),
    Column::new("throughput_ratio_to_stock_low", "95 % from", Unit::Ratio),
    Column::new("throughput_ratio_to_stock_high", "to", Unit::Ratio),
    Column::new("verdict", "is", Unit::Text),
    Column::new("gap_closed", "gap closed", Unit::Ratio),
    Column::new("harm", "harm", Unit::Text),
    Column::new(
        "stock_ple_exits_per_run",
        "PLE exits per run, stock",
        Unit::Count,
    ),
    Column::new("policy_ple_exits_per_run", "policy", Unit::Count),
    Column::new("pairs", "pairs", Unit::Count),
    Column::new("not_measured", "not measured", Unit::Text),
];

rows!(
    /// A cell under a policy. Times are means of all runs; ratios are of runs per second of all VMs together.
    CellRow(Row<Figures>), "cell", &["vm linux-policies"], ROW;
    /// One sample, as it was measured.
    SampleRow(linux::SampleRow), "sample", &["vm linux-policies"], &[];
);

/// Adds the tables.
pub fn add(document: &mut Document, rows: &[Row<Figures>], samples: &[linux::SampleRow]) {
    let measured = rows.iter().all(|row| row.world.not_measured.is_none());
    // People see why a cell has no figures where one has none.
    let hidden: &[&str] = if measured { &["not_measured"] } else { &[] };
    let rows = rows.iter().cloned().map(CellRow);
    document.table(Table::of("Linux guests", rows).without_columns(hidden));
    let samples = samples.iter().cloned().map(SampleRow);
    document.table(Table::of("", samples));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_without_figures_says_why() {
        let text = |rows: &[Row<Figures>]| {
            let mut document = Document::new("vm linux-policies", "here");
            add(&mut document, rows, &[]);
            let mut out = Vec::new();
            document.write_text(&mut out).expect("a Vec takes it");
            String::from_utf8(out).expect("UTF-8")
        };
        let mut row: Row<Figures> = Row::default();
        assert!(!text(&[row.clone()]).contains("not measured"));
        row.world.not_measured = Some("linux0 has not done".to_owned());
        let said = text(&[row]);
        assert!(said.contains("linux0 has not done"), "{said}");
    }
}

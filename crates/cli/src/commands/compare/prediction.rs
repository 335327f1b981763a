// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin compare --lab`: what the lab predicts for each cell, beside what was measured there.

use unspin_experiment::prediction::{Compared, HIT_RATIO, PredictionRow, predict};
use unspin_report::{Column, Document, Table, Unit};

use crate::terminal::{failure::Failure, output::rows, progress::Experiment};

/// What people see of a row.
const COLUMNS: &[Column] = &[
    Column::new("shape", "VMs x vCPUs", Unit::Text),
    Column::new("lock", "lock", Unit::Text),
    Column::new("pv_page", "pv_page", Unit::Text),
    Column::new("ple_window", "PLE window", Unit::Count),
    Column::new("column", "scheduled by", Unit::Text),
    Column::new("measured_per_s", "measured ops/s", Unit::Count),
    Column::new("predicted_per_s", "lab's ops/s", Unit::Count),
    Column::new("measured_to_predicted", "measured / lab", Unit::Ratio),
    Column::new("measured_gap_closed", "gap closed", Unit::Ratio),
    Column::new("predicted_gap_closed", "lab's", Unit::Ratio),
    Column::new("not_predicted", "not predicted", Unit::Text),
];

rows!(
    /// What the lab predicts of one column of a scenario, beside what was measured.
    LabRow(PredictionRow), "lab", &["compare", "demo"], COLUMNS;
);

/// Predicts everything that was compared and adds the table.
///
/// # Errors
/// Costs that are not of the lab, too few seeds, Ctrl-C.
pub fn add(
    document: &mut Document,
    all: &[Compared],
    costs: &[String],
    seeds: u32,
) -> Result<(), Failure> {
    let progress = Experiment::new(false);
    let rows = predict(all, costs, seeds, &progress.session()?)?;
    document.table(table(&rows));
    let hits = || rows.iter().filter_map(PredictionRow::hits);
    document.note(format!(
        "{} of {} predictions within {HIT_RATIO} of what was measured; means of {seeds} seeds",
        hits().filter(|hit| *hit).count(),
        hits().count()
    ));
    Ok(())
}

fn table(rows: &[PredictionRow]) -> Table {
    let same = |same: fn(&PredictionRow, &PredictionRow) -> bool| {
        rows.iter().all(|row| same(row, &rows[0]))
    };
    let hidden = [
        ("pv_page", same(|one, other| one.pv_page == other.pv_page)),
        (
            "ple_window",
            same(|one, other| one.ple_window == other.ple_window),
        ),
        (
            "not_predicted",
            rows.iter().all(|row| row.not_predicted.is_none()),
        ),
    ];
    let hidden = hidden.iter().filter(|(_, hidden)| *hidden);
    let hidden: Vec<&str> = hidden.map(|(key, _)| *key).collect();
    let title = "What the lab predicts, beside what was measured";
    Table::of(title, rows.iter().cloned().map(LabRow)).without_columns(&hidden)
}

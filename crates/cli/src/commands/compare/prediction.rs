// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin compare --lab`: what the lab predicts for each cell, beside what was measured there.

use unspin_experiment::{
    costs,
    prediction::{Compared, HIT_RATIO, PredictionRow, check_costs, predict},
};
use unspin_report::{Column, Document, Table, Unit};

use crate::{
    commands::compare::args::PredictionArguments,
    terminal::{failure::Failure, output::rows, progress::Experiment},
};

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

/// The costs as overrides.
///
/// # Errors
/// A file that cannot be read, a cost that the lab does not know; or no file is named, and it is not the testbed that is measured.
pub fn costs(arguments: &PredictionArguments, in_testbed: bool) -> Result<Vec<String>, Failure> {
    let costs = match &arguments.lab_costs {
        Some(file) => costs::overrides_of(file)?,
        None if in_testbed => costs::overrides_in(costs::TESTBED).map_err(Failure::Usage)?,
        None => {
            return Err(Failure::Usage(
                "--lab knows what things cost in the testbed, not on this host: say --lab-costs FILE; `unspin lab \
                 calibrate kvm --out FILE` measures it"
                    .into(),
            ));
        }
    };
    // Before anything is measured.
    check_costs(&costs)?;
    Ok(costs)
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_those_of_the_machine() {
        let arguments = |lab_costs: Option<&str>| PredictionArguments {
            lab: true,
            lab_costs: lab_costs.map(Into::into),
            lab_seeds: 2,
        };
        let of_the_testbed = costs(&arguments(None), true).unwrap_or_default();
        assert!(of_the_testbed.contains(&"lab.costs.exit_ns=6232".to_owned()));
        let refused = |given, in_testbed| match costs(&arguments(given), in_testbed) {
            Err(Failure::Usage(text)) => text,
            other => panic!("{other:?}"),
        };
        assert!(refused(None, false).contains("--lab-costs"));
        assert!(refused(Some("/nonexistent"), true).contains("/nonexistent"));
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), "exit_us = 7\n").expect("written");
        let path = file.path().to_string_lossy().into_owned();
        assert!(refused(Some(&path), true).contains("exit_us"));
    }
}

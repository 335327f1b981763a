// SPDX-License-Identifier: MIT OR Apache-2.0
//! How compared scenarios are shown, by `compare` itself, and by `demo` for many at once; and beside them what the lab predicts.

use unspin_experiment::{
    Row,
    kvm::{self, Figures},
    pooled::pool,
    prediction::{Compared, HIT_RATIO, PredictionRow, predict},
};
use unspin_report::{Column, Document, Row as _, Table, Unit};

use crate::terminal::{failure::Failure, output::rows, progress::Experiment};

/// What people see of a row.
const COLUMNS: &[Column] = &[
    Column::new("shape", "VMs x vCPUs", Unit::Text),
    Column::new("lock", "lock", Unit::Text),
    Column::new("pv_page", "pv_page", Unit::Text),
    Column::new("ple_window", "PLE window", Unit::Count),
    Column::new("ideal_per_s", "ideal ops/s", Unit::Count),
    Column::new("stock_per_s", "stock ops/s", Unit::Count),
    Column::new("stock_deviation_per_s", "+-", Unit::Count),
    Column::new("stock_ratio_to_ideal", "stock / ideal", Unit::Ratio),
    Column::new("stock_ratio_to_ideal_low", "95 % from", Unit::Ratio),
    Column::new("stock_ratio_to_ideal_high", "to", Unit::Ratio),
    Column::new(
        "stock_collapsed_share_percent",
        "collapsed %",
        Unit::Percent,
    ),
    Column::new("null_verdict", "stock / stock", Unit::Text),
    Column::new("refuse_yields_per_s", "refuse-yields ops/s", Unit::Count),
    Column::new("policy", "policy", Unit::Text),
    Column::new("steer_per_s", "policy ops/s", Unit::Count),
    Column::new("throughput_ratio_to_stock", "policy / stock", Unit::Ratio),
    Column::new("throughput_ratio_to_stock_low", "95 % from", Unit::Ratio),
    Column::new("throughput_ratio_to_stock_high", "to", Unit::Ratio),
    Column::new("verdict", "is", Unit::Text),
    Column::new("gap_closed", "gap closed", Unit::Ratio),
    Column::new("gap_closed_low", "95 % from", Unit::Ratio),
    Column::new("gap_closed_high", "to", Unit::Ratio),
    Column::new(
        "steer_collapsed_share_percent",
        "collapsed %",
        Unit::Percent,
    ),
    Column::new("harm", "harm", Unit::Text),
    Column::new("pairs", "pairs", Unit::Count),
];

/// Of them, what says nothing without a policy.
const STEERED: [&str; 12] = [
    "refuse_yields_per_s",
    "policy",
    "steer_per_s",
    "throughput_ratio_to_stock",
    "throughput_ratio_to_stock_low",
    "throughput_ratio_to_stock_high",
    "verdict",
    "gap_closed",
    "gap_closed_low",
    "gap_closed_high",
    "steer_collapsed_share_percent",
    "harm",
];

/// Of them, what a line has no room for beside those.
const WITHOUT_POLICY: [&str; 5] = [
    "stock_deviation_per_s",
    "stock_ratio_to_ideal",
    "stock_ratio_to_ideal_low",
    "stock_ratio_to_ideal_high",
    "verdict",
];

rows!(
    /// A scenario and a policy, compared. Rates are acquisitions of all VMs together; means over the pairs.
    CompareRow(Row<Figures>), "compare", &["compare", "demo"], COLUMNS;
);

/// Adds every sample, for programs.
pub fn add_samples(document: &mut Document, rows: &[kvm::SampleRow]) {
    document.table(Table::of("", rows.to_vec()));
}

/// Adds the table of these rows.
pub fn add(document: &mut Document, rows: &[Row<Figures>]) {
    let steered = rows.iter().any(|row| row.policy.is_some());
    let same = |same: fn(&Figures, &Figures) -> bool| {
        rows.iter().all(|row| same(&row.world, &rows[0].world))
    };
    let mut hidden: Vec<&str> = match steered {
        true => WITHOUT_POLICY.to_vec(),
        false => STEERED.to_vec(),
    };
    // People see these only where rows differ in them.
    if same(|one, other| one.pv_page == other.pv_page) {
        hidden.push("pv_page");
    }
    if same(|one, other| one.ple_window == other.ple_window) {
        hidden.push("ple_window");
    }
    let rows = rows.iter().cloned().map(CompareRow);
    document.table(Table::of("", rows).without_columns(&hidden));
}

/// Adds the table of who got what; people see it where a scenario has several VMs.
pub fn add_vms(document: &mut Document, rows: &[kvm::VmRow]) {
    let several = rows.iter().any(|row| row.vm != "vm0");
    let all: Vec<&str> = kvm::VmRow::COLUMNS
        .iter()
        .map(|column| column.key)
        .collect();
    let hidden = if several { &[] } else { &all[..] };
    document.table(Table::of("What each VM got", rows.to_vec()).without_columns(hidden));
}

/// Adds the table of windows, if there is one.
pub fn add_windows(document: &mut Document, rows: &[kvm::WindowRow]) {
    if rows.is_empty() {
        return;
    }
    let title = "Windows, in PAUSEs (AMD) or TSC cycles (Intel); an epoch is 1,000 pause-loop exits of a VM";
    document.table(Table::of(title, rows.to_vec()));
}

/// Adds all cells of each policy together, for several cells.
pub fn add_pooled(document: &mut Document, rows: &[Row<Figures>]) {
    let Some((policies, null)) = pool(rows) else {
        return;
    };
    let title = "All cells of a policy; harm: lower bound of policy / stock not above 0.90 in a cell, 0.97 in all together";
    document.table(Table::of(title, policies));
    let title = "Stock against stock, all cells; one in 20 leaves 1 out by chance";
    document.table(Table::of(title, [null]));
}

/// Predicts everything that was compared and adds the table.
///
/// # Errors
/// Costs that are not of the lab, too few seeds, Ctrl-C.
pub fn add_predictions(
    document: &mut Document,
    all: &[Compared],
    costs: &[String],
    seeds: u32,
) -> Result<(), Failure> {
    let progress = Experiment::new(false);
    let rows = predict(all, costs, seeds, &progress.session()?)?;
    document.table(predicted_table(&rows));
    let hits = || rows.iter().filter_map(PredictionRow::hits);
    document.note(format!(
        "{} of {} predictions within {HIT_RATIO} of what was measured; means of {seeds} seeds",
        hits().filter(|hit| *hit).count(),
        hits().count()
    ));
    Ok(())
}

fn predicted_table(rows: &[PredictionRow]) -> Table {
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
    Table::of(title, rows.iter().cloned()).without_columns(&hidden)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    /// What is hidden now and then is a column.
    #[test]
    fn hidden_columns_are_columns() {
        for key in STEERED.iter().chain(&WITHOUT_POLICY) {
            assert!(COLUMNS.iter().any(|column| column.key == *key), "{key}");
        }
    }

    fn compared(policy: Option<&str>, pv_page: bool) -> Row<Figures> {
        let row = serde_json::json!({"shape": "1x4", "lock": "ticket", "overcommit": 2.0, "pv_page": pv_page,
            "ideal_per_s": 1000.0, "ideal_deviation_per_s": 1.0, "stock_per_s": 200.0, "stock_deviation_per_s": 2.0,
            "stock_ratio_to_ideal": 0.2, "stock_verdict": "lower", "stock_ratio_to_stock": 1.0, "policy": policy,
            "stock_collapsed_share_percent": 100.0, "pairs": 4, "unusable_pairs": 0, "window_ns": 500,
            "discard_ns": 250, "seed": 1, "scenario_sha256": "", "replay": ""});
        serde_json::from_value(row).expect("a row")
    }

    fn printed(rows: &[Row<Figures>]) -> (String, Value) {
        let mut document = Document::new("compare", "here");
        add(&mut document, rows);
        let (mut text, mut json) = (Vec::new(), Vec::new());
        document.write_text(&mut text).expect("a Vec takes it");
        document.write_json(&mut json).expect("a Vec takes it");
        let object: Value = serde_json::from_slice(&json).expect("JSON");
        let text = String::from_utf8(text).expect("UTF-8");
        (text, object["rows"][0].clone())
    }

    #[test]
    fn people_see_what_says_something_and_programs_everything() {
        let (text, row) = printed(&[compared(None, true)]);
        assert!(
            text.contains("stock / ideal") && !text.contains("gap closed"),
            "{text}"
        );
        assert!(!text.contains("pv_page"), "{text}");
        assert!(row["gap_closed"].is_null() && row["pv_page"] == true);
        assert_eq!(
            (&row["stock_verdict"], &row["pairs"]),
            (&"lower".into(), &4.into())
        );
        let (text, _) = printed(&[compared(Some("loan"), true), compared(Some("loan"), false)]);
        assert!(
            text.contains("gap closed") && !text.contains("stock / ideal"),
            "{text}"
        );
        assert!(
            text.contains("pv_page") && text.contains("yes") && text.contains("no"),
            "{text}"
        );
    }
}

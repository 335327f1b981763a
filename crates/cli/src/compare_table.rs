// SPDX-License-Identifier: MIT OR Apache-2.0
//! How compared scenarios are shown: by `compare` itself, and by `demo` for many at once.

use unspin_report::{Cell, Column, Document, Table, Unit};

use crate::compare::Row;

const COLUMNS: &[Column] = &[
    Column::new("shape", "VMs x vCPUs", Unit::Text),
    Column::new("lock", "lock", Unit::Text),
    Column::new("ideal_ops_per_second", "ideal ops/s", Unit::Count),
    Column::new("ideal_deviation_ops_per_second", "+-", Unit::Count),
    Column::new("stock_ops_per_second", "stock ops/s", Unit::Count),
    Column::new("stock_deviation_ops_per_second", "+-", Unit::Count),
    Column::new("ratio", "stock / ideal", Unit::Ratio),
    Column::new("ratio_low", "95 % from", Unit::Ratio),
    Column::new("ratio_high", "to", Unit::Ratio),
    Column::json_only("verdict", Unit::Text),
    Column::new("collapsed_share_percent", "collapsed %", Unit::Percent),
    Column::new(
        "ideal_spin_share_percent",
        "spinning % ideal",
        Unit::Percent,
    ),
    Column::new("stock_spin_share_percent", "stock", Unit::Percent),
    Column::new("stock_ple_exits_per_op", "PLE exits/op", Unit::Ratio),
    Column::json_only("stock_yields_boosted_percent", Unit::Percent),
    Column::new("pairs", "pairs", Unit::Count),
    Column::json_only("ple_window", Unit::Count),
    Column::json_only("seed", Unit::Count),
    Column::json_only("scenario_sha256", Unit::Text),
    Column::json_only("replay", Unit::Text),
];

/// Adds the table of these rows.
pub fn add(document: &mut Document, rows: &[Row]) {
    let mut table = Table::new("compare", "", COLUMNS);
    for row in rows {
        table.push(cells(row));
    }
    document.table(table);
}

fn cells(row: &Row) -> Vec<Cell> {
    let known = |value: Option<f64>| value.map_or(Cell::Unknown, Cell::from);
    vec![
        row.shape.as_str().into(),
        row.lock.as_str().into(),
        row.ideal_ops_per_second.into(),
        row.ideal_deviation_ops_per_second.into(),
        row.stock_ops_per_second.into(),
        row.stock_deviation_ops_per_second.into(),
        row.ratio.into(),
        known(row.ratio_low),
        known(row.ratio_high),
        row.verdict.as_str().into(),
        row.collapsed_share_percent.into(),
        row.ideal_spin_share_percent.into(),
        row.stock_spin_share_percent.into(),
        known(row.stock_ple_exits_per_op),
        known(row.stock_yields_boosted_percent),
        row.pairs.into(),
        row.ple_window.map_or(Cell::Unknown, Cell::from),
        row.seed.into(),
        row.scenario_sha256.as_str().into(),
        row.replay.as_str().into(),
    ]
}

/// What happened, in one sentence that follows from the numbers alone.
pub fn sentence(row: &Row) -> String {
    let what = format!("{} with {}", row.shape, row.lock);
    if row.verdict != "lower" {
        return format!(
            "{what}: no loss against ideal is shown by these pairs ({}).",
            row.verdict
        );
    }
    let mut text = format!(
        "{what}: {:.1} % of the ideal throughput is left; its vCPUs spent {:.0} % of their CPU time spinning ({:.0} % in the ideal)",
        row.ratio * 100.0,
        row.stock_spin_share_percent,
        row.ideal_spin_share_percent,
    );
    if let Some(exits) = row.stock_ple_exits_per_op {
        text += &format!(", with {exits:.1} pause-loop exits for each acquisition");
    }
    if let Some(boosted) = row.stock_yields_boosted_percent {
        text += &format!(", and {boosted:.0} % of KVM's directed yields were accepted");
    }
    text + "."
}

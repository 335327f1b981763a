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

/// With a policy people see how its column compares; programs get all of the above as well.
const STEERED: &[Column] = &[
    Column::new("policy", "policy", Unit::Text),
    Column::new("none_per_s", "none ops/s", Unit::Count),
    Column::new("steer_per_s", "policy ops/s", Unit::Count),
    Column::new("throughput_ratio_to_stock", "policy / stock", Unit::Ratio),
    Column::new("throughput_ratio_to_stock_low", "95 % from", Unit::Ratio),
    Column::new("throughput_ratio_to_stock_high", "to", Unit::Ratio),
    Column::new("gap_closed", "gap closed", Unit::Ratio),
    Column::new(
        "steer_collapsed_share_percent",
        "collapsed %",
        Unit::Percent,
    ),
    Column::json_only("overcommit", Unit::Ratio),
    Column::json_only("ideal_per_s", Unit::Count),
    Column::json_only("stock_per_s", Unit::Count),
];

/// What people still see of COLUMNS beside STEERED: a line has room for so much.
const BESIDE_STEERED: [&str; 4] = [
    "shape",
    "lock",
    "ideal_ops_per_second",
    "stock_ops_per_second",
];

/// Adds the table of these rows.
pub fn add(document: &mut Document, rows: &[Row]) {
    let steered = rows.iter().any(|row| row.policy.is_some());
    let mut columns = COLUMNS.to_vec();
    if steered {
        for column in &mut columns {
            column.json_only |= !BESIDE_STEERED.contains(&column.key);
        }
        columns.extend_from_slice(STEERED);
    }
    let mut table = Table::new("compare", "", &columns);
    for row in rows {
        let mut cells = cells(row);
        if steered {
            cells.extend(steered_cells(row));
        }
        table.push(cells);
    }
    document.table(table);
}

fn steered_cells(row: &Row) -> Vec<Cell> {
    vec![
        row.policy.as_deref().into(),
        row.none_per_s.into(),
        row.steer_per_s.into(),
        row.throughput_ratio_to_stock.into(),
        row.throughput_ratio_to_stock_low.into(),
        row.throughput_ratio_to_stock_high.into(),
        row.gap_closed.into(),
        row.steer_collapsed_share_percent.into(),
        row.overcommit.into(),
        row.ideal_ops_per_second.into(),
        row.stock_ops_per_second.into(),
    ]
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
    text + "." + &steered_sentence(row)
}

/// The same about the policy; empty without one.
fn steered_sentence(row: &Row) -> String {
    let (Some(policy), Some(gap)) = (&row.policy, row.gap_closed) else {
        return String::new();
    };
    format!(
        " The policy {policy} closes {:.0} % of that gap.",
        gap * 100.0
    )
}

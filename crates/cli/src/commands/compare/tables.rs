// SPDX-License-Identifier: MIT OR Apache-2.0
//! How compared scenarios are shown: by `compare` itself, and by `demo` for many at once.

use serde::Serialize;
use serde_json::Value;
use unspin_experiment::{
    Row,
    kvm::{Figures, SampleRow, VmRow, WindowRow},
    pooled::pool,
};
use unspin_report::{Cell, Column, Document, Table, Unit};

/// Keys are the fields of [`Row`] and its [`Figures`].
const COLUMNS: &[Column] = &[
    Column::new("shape", "VMs x vCPUs", Unit::Text),
    Column::new("lock", "lock", Unit::Text),
    Column::json_only("overcommit", Unit::Ratio),
    Column::json_only("pv_page", Unit::Text),
    Column::json_only("ple_window", Unit::Count),
    Column::new("ideal_per_s", "ideal ops/s", Unit::Count),
    Column::json_only("ideal_deviation_per_s", Unit::Count),
    Column::new("stock_per_s", "stock ops/s", Unit::Count),
    Column::new("stock_deviation_per_s", "+-", Unit::Count),
    Column::new("stock_ratio_to_ideal", "stock / ideal", Unit::Ratio),
    Column::new("stock_ratio_to_ideal_low", "95 % from", Unit::Ratio),
    Column::new("stock_ratio_to_ideal_high", "to", Unit::Ratio),
    Column::json_only("stock_verdict", Unit::Text),
    Column::new(
        "stock_collapsed_share_percent",
        "collapsed %",
        Unit::Percent,
    ),
    Column::json_only("stock_ratio_to_stock", Unit::Ratio),
    Column::json_only("stock_ratio_to_stock_low", Unit::Ratio),
    Column::json_only("stock_ratio_to_stock_high", Unit::Ratio),
    Column::new("null_verdict", "stock / stock", Unit::Text),
    Column::new("refuse_yields_per_s", "refuse-yields ops/s", Unit::Count),
    Column::json_only("refuse_yields_ratio_to_stock", Unit::Ratio),
    Column::json_only("refuse_yields_ratio_to_stock_low", Unit::Ratio),
    Column::json_only("refuse_yields_ratio_to_stock_high", Unit::Ratio),
    Column::new("policy", "policy", Unit::Text),
    Column::new("steer_per_s", "policy ops/s", Unit::Count),
    Column::json_only("steer_deviation_per_s", Unit::Count),
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
    Column::json_only("ideal_spin_share_percent", Unit::Percent),
    Column::json_only("stock_spin_share_percent", Unit::Percent),
    Column::json_only("steer_spin_share_percent", Unit::Percent),
    Column::json_only("stock_spin_time_percent", Unit::Percent),
    Column::json_only("holder_preempted_percent", Unit::Percent),
    Column::json_only("next_waiter_preempted_percent", Unit::Percent),
    Column::json_only("call_preempted_percent", Unit::Percent),
    Column::json_only("contention_percent", Unit::Percent),
    Column::json_only("unknown_percent", Unit::Percent),
    Column::json_only("stock_ple_exits_per_op", Unit::Ratio),
    Column::json_only("stock_yields_boosted_percent", Unit::Percent),
    Column::new("pairs", "pairs", Unit::Count),
    Column::json_only("unusable_pairs", Unit::Count),
    Column::json_only("window_ns", Unit::Nanoseconds),
    Column::json_only("discard_ns", Unit::Nanoseconds),
    Column::json_only("seed", Unit::Count),
    Column::json_only("scenario_sha256", Unit::Text),
    Column::json_only("replay", Unit::Text),
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

/// Of them, what people see only where rows differ in it, before the other columns.
const WHERE_DIFFERENT: [&str; 2] = ["pv_page", "ple_window"];

/// Keys are the fields of [`VmRow`].
const VMS: &[Column] = &[
    Column::new("shape", "VMs x vCPUs", Unit::Text),
    Column::new("lock", "lock", Unit::Text),
    Column::new("column", "scheduled by", Unit::Text),
    Column::new("vm", "VM", Unit::Text),
    Column::new("operations_per_s", "ops/s", Unit::Count),
    Column::new("operations_share_percent", "of all ops %", Unit::Percent),
    Column::new("cpu_share_percent", "of all CPU time %", Unit::Percent),
    Column::json_only("pairs", Unit::Count),
    Column::json_only("scenario_sha256", Unit::Text),
];

/// Keys are the fields of [`SampleRow`]; for programs alone.
const SAMPLES: &[Column] = &[
    Column::json_only("shape", Unit::Text),
    Column::json_only("lock", Unit::Text),
    Column::json_only("column", Unit::Text),
    Column::json_only("pair", Unit::Count),
    Column::json_only("operations_per_s", Unit::Count),
    Column::json_only("inefficiency_percent", Unit::Percent),
    Column::json_only("window_mean", Unit::Count),
    Column::json_only("scenario_sha256", Unit::Text),
];

/// Keys are the fields of [`WindowRow`].
const WINDOWS: &[Column] = &[
    Column::new("shape", "VMs x vCPUs", Unit::Text),
    Column::new("lock", "lock", Unit::Text),
    Column::new("column", "window by", Unit::Text),
    Column::new("operations_per_s", "ops/s", Unit::Count),
    Column::new("operations_deviation_per_s", "+-", Unit::Count),
    Column::new("inefficiency_percent", "inefficiency %", Unit::Percent),
    Column::new("inefficiency_deviation_percent", "+-", Unit::Percent),
    Column::new("window_mean", "window, mean", Unit::Count),
    Column::new("epochs", "epochs", Unit::Count),
    Column::new("window_deviation", "+- between epochs", Unit::Count),
    Column::new("unit_ns", "of each", Unit::Nanoseconds),
    Column::new("exits", "PLE exits", Unit::Count),
    Column::new("samples", "samples", Unit::Count),
    Column::json_only("scenario_sha256", Unit::Text),
];

/// Keys are the fields of a pooled row.
const POOLED: &[Column] = &[
    Column::new("policy", "policy", Unit::Text),
    Column::new("pv_page", "pv_page", Unit::Text),
    Column::new("cells", "cells", Unit::Count),
    Column::new("throughput_ratio_to_stock", "policy / stock", Unit::Ratio),
    Column::new("throughput_ratio_to_stock_low", "95 % from", Unit::Ratio),
    Column::new("throughput_ratio_to_stock_high", "to", Unit::Ratio),
    Column::new("harm", "harm", Unit::Text),
    Column::new("cells_harmed", "cells harmed", Unit::Count),
    Column::new("cells_not_resolved", "not resolved", Unit::Count),
    Column::new("cells_with_little_to_gain", "little to gain", Unit::Count),
    Column::new("little_ratio_to_stock", "policy / stock", Unit::Ratio),
    Column::new("little_ratio_to_stock_low", "95 % from", Unit::Ratio),
    Column::new("little_ratio_to_stock_high", "to", Unit::Ratio),
    Column::new("little_harm", "harm", Unit::Text),
    Column::new("cells_with_a_gap", "with a gap", Unit::Count),
    Column::new("least_gap_closed", "gap closed, least", Unit::Ratio),
    Column::new("mean_gap_closed", "mean", Unit::Ratio),
];

/// Keys are the fields of the null of all cells.
const NULL: &[Column] = &[
    Column::new("cells", "cells", Unit::Count),
    Column::new("stock_ratio_to_stock", "stock / stock", Unit::Ratio),
    Column::new("stock_ratio_to_stock_low", "95 % from", Unit::Ratio),
    Column::new("stock_ratio_to_stock_high", "to", Unit::Ratio),
    Column::new("null_verdict", "null", Unit::Text),
    Column::new("cells_that_exclude_1", "cells without 1", Unit::Count),
];

/// Adds every sample, for programs.
pub fn add_samples(document: &mut Document, rows: &[SampleRow]) {
    let mut table = Table::new("sample", "", SAMPLES);
    for row in rows {
        table.push(cells(row, SAMPLES));
    }
    document.table(table);
}

/// Adds the table of these rows.
pub fn add(document: &mut Document, rows: &[Row<Figures>]) {
    let steered = rows.iter().any(|row| row.policy.is_some());
    let pv_page = rows
        .iter()
        .any(|row| row.world.pv_page != rows[0].world.pv_page);
    let windows = rows
        .iter()
        .any(|row| row.world.ple_window != rows[0].world.ple_window);
    let mut columns = COLUMNS.to_vec();
    for column in &mut columns {
        column.json_only |= match steered {
            true => WITHOUT_POLICY.contains(&column.key),
            false => STEERED.contains(&column.key),
        };
        for (key, header, shown) in [
            (WHERE_DIFFERENT[0], "pv_page", pv_page),
            (WHERE_DIFFERENT[1], "PLE window", windows),
        ] {
            if column.key == key && shown {
                (column.json_only, column.header) = (false, header);
            }
        }
    }
    let mut table = Table::new("compare", "", &columns);
    for row in rows {
        table.push(cells(row, &columns));
    }
    document.table(table);
}

/// Adds the table of who got what; people see it where a scenario has several VMs.
pub fn add_vms(document: &mut Document, rows: &[VmRow]) {
    let several = rows.iter().any(|row| row.vm != "vm0");
    let mut columns = VMS.to_vec();
    for column in &mut columns {
        column.json_only |= !several;
    }
    let mut table = Table::new("vm", "What each VM got", &columns);
    for row in rows {
        table.push(cells(row, &columns));
    }
    document.table(table);
}

/// Adds the table of windows, if there is one.
pub fn add_windows(document: &mut Document, rows: &[WindowRow]) {
    if rows.is_empty() {
        return;
    }
    let title = "Windows, in PAUSEs (AMD) or TSC cycles (Intel); an epoch is 1,000 pause-loop exits of a VM";
    let mut table = Table::new("windows", title, WINDOWS);
    for row in rows {
        table.push(cells(row, WINDOWS));
    }
    document.table(table);
}

/// Adds all cells of each policy together, for several cells.
pub fn add_pooled(document: &mut Document, rows: &[Row<Figures>]) {
    let Some((policies, null)) = pool(rows) else {
        return;
    };
    let title = "All cells of a policy; harm: lower bound of policy / stock not above 0.90 in a cell, 0.97 in all together";
    let mut table = Table::new("pooled", title, POOLED);
    for row in &policies {
        table.push(cells(row, POOLED));
    }
    document.table(table);
    let title = "Stock against stock, all cells; one in 20 leaves 1 out by chance";
    let mut table = Table::new("null", title, NULL);
    table.push(cells(&null, NULL));
    document.table(table);
}

/// The fields that the columns name.
pub fn cells(row: &impl Serialize, columns: &[Column]) -> Vec<Cell> {
    let object = serde_json::to_value(row).expect("a struct of plain fields");
    columns
        .iter()
        .map(|column| cell(&object[column.key]))
        .collect()
}

fn cell(value: &Value) -> Cell {
    match value {
        Value::String(text) => text.as_str().into(),
        Value::Bool(flag) => (*flag).into(),
        Value::Number(number) => match number.as_u64() {
            Some(whole) if !number.is_f64() => whole.into(),
            _ => number.as_f64().into(),
        },
        _ => Cell::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn keys_of(columns: &[Column]) -> BTreeSet<String> {
        columns.iter().map(|column| column.key.to_owned()).collect()
    }

    fn fields_of(row: &impl Serialize) -> BTreeSet<String> {
        let object = serde_json::to_value(row).expect("JSON");
        object
            .as_object()
            .expect("an object")
            .keys()
            .cloned()
            .collect()
    }

    /// A field without a column would be lost without a word, a column without a field would always be unknown.
    #[test]
    fn columns_are_the_fields() {
        let row: Row<Figures> = serde_json::from_value(compared()).expect("a row");
        assert_eq!(keys_of(COLUMNS), fields_of(&row));
        let vm = serde_json::json!({"shape": "1x4", "lock": "ticket", "column": "stock", "vm": "vm0",
            "operations_per_s": 1.0, "operations_share_percent": null, "cpu_share_percent": 100.0, "pairs": 4,
            "scenario_sha256": ""});
        let row: VmRow = serde_json::from_value(vm).expect("a row");
        assert_eq!(keys_of(VMS), fields_of(&row));
        let sample = SampleRow {
            shape: "1x4".into(),
            lock: "ticket".into(),
            column: "stock".into(),
            pair: 0,
            operations_per_s: 1.0,
            inefficiency_percent: None,
            window_mean: None,
            scenario_sha256: String::new(),
        };
        assert_eq!(keys_of(SAMPLES), fields_of(&sample));
        for key in STEERED
            .iter()
            .chain(&WITHOUT_POLICY)
            .chain(&WHERE_DIFFERENT)
        {
            assert!(COLUMNS.iter().any(|column| column.key == *key), "{key}");
        }
    }

    /// The least that makes a row.
    fn compared() -> Value {
        serde_json::json!({"shape": "1x4", "lock": "ticket", "overcommit": 2.0, "pv_page": true, "ideal_per_s": 1000.0,
            "ideal_deviation_per_s": 1.0, "stock_per_s": 200.0, "stock_deviation_per_s": 2.0,
            "stock_ratio_to_ideal": 0.2, "stock_verdict": "lower", "stock_ratio_to_stock": 1.0,
            "stock_collapsed_share_percent": 100.0, "pairs": 4, "unusable_pairs": 0, "window_ns": 500,
            "discard_ns": 250, "seed": 1, "scenario_sha256": "", "replay": ""})
    }

    #[test]
    fn values_keep_their_kind() {
        let values = serde_json::json!([null, true, 3, 2.0, "x"]);
        let cells: Vec<Cell> = values
            .as_array()
            .expect("an array")
            .iter()
            .map(cell)
            .collect();
        assert_eq!(
            cells,
            [
                Cell::Unknown,
                Cell::Flag(true),
                Cell::Integer(3),
                Cell::Real(2.0),
                Cell::Text("x".into())
            ]
        );
    }
}

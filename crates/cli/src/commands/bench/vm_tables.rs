// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table of `unspin bench vm`.

use unspin_experiment::lock_matrix::Cell;
use unspin_lockbench::latency::median;
use unspin_report::{Cell as Shown, Column, Document, Table, Unit};
use unspin_scenario::Scenario;

use crate::commands::bench::plot::format_work;

const COLUMNS: &[Column] = &[
    Column::new("lock", "lock", Unit::Text),
    Column::new("vms", "VMs", Unit::Count),
    Column::new("vcpus", "vCPUs", Unit::Count),
    Column::new("hold", "hold", Unit::Text),
    Column::new("think", "think", Unit::Text),
    Column::new("neighbours", "neighbours", Unit::Count),
    Column::new("samples", "samples", Unit::Count),
    Column::new("operations_per_second", "ops/s (median)", Unit::Count),
    Column::new("operations_per_second_least", "least", Unit::Count),
    Column::new("operations_per_second_most", "most", Unit::Count),
    Column::new("ratio", "to first lock", Unit::Ratio),
    Column::new("null_ratio", "null", Unit::Ratio),
    Column::new("jain_index", "Jain", Unit::Ratio),
    Column::new("wait_p50_ns", "wait p50", Unit::Nanoseconds),
    Column::new("wait_p95_ns", "p95", Unit::Nanoseconds),
    Column::new("wait_p99_ns", "p99", Unit::Nanoseconds),
    Column::new("wait_longest_ns", "longest", Unit::Nanoseconds),
    Column::new("cpu_per_operation_ns", "CPU/op", Unit::Nanoseconds),
    Column::new("lock_halts", "halts", Unit::Count),
    Column::new("kicks", "kicks", Unit::Count),
    Column::json_only("operations", Unit::Count),
    Column::json_only("lock_waits", Unit::Count),
    Column::json_only("pauses", Unit::Count),
];

/// Adds a row for each lock at each point.
pub fn add(document: &mut Document, scenario: &Scenario, cells: &[Cell]) {
    document.note(format!(
        "{}: seed {}, scenario {}",
        scenario.name,
        scenario.seed,
        scenario.hash()
    ));
    let mut table = Table::new("vm", "", COLUMNS);
    for cell in cells.iter().filter(|cell| !cell.is_again) {
        table.push(row(cell, cells));
    }
    document.table(table);
    document.note(
        "ops/s: of all VMs, neighbours left out; null: the point's first lock run twice, the second by the first.\n\
         wait: of acquisitions that found the lock taken; percentiles are upper bounds of buckets by powers of two.\n\
         longest: of the whole run; all else of the window, over all samples.",
    );
}

fn row(cell: &Cell, cells: &[Cell]) -> Vec<Shown> {
    let of_point = || cells.iter().filter(|other| other.point == cell.point);
    let rate_of = |found: Option<&Cell>| found.and_then(|cell| median(&cell.rates()));
    let first = rate_of(of_point().next());
    let again = rate_of(of_point().find(|other| other.is_again));
    let by_first = |rate: Option<f64>| {
        let pair = rate.zip(first.filter(|first| *first > 0.0));
        pair.map(|(rate, first)| rate / first)
    };
    let rates = cell.rates();
    let rate = median(&rates);
    vec![
        cell.lock.name().into(),
        cell.vms.into(),
        cell.vcpus.into(),
        format_work(&cell.hold).into(),
        format_work(&cell.think).into(),
        cell.neighbours.into(),
        cell.samples.len().into(),
        rate.into(),
        rates.iter().copied().reduce(f64::min).into(),
        rates.iter().copied().reduce(f64::max).into(),
        by_first(rate).into(),
        by_first(again).into(),
        cell.jain().into(),
        cell.wait_ns(500).into(),
        cell.wait_ns(950).into(),
        cell.wait_ns(990).into(),
        cell.longest_ns().into(),
        cell.cpu_ns_per_operation().into(),
        cell.sum(|window| window.lock_halts).into(),
        cell.sum(|window| window.kicks).into(),
        cell.sum(|window| window.operations).into(),
        cell.sum(|window| window.lock_waits).into(),
        cell.sum(|window| window.pauses).into(),
    ]
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! All cells of a policy together: what it gives, the least it closes, and whether it does harm anywhere.

use unspin_report::{Cell, Column, Document, Harm, PooledCell, Table, Unit, pooled};

use crate::compare_row::Row;

/// From this ratio of stock to ideal on there is little to gain, and what is left to see is harm.
const LITTLE_TO_GAIN: f64 = 0.8;

const COLUMNS: &[Column] = &[
    Column::new("policy", "policy", Unit::Text),
    Column::new("hints", "hints", Unit::Text),
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

/// Adds the table, for several cells.
pub fn add(document: &mut Document, rows: &[Row]) {
    let mut groups: Vec<(&str, bool)> = Vec::new();
    for row in rows {
        let group = (row.policy.as_deref().unwrap_or("stock"), row.hints);
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    if rows.len() <= groups.len() {
        return;
    }
    let title = "All cells of a policy; harm: lower bound of policy / stock not above 0.90 in a cell, 0.97 in all together";
    let mut table = Table::new("pooled", title, COLUMNS);
    for (policy, hints) in groups.iter().filter(|(policy, _)| *policy != "stock") {
        let of = |row: &&Row| row.policy.as_deref() == Some(policy) && row.hints == *hints;
        table.push(cells(
            policy,
            *hints,
            &rows.iter().filter(of).collect::<Vec<_>>(),
        ));
    }
    document.table(table);
    document.table(null(rows));
}

fn cells(policy: &str, hints: bool, rows: &[&Row]) -> Vec<Cell> {
    let little = |row: &&&Row| row.stock_ratio_to_ideal >= LITTLE_TO_GAIN;
    let (little, gaps): (Vec<&Row>, Vec<&Row>) = rows.iter().partition(|row| little(row));
    let harmed = |word: &str| {
        let cells = rows.iter().filter(|row| row.harm.as_deref() == Some(word));
        cells.count()
    };
    let closed: Vec<f64> = gaps.iter().filter_map(|row| row.gap_closed).collect();
    let least = closed.iter().copied().reduce(f64::min);
    let mean = (!closed.is_empty()).then(|| closed.iter().sum::<f64>() / closed.len() as f64);
    let mut cells: Vec<Cell> = vec![policy.into(), hints.into(), rows.len().into()];
    cells.extend(judged(rows));
    cells.push(harmed(Harm::Harm.name()).into());
    cells.push(harmed(Harm::NotResolved.name()).into());
    cells.push(little.len().into());
    cells.extend(judged(&little));
    cells.extend([closed.len().into(), least.into(), mean.into()]);
    cells
}

/// Ratio, bounds and verdict; unknown as soon as one cell has none.
fn judged(rows: &[&Row]) -> [Cell; 4] {
    let of = |row: &&Row| {
        Some(PooledCell {
            ratio: row.throughput_ratio_to_stock?,
            high: row.throughput_ratio_to_stock_high?,
            pairs: (row.pairs - row.unusable_pairs) as usize,
        })
    };
    let cells: Option<Vec<PooledCell>> = rows.iter().map(of).collect();
    let unusable: u64 = rows.iter().map(|row| row.unusable_pairs).sum();
    let Some((ratio, interval)) = cells.and_then(|cells| pooled(&cells)) else {
        return [const { Cell::Unknown }; 4];
    };
    let harm = match (
        unusable,
        interval.low > Harm::POOLED,
        interval.high < Harm::POOLED,
    ) {
        (0, true, _) => Harm::None,
        (_, _, true) => Harm::Harm,
        _ => Harm::NotResolved,
    };
    [
        ratio.into(),
        interval.low.into(),
        interval.high.into(),
        harm.name().into(),
    ]
}

const NULL: &[Column] = &[
    Column::new("cells", "cells", Unit::Count),
    Column::new("stock_ratio_to_stock", "stock / stock", Unit::Ratio),
    Column::new("stock_ratio_to_stock_low", "95 % from", Unit::Ratio),
    Column::new("stock_ratio_to_stock_high", "to", Unit::Ratio),
    Column::new("null_verdict", "null", Unit::Text),
    Column::new("cells_that_exclude_1", "cells without 1", Unit::Count),
];

/// Stock against stock: each cell once, whatever the number of its policies.
fn null(rows: &[Row]) -> Table {
    let mut table = Table::new(
        "null",
        "Stock against stock, all cells; one in 20 leaves 1 out by chance",
        NULL,
    );
    let mut cells: Vec<&Row> = Vec::new();
    for row in rows {
        let known = |other: &&Row| other.replay == row.replay;
        if !cells.iter().any(known) {
            cells.push(row);
        }
    }
    let of = |row: &&Row| {
        Some(PooledCell {
            ratio: row.stock_ratio_to_stock,
            high: row.stock_ratio_to_stock_high?,
            pairs: row.pairs as usize,
        })
    };
    let all: Option<Vec<PooledCell>> = cells.iter().map(of).collect();
    let result = all.and_then(|all| pooled(&all));
    let without = cells
        .iter()
        .filter(|row| row.null_verdict.as_deref() == Some("excludes 1"))
        .count();
    table.push(vec![
        cells.len().into(),
        result.map(|(ratio, _)| ratio).into(),
        result.map(|(_, interval)| interval.low).into(),
        result.map(|(_, interval)| interval.high).into(),
        result
            .map(
                |(_, interval)| match interval.low <= 1.0 && 1.0 <= interval.high {
                    true => "includes 1",
                    false => "excludes 1",
                },
            )
            .into(),
        without.into(),
    ]);
    table
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! All cells of a policy together: what it gives, the least it closes, and whether it does harm anywhere.

use unspin_report::{Cell, Column, Document, Harm, PooledCell, Table, Unit, pooled};

use crate::commands::compare::row::Row;

/// From this ratio of stock to ideal on there is little to gain, and what is left to see is harm.
const LITTLE_TO_GAIN: f64 = 0.8;

const COLUMNS: &[Column] = &[
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

/// Adds the table, for several cells.
pub fn add(document: &mut Document, rows: &[Row]) {
    let mut groups: Vec<(&str, bool)> = Vec::new();
    for row in rows {
        let group = (row.policy.as_deref().unwrap_or("stock"), row.pv_page);
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    if rows.len() <= groups.len() {
        return;
    }
    let title = "All cells of a policy; harm: lower bound of policy / stock not above 0.90 in a cell, 0.97 in all together";
    let mut table = Table::new("pooled", title, COLUMNS);
    for (policy, pv_page) in groups.iter().filter(|(policy, _)| *policy != "stock") {
        let of = |row: &&Row| row.policy.as_deref() == Some(policy) && row.pv_page == *pv_page;
        table.push(cells(
            policy,
            *pv_page,
            &rows.iter().filter(of).collect::<Vec<_>>(),
        ));
    }
    document.table(table);
    document.table(null(rows));
}

fn cells(policy: &str, pv_page: bool, rows: &[&Row]) -> Vec<Cell> {
    let little = |row: &&&Row| row.stock_ratio_to_ideal >= LITTLE_TO_GAIN;
    let (little, gaps): (Vec<&Row>, Vec<&Row>) = rows.iter().partition(|row| little(row));
    let harmed = |word: &str| {
        let cells = rows.iter().filter(|row| row.harm.as_deref() == Some(word));
        cells.count()
    };
    let closed: Vec<f64> = gaps.iter().filter_map(|row| row.gap_closed).collect();
    let least = closed.iter().copied().reduce(f64::min);
    let mean = (!closed.is_empty()).then(|| closed.iter().sum::<f64>() / closed.len() as f64);
    let mut cells: Vec<Cell> = vec![policy.into(), pv_page.into(), rows.len().into()];
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn row(shape: &str, policy: &str, stock: f64, (ratio, low, high): (f64, f64, f64)) -> Row {
        let row = json!({"shape": shape, "lock": "ticket", "overcommit": 2.0, "pv_page": true, "ideal_per_s": 1000.0,
            "ideal_deviation_per_s": 1.0, "stock_per_s": 200.0, "stock_deviation_per_s": 2.0,
            "stock_ratio_to_ideal": stock, "stock_verdict": "lower", "stock_ratio_to_stock": 1.001,
            "stock_ratio_to_stock_high": 1.02, "null_verdict": "includes 1", "stock_collapsed_share_percent": 100.0,
            "policy": policy, "throughput_ratio_to_stock": ratio, "throughput_ratio_to_stock_low": low,
            "throughput_ratio_to_stock_high": high, "harm": "no harm", "gap_closed": 0.9, "pairs": 4,
            "unusable_pairs": 0, "window_ns": 500, "discard_ns": 250, "seed": 1, "scenario_sha256": "",
            "replay": shape});
        serde_json::from_value(row).expect("a row")
    }

    fn tables(rows: &[Row]) -> Vec<Value> {
        let mut document = Document::new("compare", "here");
        add(&mut document, rows);
        let mut out = Vec::new();
        document.write_json(&mut out).expect("a Vec takes it");
        let object: Value = serde_json::from_slice(&out).expect("JSON");
        object["rows"].as_array().expect("rows").clone()
    }

    /// A gain of 4 in one cell does not hide what another cell loses.
    #[test]
    fn gains_do_not_hide_harm() {
        let rows = [
            row("1x4", "loan", 0.2, (4.0, 3.9, 4.1)),
            row("1x2", "loan", 1.0, (0.95, 0.945, 0.955)),
        ];
        let tables = tables(&rows);
        let pooled = &tables[0];
        assert_eq!(
            (&pooled["policy"], &pooled["cells"]),
            (&"loan".into(), &2.into())
        );
        assert_eq!(pooled["harm"], "no harm");
        assert_eq!(pooled["little_harm"], "harm");
        assert_eq!(
            (&pooled["cells_with_a_gap"], &pooled["least_gap_closed"]),
            (&1.into(), &0.9.into())
        );
        let null = &tables[1];
        assert_eq!(
            (&null["cells"], &null["null_verdict"]),
            (&2.into(), &"includes 1".into())
        );
    }

    #[test]
    fn one_cell_is_not_pooled() {
        assert!(tables(&[row("1x4", "loan", 0.2, (4.0, 3.9, 4.1))]).is_empty());
    }

    #[test]
    fn a_cell_of_several_policies_has_one_null() {
        let rows = ["1x4", "2x4"].map(|shape| {
            ["loan", "kernel-exit"].map(|policy| row(shape, policy, 0.2, (4.0, 3.9, 4.1)))
        });
        let tables = tables(&rows.concat());
        assert_eq!(tables.len(), 3);
        assert_eq!(tables[2]["cells"], 2);
    }
}

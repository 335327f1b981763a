// SPDX-License-Identifier: MIT OR Apache-2.0
//! All cells of a policy together: what it gives, the least it closes, and whether it does harm anywhere.

use serde::Deserialize;
use unspin_report::{Harm, Interval, PooledCell, pooled};

use crate::{Estimate, Row, kvm, row};

/// From this ratio of stock to ideal on there is little to gain, and what is left to see is harm.
const LITTLE_TO_GAIN: f64 = 0.8;

unspin_report::row! {
    "pooled", ["compare"];
    /// All cells of a policy together, where there are several.
    #[derive(Clone, Debug, Deserialize)]
    pub struct PooledRow {
        /// The policy.
        pub policy: String = ("policy", Text),
        /// Whether all guests say what they hold and wait for.
        pub pv_page: bool = ("pv_page", Text),
        /// Cells.
        pub cells: u64 = ("cells", Count),
        /// Geometric mean of policy / stock over the cells; none as soon as one cell has none.
        pub throughput_ratio_to_stock: Option<f64> = ("policy / stock", Ratio),
        /// Its 95 % interval.
        pub throughput_ratio_to_stock_low: Option<f64> = ("95 % from", Ratio),
        /// Its 95 % interval.
        pub throughput_ratio_to_stock_high: Option<f64> = ("to", Ratio),
        /// `no harm` (the lower bound is above 0.97), `harm` or `not resolved`.
        pub harm: Option<String> = ("harm", Text),
        /// Cells in which the policy does harm (0.90).
        pub cells_harmed: u64 = ("cells harmed", Count),
        /// Cells in which that is not resolved.
        pub cells_not_resolved: u64 = ("not resolved", Count),
        /// Cells in which stock has at least 0.8 of the ideal.
        pub cells_with_little_to_gain: u64 = ("little to gain", Count),
        /// Geometric mean of policy / stock over these.
        pub little_ratio_to_stock: Option<f64> = ("policy / stock", Ratio),
        /// Its 95 % interval.
        pub little_ratio_to_stock_low: Option<f64> = ("95 % from", Ratio),
        /// Its 95 % interval.
        pub little_ratio_to_stock_high: Option<f64> = ("to", Ratio),
        /// As `harm`, of these.
        pub little_harm: Option<String> = ("harm", Text),
        /// Cells of the others in which there is a gap between stock and ideal.
        pub cells_with_a_gap: u64 = ("with a gap", Count),
        /// The least that is closed of it.
        pub least_gap_closed: Option<f64> = ("gap closed, least", Ratio),
        /// What is closed in the mean.
        pub mean_gap_closed: Option<f64> = ("mean", Ratio),
    }
}

unspin_report::row! {
    "null", ["compare"];
    /// Stock against stock in all cells, where there are several.
    #[derive(Clone, Debug, Deserialize)]
    pub struct NullRow {
        /// Cells, each once, whatever the number of its policies.
        pub cells: u64 = ("cells", Count),
        /// Geometric mean of stock / stock over the cells.
        pub stock_ratio_to_stock: Option<f64> = ("stock / stock", Ratio),
        /// Its 95 % interval.
        pub stock_ratio_to_stock_low: Option<f64> = ("95 % from", Ratio),
        /// Its 95 % interval.
        pub stock_ratio_to_stock_high: Option<f64> = ("to", Ratio),
        /// `includes 1` or `excludes 1`.
        pub null_verdict: Option<String> = ("null", Text),
        /// Cells whose own interval excludes 1; one in 20 does by chance.
        pub cells_that_exclude_1: u64 = ("cells without 1", Count),
    }
}

/// All policies and the null, for several cells; `None` for one.
pub fn pool(rows: &[Row<kvm::Figures>]) -> Option<(Vec<PooledRow>, NullRow)> {
    let mut groups: Vec<(Option<&str>, bool)> = Vec::new();
    for row in rows {
        let group = (row.policy.as_deref(), row.world.pv_page);
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    if rows.len() <= groups.len() {
        return None;
    }
    let policies = groups.iter().filter_map(|(policy, pv_page)| {
        let policy = (*policy)?;
        let of = |row: &&Row<kvm::Figures>| {
            row.policy.as_deref() == Some(policy) && row.world.pv_page == *pv_page
        };
        let rows: Vec<_> = rows.iter().filter(of).collect();
        Some(of_policy(policy, *pv_page, &rows))
    });
    Some((policies.collect(), null(rows)))
}

fn of_policy(policy: &str, pv_page: bool, rows: &[&Row<kvm::Figures>]) -> PooledRow {
    type Rows<'a> = Vec<&'a Row<kvm::Figures>>;
    let little = |row: &&Row<kvm::Figures>| {
        let to_ideal = row.to_ideal.map(|of| of.value);
        to_ideal.is_some_and(|ratio| ratio >= LITTLE_TO_GAIN)
    };
    let (little, gaps): (Rows, Rows) = rows.iter().copied().partition(little);
    let harmed = |harm: Harm| {
        let cells = rows.iter();
        let cells = cells.filter(|row| row.harm.as_deref() == Some(harm.name()));
        cells.count() as u64
    };
    let closed = gaps.iter().filter_map(|row| row.gap_closed);
    let closed: Vec<f64> = closed.map(|gap| gap.value).collect();
    let (all, few) = (judged(rows), judged(&little));
    let interval = |of: Option<Judged>| of.map(|of| of.interval);
    PooledRow {
        policy: policy.to_owned(),
        pv_page,
        cells: rows.len() as u64,
        throughput_ratio_to_stock: all.map(|of| of.ratio),
        throughput_ratio_to_stock_low: interval(all).map(|of| of.low),
        throughput_ratio_to_stock_high: interval(all).map(|of| of.high),
        harm: all.map(|of| of.harm.name().to_owned()),
        cells_harmed: harmed(Harm::Harm),
        cells_not_resolved: harmed(Harm::NotResolved),
        cells_with_little_to_gain: little.len() as u64,
        little_ratio_to_stock: few.map(|of| of.ratio),
        little_ratio_to_stock_low: interval(few).map(|of| of.low),
        little_ratio_to_stock_high: interval(few).map(|of| of.high),
        little_harm: few.map(|of| of.harm.name().to_owned()),
        cells_with_a_gap: closed.len() as u64,
        least_gap_closed: closed.iter().copied().reduce(f64::min),
        mean_gap_closed: (!closed.is_empty())
            .then(|| closed.iter().sum::<f64>() / closed.len() as f64),
    }
}

/// Several cells together.
#[derive(Clone, Copy)]
struct Judged {
    ratio: f64,
    interval: Interval,
    harm: Harm,
}

/// None as soon as one cell has none.
fn judged(rows: &[&Row<kvm::Figures>]) -> Option<Judged> {
    let unusable = |row: &Row<kvm::Figures>| row.unusable_pairs.unwrap_or(0);
    let of = |row: &&Row<kvm::Figures>| pooled_cell(row.to_stock?, row.pairs - unusable(row));
    let cells: Option<Vec<PooledCell>> = rows.iter().map(of).collect();
    let (ratio, interval) = pooled(&cells?)?;
    let unusable: u64 = rows.iter().map(|row| unusable(row)).sum();
    let harm = match (
        unusable,
        interval.low > Harm::POOLED,
        interval.high < Harm::POOLED,
    ) {
        (0, true, _) => Harm::None,
        (_, _, true) => Harm::Harm,
        _ => Harm::NotResolved,
    };
    Some(Judged {
        ratio,
        interval,
        harm,
    })
}

fn pooled_cell(of: Estimate, pairs: u64) -> Option<PooledCell> {
    Some(PooledCell {
        ratio: of.known()?,
        high: of.high?,
        pairs: pairs as usize,
    })
}

/// Stock against stock.
fn null(rows: &[Row<kvm::Figures>]) -> NullRow {
    let mut cells: Vec<&Row<kvm::Figures>> = Vec::new();
    for row in rows {
        let known = |other: &&Row<kvm::Figures>| other.world.replay == row.world.replay;
        if !cells.iter().any(known) {
            cells.push(row);
        }
    }
    let of = |row: &&Row<kvm::Figures>| pooled_cell(row.null?, row.pairs);
    let all: Option<Vec<PooledCell>> = cells.iter().map(of).collect();
    let all = all
        .and_then(|all| pooled(&all))
        .map(|(ratio, interval)| Estimate::new(ratio, Some((interval.low, interval.high)), 1.0));
    let excludes =
        |row: &&&Row<kvm::Figures>| row.null.and_then(|null| null.includes(1.0)) == Some(false);
    NullRow {
        cells: cells.len() as u64,
        stock_ratio_to_stock: all.map(|of| of.value),
        stock_ratio_to_stock_low: all.and_then(|of| of.low),
        stock_ratio_to_stock_high: all.and_then(|of| of.high),
        null_verdict: all.and_then(|of| row::say_null(&of)),
        cells_that_exclude_1: cells.iter().filter(excludes).count() as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn row(
        shape: &str,
        policy: &str,
        stock: f64,
        (ratio, low, high): (f64, f64, f64),
    ) -> Row<kvm::Figures> {
        let row = json!({"shape": shape, "lock": "ticket", "overcommit": 2.0, "pv_page": true, "ideal_per_s": 1000.0,
            "ideal_deviation_per_s": 1.0, "stock_per_s": 200.0, "stock_deviation_per_s": 2.0,
            "stock_ratio_to_ideal": stock, "stock_verdict": "lower", "stock_ratio_to_stock": 1.001,
            "stock_ratio_to_stock_low": 0.98, "stock_ratio_to_stock_high": 1.02, "null_verdict": "includes 1", "stock_collapsed_share_percent": 100.0,
            "policy": policy, "throughput_ratio_to_stock": ratio, "throughput_ratio_to_stock_low": low,
            "throughput_ratio_to_stock_high": high, "harm": "no harm", "gap_closed": 0.9, "pairs": 4,
            "unusable_pairs": 0, "window_ns": 500, "discard_ns": 250, "seed": 1, "scenario_sha256": "",
            "replay": shape});
        serde_json::from_value(row).expect("a row")
    }

    /// A gain of 4 in one cell does not hide what another cell loses.
    #[test]
    fn gains_do_not_hide_harm() {
        let rows = [
            row("1x4", "loan", 0.2, (4.0, 3.9, 4.1)),
            row("1x2", "loan", 1.0, (0.95, 0.945, 0.955)),
        ];
        let (pooled, null) = pool(&rows).expect("several cells");
        let pooled = &pooled[0];
        assert_eq!((pooled.policy.as_str(), pooled.cells), ("loan", 2));
        assert_eq!(pooled.harm.as_deref(), Some("no harm"));
        assert_eq!(pooled.little_harm.as_deref(), Some("harm"));
        assert_eq!(
            (pooled.cells_with_a_gap, pooled.least_gap_closed),
            (1, Some(0.9))
        );
        assert_eq!(
            (null.cells, null.null_verdict.as_deref()),
            (2, Some("includes 1"))
        );
    }

    #[test]
    fn one_cell_is_not_pooled() {
        assert!(pool(&[row("1x4", "loan", 0.2, (4.0, 3.9, 4.1))]).is_none());
    }

    #[test]
    fn a_cell_of_several_policies_has_one_null() {
        let rows = ["1x4", "2x4"].map(|shape| {
            ["loan", "kernel-exit"].map(|policy| row(shape, policy, 0.2, (4.0, 3.9, 4.1)))
        });
        let (pooled, null) = pool(&rows.concat()).expect("several cells");
        assert_eq!((pooled.len(), null.cells), (2, 2));
    }
}

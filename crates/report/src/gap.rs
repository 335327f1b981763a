// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a policy gives back of what stock loses, and whether it does harm (docs/method.md).

use crate::{Comparison, Interval, Summary, student_t_975};

/// Below this ratio of ideal to stock there is hardly a gap: a share of it would be noise over noise.
const GAP_FROM: f64 = 1.02;

/// The share of the gap between stock and ideal that a policy closes; 1: all of it, below 0: it widens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GapClosed {
    /// (policy - stock) / (ideal - stock), of the means.
    pub share: f64,
    /// Its 95 % interval over the pairs (jackknife); `None` for a single pair, or when one pair alone decides whether
    /// there is a gap at all.
    pub interval: Option<Interval>,
}

impl GapClosed {
    /// Of samples that belong together by index: pair k of each. `None` where ideal is not 2 % above stock, or there are
    /// no samples.
    pub fn of(ideal: &[f64], stock: &[f64], policy: &[f64]) -> Option<GapClosed> {
        let pairs = ideal.len().min(stock.len()).min(policy.len());
        let share = share(pairs, None, ideal, stock, policy)?;
        let pseudo_values: Option<Vec<f64>> = (0..pairs)
            .map(|out| {
                let without = self::share(pairs, Some(out), ideal, stock, policy)?;
                Some(pairs as f64 * share - (pairs - 1) as f64 * without)
            })
            .collect();
        let interval = pseudo_values
            .filter(|values| values.len() > 1)
            .and_then(|values| Summary::of(&values))
            .map(|summary| summary.interval);
        Some(GapClosed { share, interval })
    }
}

/// Of the first `pairs` samples without one of them.
fn share(
    pairs: usize,
    without: Option<usize>,
    ideal: &[f64],
    stock: &[f64],
    policy: &[f64],
) -> Option<f64> {
    let mean = |samples: &[f64]| {
        let kept = (0..pairs).filter(|&at| Some(at) != without);
        let kept: Vec<f64> = kept.map(|at| samples[at]).collect();
        Summary::of(&kept).map(|summary| summary.mean)
    };
    let (ideal, stock, policy) = (mean(ideal)?, mean(stock)?, mean(policy)?);
    (ideal > GAP_FROM * stock).then(|| (policy - stock) / (ideal - stock))
}

/// A non-inferiority test: is policy / stock certainly above a bound?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Harm {
    /// The whole 95 % interval lies above the bound.
    None,
    /// The whole interval lies below it.
    Harm,
    /// Neither: the samples do not tell.
    NotResolved,
}

impl Harm {
    /// The bound of one cell.
    pub const CELL: f64 = 0.90;
    /// The bound of all cells together.
    pub const POOLED: f64 = 0.97;

    /// Judges a ratio policy / stock by `bound`. A comparison with unusable pairs is never more than not resolved.
    pub fn of(ratio: &Comparison, bound: f64) -> Harm {
        if ratio.unusable_pairs > 0 {
            Harm::NotResolved
        } else if ratio.interval.low > bound {
            Harm::None
        } else if ratio.interval.high < bound {
            Harm::Harm
        } else {
            Harm::NotResolved
        }
    }

    /// The words in tables.
    pub fn name(self) -> &'static str {
        match self {
            Harm::None => "no harm",
            Harm::Harm => "harm",
            Harm::NotResolved => "not resolved",
        }
    }
}

/// One cell of a matrix, as far as pooling needs it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cell {
    /// Geometric mean of the cell's ratios.
    pub ratio: f64,
    /// Upper bound of its 95 % interval.
    pub high: f64,
    /// Pairs behind it, at least 2.
    pub pairs: usize,
}

/// Geometric mean over cells, each with the same weight, and its 95 % interval: what the pairs within the cells leave
/// open (standard errors add up as squares; degrees of freedom by Welch and Satterthwaite, rounded down). It says nothing
/// about cells that were not run. `None` without cells, or when one has fewer than 2 pairs.
pub fn pooled(cells: &[Cell]) -> Option<(f64, Interval)> {
    if cells.is_empty() || cells.iter().any(|cell| cell.pairs < 2) {
        return None;
    }
    let count = cells.len() as f64;
    let mean = cells.iter().map(|cell| cell.ratio.ln()).sum::<f64>() / count;
    let squares: Vec<(f64, f64)> = cells
        .iter()
        .map(|cell| {
            let error = (cell.high.ln() - cell.ratio.ln()) / student_t_975(cell.pairs - 1);
            (error * error, (cell.pairs - 1) as f64)
        })
        .collect();
    let sum: f64 = squares.iter().map(|(square, _)| square).sum();
    let below: f64 = squares
        .iter()
        .map(|(square, of)| square * square / of)
        .sum();
    let freedom = if below > 0.0 { sum * sum / below } else { 1.0 };
    let half = student_t_975((freedom as usize).max(1)) * sum.sqrt() / count;
    let interval = Interval {
        low: (mean - half).exp(),
        high: (mean + half).exp(),
    };
    Some((mean.exp(), interval))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_that_is_none_is_not_closed() {
        let closed = |ideal, stock, policy| {
            GapClosed::of(&[ideal], &[stock], &[policy]).map(|closed| closed.share)
        };
        assert_eq!(closed(200.0, 100.0, 150.0), Some(0.5));
        assert_eq!(closed(200.0, 100.0, 50.0), Some(-0.5));
        assert_eq!(closed(101.0, 100.0, 101.0), None);
        assert_eq!(closed(90.0, 100.0, 95.0), None);
        assert_eq!(GapClosed::of(&[], &[], &[]), None);
    }

    #[test]
    fn the_interval_of_a_gap_is_as_wide_as_the_pairs_differ() {
        let flat = GapClosed::of(&[200.0; 4], &[100.0; 4], &[190.0; 4]).expect("a gap");
        let interval = flat.interval.expect("four pairs");
        for value in [flat.share, interval.low, interval.high] {
            assert!((value - 0.9).abs() < 1e-9, "{flat:?}");
        }
        // Shares 0.8, 1.0, 0.8, 1.0 of a gap that is the same in all pairs: the jackknife is the mean's own t interval,
        // 0.9 +- 3.182 * 0.1155 / 2.
        let spread = [180.0, 200.0, 180.0, 200.0];
        let spread = GapClosed::of(&[200.0; 4], &[100.0; 4], &spread).expect("a gap");
        let interval = spread.interval.expect("four pairs");
        assert!((spread.share - 0.9).abs() < 1e-9);
        assert!((interval.low - 0.7163).abs() < 1e-3, "{interval:?}");
        assert!((interval.high - 1.0837).abs() < 1e-3, "{interval:?}");
        let one = GapClosed::of(&[200.0], &[100.0], &[190.0]).expect("a gap");
        assert_eq!(one.interval, None);
    }

    #[test]
    fn harm_is_what_lies_below_the_bound() {
        let judged = |ratios: &[f64]| {
            let pairs: Vec<_> = ratios.iter().map(|&ratio| (ratio, 1.0)).collect();
            Harm::of(&Comparison::of(&pairs).expect("pairs"), Harm::CELL)
        };
        assert_eq!(judged(&[0.95, 0.96, 0.95, 0.96]), Harm::None);
        assert_eq!(judged(&[0.80, 0.81, 0.80, 0.81]), Harm::Harm);
        assert_eq!(judged(&[0.5, 1.5, 0.5, 1.5]), Harm::NotResolved);
        assert_eq!(judged(&[2.0]), Harm::NotResolved);
        assert_eq!(judged(&[0.95, 0.96, 0.95, 0.0]), Harm::NotResolved);
    }

    #[test]
    fn pooling_narrows_what_single_cells_leave_open() {
        let pairs = [(0.95, 1.0), (1.0, 1.0), (1.05, 1.0), (1.0, 1.0)];
        let of = Comparison::of(&pairs).expect("pairs");
        let cell = Cell {
            ratio: of.ratio,
            high: of.interval.high,
            pairs: of.pairs,
        };
        let (ratio, one) = pooled(&[cell]).expect("a cell");
        assert!((ratio - of.ratio).abs() < 1e-9);
        assert!((one.low - of.interval.low).abs() < 1e-9);
        let (ratio, sixteen) = pooled(&[cell; 16]).expect("cells");
        assert!((ratio - of.ratio).abs() < 1e-9);
        assert!(sixteen.low > one.low && sixteen.high < one.high);
        assert_eq!(pooled(&[]), None);
        assert_eq!(pooled(&[Cell { pairs: 1, ..cell }]), None);
    }
}

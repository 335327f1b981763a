// SPDX-License-Identifier: MIT OR Apache-2.0
//! A figure that was measured, with its interval and what it is of.

use unspin_report::{Comparison, Summary};

use crate::source::Pairs;

/// A value, and its interval where it has one.
pub(crate) type Bounded = (f64, Option<(f64, f64)>);

/// What was measured beside a paper's number.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The figure; for a claim of order the figures, in the order that the paper claims is ascending.
    pub values: Vec<f64>,
    /// 95 % interval of a single figure (benchmarks of before: from the least to the most of their runs); none of one run.
    pub interval: Option<(f64, f64)>,
    /// How many seeds or pairs.
    pub pairs: Pairs,
    /// Why it is older than what it depends on; empty when it is not.
    pub stale: String,
}

impl Measured {
    /// The figure, where it is one.
    pub fn value(&self) -> Option<f64> {
        match self.values[..] {
            [value] => Some(value),
            _ => None,
        }
    }
}

/// A mean and its 95 % interval; none of nothing.
pub(crate) fn mean(samples: &[f64]) -> Option<Bounded> {
    let summary = Summary::of(samples)?;
    let interval = (samples.len() > 1).then_some((summary.interval.low, summary.interval.high));
    Some((summary.mean, interval))
}

/// The ratio of two figures, seed by seed: the geometric mean and its interval. Where a count is 0, whose logarithm is none,
/// the ratio of the sums, with the interval of the first alone; none where the second is 0 throughout.
pub(crate) fn ratio(a: &[f64], b: &[f64]) -> Option<Bounded> {
    let pairs: Vec<(f64, f64)> = a.iter().copied().zip(b.iter().copied()).collect();
    if pairs.iter().any(|(a, b)| !a.is_finite() || !b.is_finite()) {
        return None;
    }
    if pairs.iter().all(|(a, b)| *a > 0.0 && *b > 0.0) {
        let of = Comparison::of(&pairs)?;
        let interval = (of.pairs > 1).then_some((of.interval.low, of.interval.high));
        return Some((of.ratio, interval));
    }
    let to = b.iter().sum::<f64>() / b.len() as f64;
    if to <= 0.0 {
        return None;
    }
    let shares: Vec<f64> = a.iter().map(|a| a / to).collect();
    mean(&shares)
}

/// The arithmetic mean of figures, each with its interval: half-widths add up as those of independent figures do.
pub(crate) fn mean_of(figures: &[Bounded]) -> Option<Bounded> {
    let count = figures.len() as f64;
    if figures.is_empty() {
        return None;
    }
    if let [one] = figures {
        return Some(*one);
    }
    let mean = figures.iter().map(|(value, _)| value).sum::<f64>() / count;
    let halves: Option<Vec<f64>> = figures
        .iter()
        .map(|(_, interval)| interval.map(|(low, high)| (high - low) / 2.0))
        .collect();
    let interval = halves.map(|halves| {
        let half = halves.iter().map(|half| half * half).sum::<f64>().sqrt() / count;
        (mean - half, mean + half)
    });
    Some((mean, interval))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_of_pairs() {
        let (ratio, interval) = ratio(&[2.0, 4.0], &[1.0, 2.0]).unwrap();
        assert!((ratio - 2.0).abs() < 1e-12);
        let (low, high) = interval.unwrap();
        assert!((low - 2.0).abs() < 1e-9 && (high - 2.0).abs() < 1e-9);
        assert_eq!(super::ratio(&[1.0], &[2.0]), Some((0.5, None)));
    }

    #[test]
    fn counts_of_nothing_have_a_ratio_unless_all_are() {
        let (of, _) = ratio(&[0.0, 0.0], &[4.0, 6.0]).unwrap();
        assert_eq!(of, 0.0);
        let (of, _) = ratio(&[0.0, 2.0], &[4.0, 4.0]).unwrap();
        assert_eq!(of, 0.25);
        assert_eq!(ratio(&[1.0, 1.0], &[0.0, 0.0]), None);
        assert_eq!(ratio(&[f64::NAN], &[1.0]), None);
        assert_eq!(ratio(&[], &[]), None);
    }

    #[test]
    fn a_mean_of_figures_is_surer_than_each() {
        let each = (4.0, Some((3.0, 5.0)));
        let (mean, interval) = mean_of(&[each; 4]).unwrap();
        let (low, high) = interval.unwrap();
        assert_eq!(mean, 4.0);
        assert!((high - low - 1.0).abs() < 1e-12);
        assert_eq!(mean_of(&[each, (2.0, None)]), Some((3.0, None)));
        assert_eq!(mean_of(&[each]), Some(each));
        assert_eq!(mean_of(&[]), None);
    }
}

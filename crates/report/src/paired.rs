// SPDX-License-Identifier: MIT OR Apache-2.0
//! Statistics of repeated and of paired measurements (docs/method.md).
//!
//! Rates are compared by their ratio, pair by pair, and averaged as logarithms: twice as fast and half as fast cancel.

use crate::student::student_t_975;

/// Two-sided 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Lower bound; minus infinity (ratio: 0) when one value gives no interval.
    pub low: f64,
    /// Upper bound; infinite when one value gives no interval.
    pub high: f64,
}

/// Mean and spread of repeated samples of one thing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// How many samples.
    pub samples: usize,
    /// Their arithmetic mean.
    pub mean: f64,
    /// Standard deviation of the samples (n - 1); 0 for one sample.
    pub deviation: f64,
    /// Least sample.
    pub least: f64,
    /// Largest sample.
    pub largest: f64,
    /// 95 % interval of the mean.
    pub interval: Interval,
}

/// What a comparison shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The interval lies above 1.
    Higher,
    /// The interval lies below 1.
    Lower,
    /// The half-width exceeds the effect: the samples do not tell.
    NotResolved,
}

/// A against B, measured in pairs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// Pairs that count: both values above 0 and finite.
    pub pairs: usize,
    /// Pairs left out because a value was 0, negative or not finite; anything but 0 must be reported.
    pub unusable_pairs: usize,
    /// Geometric mean of A / B.
    pub ratio: f64,
    /// 95 % interval of that ratio, from Student's t on the logarithms.
    pub interval: Interval,
    /// What it shows.
    pub verdict: Verdict,
}

impl Summary {
    /// `None` for no samples. A sample that is not finite makes every figure so.
    pub fn of(samples: &[f64]) -> Option<Summary> {
        let count = samples.len();
        if count == 0 {
            return None;
        }
        let mean = samples.iter().sum::<f64>() / count as f64;
        let squares: f64 = samples.iter().map(|x| (x - mean).powi(2)).sum();
        let deviation = if count > 1 {
            (squares / (count - 1) as f64).sqrt()
        } else {
            0.0
        };
        let half = half_width(deviation, count);
        Some(Summary {
            samples: count,
            mean,
            deviation,
            least: samples.iter().copied().fold(f64::INFINITY, f64::min),
            largest: samples.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            interval: Interval {
                low: mean - half,
                high: mean + half,
            },
        })
    }
}

impl Comparison {
    /// Compares `pairs` of (A, B); `None` when no pair can be used.
    pub fn of(pairs: &[(f64, f64)]) -> Option<Comparison> {
        let usable = |value: f64| value.is_finite() && value > 0.0;
        let logs: Vec<f64> = pairs
            .iter()
            .filter(|(a, b)| usable(*a) && usable(*b))
            .map(|(a, b)| a.ln() - b.ln())
            .collect();
        let summary = Summary::of(&logs)?;
        let half = half_width(summary.deviation, logs.len());
        let verdict = if half > summary.mean.abs() || summary.mean == 0.0 {
            Verdict::NotResolved
        } else if summary.mean > 0.0 {
            Verdict::Higher
        } else {
            Verdict::Lower
        };
        Some(Comparison {
            pairs: logs.len(),
            unusable_pairs: pairs.len() - logs.len(),
            ratio: summary.mean.exp(),
            interval: Interval {
                low: summary.interval.low.exp(),
                high: summary.interval.high.exp(),
            },
            verdict,
        })
    }
}

impl Verdict {
    /// The word in tables: `higher`, `lower`, `not resolved`.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Higher => "higher",
            Verdict::Lower => "lower",
            Verdict::NotResolved => "not resolved",
        }
    }
}

/// Share (0 to 1) of `samples` that fall below `fraction` of `reference`; 0 for none.
///
/// Stock is bimodal: its mean alone hides whether every run is a little slower or some runs collapse.
pub fn collapsed_share(samples: &[f64], reference: f64, fraction: f64) -> f64 {
    if samples.is_empty() {
        return 0.0;
    }
    let collapsed = samples
        .iter()
        .filter(|&&x| x < reference * fraction)
        .count();
    collapsed as f64 / samples.len() as f64
}

/// Half of the 95 % interval of a mean; infinite for one sample, which says nothing about spread.
fn half_width(deviation: f64, count: usize) -> f64 {
    if count < 2 {
        return f64::INFINITY;
    }
    student_t_975(count - 1) * deviation / (count as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn close(got: f64, expected: f64) {
        assert!(
            (got - expected).abs() < 1e-3 * expected.abs().max(1.0),
            "{got} {expected}"
        );
    }

    #[test]
    fn summary_of_known_samples() {
        // 2, 4, 4, 4, 5, 5, 7, 9: mean 5, squares 32, deviation sqrt(32/7) = 2.138, t(7) = 2.365.
        let summary = Summary::of(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).expect("samples");
        close(summary.mean, 5.0);
        close(summary.deviation, 2.138);
        close(summary.interval.low, 5.0 - 1.788);
        close(summary.interval.high, 5.0 + 1.788);
        assert_eq!(
            (summary.least, summary.largest, summary.samples),
            (2.0, 9.0, 8)
        );
        assert_eq!(Summary::of(&[]), None);
    }

    #[test]
    fn one_sample_has_no_interval() {
        let summary = Summary::of(&[3.0]).expect("a sample");
        assert_eq!((summary.mean, summary.deviation), (3.0, 0.0));
        assert!(summary.interval.high.is_infinite());
        let comparison = Comparison::of(&[(10.0, 1.0)]).expect("a pair");
        assert_eq!(comparison.verdict, Verdict::NotResolved);
        assert_eq!(
            (comparison.interval.low, comparison.interval.high),
            (0.0, f64::INFINITY)
        );
    }

    #[test]
    fn ratio_of_known_pairs() {
        // Ratios 2, 2, 8, 8: logs ln 2 * (1, 1, 3, 3), mean 2 ln 2, deviation 2/sqrt(3) ln 2 = 0.8004, t(3) = 3.182.
        let pairs = [(2.0, 1.0), (4.0, 2.0), (8.0, 1.0), (80.0, 10.0)];
        let comparison = Comparison::of(&pairs).expect("pairs");
        close(comparison.ratio, 4.0);
        close(
            comparison.interval.low,
            (4f64.ln() - 3.182 * 0.800_4 / 2.0).exp(),
        );
        close(
            comparison.interval.high,
            (4f64.ln() + 3.182 * 0.800_4 / 2.0).exp(),
        );
        assert_eq!(comparison.verdict, Verdict::Higher);
    }

    #[test]
    fn opposite_ratios_cancel_and_are_not_resolved() {
        let comparison = Comparison::of(&[(2.0, 1.0), (1.0, 2.0)]).expect("pairs");
        close(comparison.ratio, 1.0);
        assert_eq!(comparison.verdict, Verdict::NotResolved);
        let same = Comparison::of(&[(5.0, 5.0); 4]).expect("pairs");
        assert_eq!((same.ratio, same.verdict), (1.0, Verdict::NotResolved));
    }

    #[test]
    fn lower_when_the_interval_is_below_one() {
        let comparison = Comparison::of(&[(1.0, 10.0), (1.1, 10.0), (0.9, 10.0)]).expect("pairs");
        assert_eq!(comparison.verdict, Verdict::Lower);
        assert!(comparison.interval.high < 1.0);
    }

    #[test]
    fn unusable_pairs_are_counted() {
        let pairs = [(0.0, 1.0), (1.0, f64::NAN), (2.0, 1.0), (-1.0, 1.0)];
        let comparison = Comparison::of(&pairs).expect("one pair");
        assert_eq!((comparison.pairs, comparison.unusable_pairs), (1, 3));
        assert_eq!(Comparison::of(&pairs[..2]), None);
    }

    #[test]
    fn collapsed() {
        close(collapsed_share(&[1.0, 2.0, 60.0, 70.0], 100.0, 0.5), 0.5);
        assert_eq!(collapsed_share(&[], 100.0, 0.5), 0.0);
    }

    proptest! {
        #[test]
        fn verdict_agrees_with_the_interval(
            pairs in proptest::collection::vec((1e-3f64..1e6, 1e-3f64..1e6), 2..40),
        ) {
            let c = Comparison::of(&pairs).expect("usable");
            prop_assert!(c.interval.low <= c.ratio && c.ratio <= c.interval.high);
            match c.verdict {
                Verdict::Higher => prop_assert!(c.interval.low >= 1.0 - 1e-9),
                Verdict::Lower => prop_assert!(c.interval.high <= 1.0 + 1e-9),
                Verdict::NotResolved => {
                    prop_assert!(c.interval.low <= 1.0 + 1e-9 && c.interval.high >= 1.0 - 1e-9)
                }
            }
            let swapped: Vec<_> = pairs.iter().map(|&(a, b)| (b, a)).collect();
            let back = Comparison::of(&swapped).expect("usable");
            prop_assert!((back.ratio * c.ratio - 1.0).abs() < 1e-9);
        }
    }
}

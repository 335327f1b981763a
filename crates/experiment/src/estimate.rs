// SPDX-License-Identifier: MIT OR Apache-2.0
//! A figure, how sure it is, and what it shows (docs/method.md).

use std::{fmt, str::FromStr};

use unspin_report::{Comparison, GapClosed, Verdict as Shown};

/// What an estimate shows, beside the value that stands for no effect: 1 for a ratio, 0 for a gap closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The whole interval lies above it.
    Higher,
    /// The whole interval lies below it.
    Lower,
    /// Neither: the pairs do not tell.
    NotResolved,
    /// So many pairs had to be left out, so whatever the others say nothing is resolved.
    Unusable(u64),
}

impl fmt::Display for Verdict {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Higher => out.write_str(Shown::Higher.name()),
            Verdict::Lower => out.write_str(Shown::Lower.name()),
            Verdict::NotResolved => out.write_str(Shown::NotResolved.name()),
            Verdict::Unusable(pairs) => {
                write!(out, "{}, {pairs} pairs unusable", Shown::NotResolved.name())
            }
        }
    }
}

impl FromStr for Verdict {
    type Err = String;

    /// What [`Verdict::fmt`] writes.
    fn from_str(text: &str) -> Result<Verdict, String> {
        let plain = [Verdict::Higher, Verdict::Lower, Verdict::NotResolved];
        if let Some(verdict) = plain.into_iter().find(|it| it.to_string() == text) {
            return Ok(verdict);
        }
        text.strip_prefix("not resolved, ")
            .and_then(|rest| rest.strip_suffix(" pairs unusable"))
            .and_then(|pairs| pairs.parse().ok())
            .map(Verdict::Unusable)
            .ok_or_else(|| format!("`{text}` is no verdict"))
    }
}

/// A figure over the pairs of a comparison.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The figure; not finite where no pair gives one.
    pub value: f64,
    /// Lower bound of its 95 % interval; `None` where the pairs give none, as a single one.
    pub low: Option<f64>,
    /// Upper bound.
    pub high: Option<f64>,
    /// What it shows.
    pub verdict: Verdict,
}

impl Estimate {
    /// Of a ratio to a column in which work was done, of one in which nothing was: no case of "not resolved".
    pub const NOTHING_DONE: Estimate = Estimate {
        value: f64::NAN,
        low: None,
        high: None,
        verdict: Verdict::Lower,
    };

    /// Of a value and its bounds; `no_effect` is the value that would show none.
    pub fn new(value: f64, bounds: Option<(f64, f64)>, no_effect: f64) -> Estimate {
        Estimate {
            value,
            low: bounds.map(|(low, _)| low),
            high: bounds.map(|(_, high)| high),
            verdict: match bounds {
                Some((low, _)) if low > no_effect => Verdict::Higher,
                Some((_, high)) if high < no_effect => Verdict::Lower,
                _ => Verdict::NotResolved,
            },
        }
    }

    /// Of rates in pairs. Never resolved where pairs had to be left out.
    pub fn of_ratio(of: &Comparison) -> Estimate {
        let bounds = (of.pairs > 1).then_some((of.interval.low, of.interval.high));
        let verdict = match (of.unusable_pairs, of.verdict) {
            (0, Shown::Higher) => Verdict::Higher,
            (0, Shown::Lower) => Verdict::Lower,
            (0, Shown::NotResolved) => Verdict::NotResolved,
            (pairs, _) => Verdict::Unusable(pairs as u64),
        };
        Estimate {
            verdict,
            ..Estimate::new(of.ratio, bounds, 1.0)
        }
    }

    /// Of the share of a gap that is closed.
    pub fn of_gap(of: &GapClosed) -> Estimate {
        let bounds = of.interval.map(|interval| (interval.low, interval.high));
        Estimate::new(of.share, bounds, 0.0)
    }

    /// The figure, where there is one.
    pub fn known(&self) -> Option<f64> {
        Some(self.value).filter(|value| value.is_finite())
    }

    /// Whether the interval includes that value; `None` without an interval.
    pub fn includes(&self, value: f64) -> Option<bool> {
        let (low, high) = self.low.zip(self.high)?;
        Some(low <= value && value <= high)
    }
}

/// A against B, pair by pair; `None` when no pair can be used.
pub fn ratio(a: &[f64], b: &[f64]) -> Option<Comparison> {
    let pairs: Vec<(f64, f64)> = a.iter().copied().zip(b.iter().copied()).collect();
    Comparison::of(&pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(a: &[f64], b: &[f64]) -> Estimate {
        Estimate::of_ratio(&ratio(a, b).expect("a pair"))
    }

    #[test]
    fn a_single_pair_has_no_bounds_and_shows_nothing() {
        let one = of(&[4.0], &[2.0]);
        assert!((one.value - 2.0).abs() < 1e-12);
        assert_eq!((one.low, one.high, one.includes(1.0)), (None, None, None));
        assert_eq!(one.verdict, Verdict::NotResolved);
    }

    #[test]
    fn pairs_that_agree_are_resolved_and_pairs_left_out_resolve_nothing() {
        let twice = of(&[2.0, 4.1, 6.0], &[1.0, 2.0, 3.0]);
        assert_eq!(twice.verdict, Verdict::Higher);
        assert_eq!(twice.includes(1.0), Some(false));
        let half = of(&[1.0, 2.0, 3.0], &[2.0, 4.1, 6.0]);
        assert_eq!(half.verdict, Verdict::Lower);
        let same = of(&[1.0, 2.0, 1.0], &[2.0, 1.0, 1.0]);
        assert_eq!(same.verdict, Verdict::NotResolved);
        assert_eq!(same.includes(1.0), Some(true));
        let stalled = of(&[2.0, 0.0, 4.1, 6.0], &[1.0, 1.0, 2.0, 3.0]);
        assert_eq!(stalled.verdict, Verdict::Unusable(1));
    }

    #[test]
    fn a_gap_that_is_closed_is_above_0() {
        let (ideal, stock) = ([10.0, 10.1, 9.9], [1.0, 1.1, 0.9]);
        let gap = |policy: &[f64]| {
            Estimate::of_gap(&GapClosed::of(&ideal, &stock, policy).expect("a gap"))
        };
        assert_eq!(gap(&[9.0, 9.1, 8.9]).verdict, Verdict::Higher);
        assert_eq!(gap(&[0.5, 0.6, 0.4]).verdict, Verdict::Lower);
        assert_eq!(gap(&[0.0, 4.0, 1.0]).verdict, Verdict::NotResolved);
    }

    #[test]
    fn verdicts_are_read_as_they_are_written() {
        use Verdict::{Higher, Lower, NotResolved, Unusable};
        for verdict in [Higher, Lower, NotResolved, Unusable(1), Unusable(12)] {
            assert_eq!(verdict.to_string().parse(), Ok(verdict));
        }
        for wrong in ["", "harm", "not resolved, x pairs unusable"] {
            assert!(wrong.parse::<Verdict>().is_err(), "{wrong}");
        }
    }
}

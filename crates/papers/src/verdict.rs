// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether what was measured agrees with what a paper says. Computed, never written by hand.

use crate::{
    claim::{Expected, Figure},
    measured::Measured,
};

/// Figures agree in size within this ratio, either way. Ours: half of what the lab is held to (docs/lab-conformance.md).
pub const SIZE_RATIO: f64 = 1.25;

/// What became of a claim, in the order in which they are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Another sign or order, or, of a figure without a kind, another size.
    Disagrees,
    /// The interval includes no effect and the paper's figure is one, or it is wider than the paper's figure is large.
    NotResolved,
    /// Nobody has measured it.
    NotMeasured,
    /// The same sign or order, another size.
    AgreesInKind,
    /// Within [`SIZE_RATIO`], or with the paper's figure in the interval, and the sign is the same.
    AgreesInSize,
    /// A rule that tests check.
    Tested,
    /// It cannot be had; the reason says why.
    CannotBeHad,
}

impl Verdict {
    /// All, in order.
    pub const ALL: [Verdict; 7] = [
        Verdict::Disagrees,
        Verdict::NotResolved,
        Verdict::NotMeasured,
        Verdict::AgreesInKind,
        Verdict::AgreesInSize,
        Verdict::Tested,
        Verdict::CannotBeHad,
    ];

    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Disagrees => "disagrees",
            Verdict::NotResolved => "not resolved",
            Verdict::NotMeasured => "not measured",
            Verdict::AgreesInKind => "agrees in kind",
            Verdict::AgreesInSize => "agrees in size",
            Verdict::Tested => "rule, tested",
            Verdict::CannotBeHad => "cannot be had",
        }
    }

    /// Whether there is a figure behind it.
    pub fn is_measured(self) -> bool {
        matches!(
            self,
            Verdict::Disagrees
                | Verdict::NotResolved
                | Verdict::AgreesInKind
                | Verdict::AgreesInSize
        )
    }

    /// Of the worlds of one figure: the worst that was measured; else the rule, then what is missing.
    pub fn of_worlds(each: &[Verdict]) -> Verdict {
        let measured = each.iter().copied().filter(|verdict| verdict.is_measured());
        let least = |verdict| each.contains(&verdict).then_some(verdict);
        measured
            .min()
            .or(least(Verdict::Tested))
            .or(least(Verdict::NotMeasured))
            .unwrap_or(Verdict::CannotBeHad)
    }

    /// What a measured figure says of the paper's.
    pub fn of(figure: &Figure, measured: &Measured) -> Verdict {
        match (figure.expected, measured.value()) {
            (Expected::Ascending, _) => order(&measured.values),
            (Expected::Range { low, high }, Some(value)) => {
                range(figure, (low, high), value, measured.interval)
            }
            // Words, or an order where a number is claimed: a file of claims that `check` refuses.
            _ => Verdict::NotMeasured,
        }
    }
}

fn order(values: &[f64]) -> Verdict {
    match values.windows(2).all(|pair| pair[0] < pair[1]) {
        true => Verdict::AgreesInKind,
        false => Verdict::Disagrees,
    }
}

fn range(
    figure: &Figure,
    (low, high): (f64, f64),
    value: f64,
    interval: Option<(f64, f64)>,
) -> Verdict {
    let (low, high) = (low - figure.tolerance, high + figure.tolerance);
    if (low..=high).contains(&value) {
        return Verdict::AgreesInSize;
    }
    let overlaps = interval.is_some_and(|(from, to)| from <= high && low <= to);
    // The paper's nearest figure, and where both stand beside no effect.
    let paper = if value < low { low } else { high };
    // Where the paper's range has no effect in it, another figure has no sign to agree in.
    let between = figure
        .between_kinds()
        .filter(|between| !(low..=high).contains(between) || paper == *between);
    let Some(between) = between else {
        let wide = interval.is_some_and(|(from, to)| to - from > paper.abs());
        return match (near(value, paper), overlaps, wide) {
            (true, ..) | (_, true, false) => Verdict::AgreesInSize,
            (false, true, true) => Verdict::NotResolved,
            (false, false, _) => Verdict::Disagrees,
        };
    };
    let same_side = (value - between) * (paper - between) > 0.0;
    let resolved = interval.is_none_or(|(from, to)| !(from <= between && between <= to));
    match (resolved, same_side, overlaps || near(value, paper)) {
        (false, ..) => Verdict::NotResolved,
        (true, false, _) => Verdict::Disagrees,
        (true, true, true) => Verdict::AgreesInSize,
        (true, true, false) => Verdict::AgreesInKind,
    }
}

/// Within [`SIZE_RATIO`], and of one sign.
fn near(a: f64, b: f64) -> bool {
    a * b > 0.0 && (1.0 / SIZE_RATIO..=SIZE_RATIO).contains(&(a / b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        claim::Unit,
        source::{Pairs, Source, Sources},
    };
    use proptest::prelude::*;

    fn figure(low: f64, high: f64, unit: Unit) -> Figure {
        let nothing = || Source::Cannot {
            reason: String::from("a test"),
        };
        Figure {
            what: String::new(),
            expected: Expected::Range { low, high },
            unit,
            of: String::new(),
            side: None,
            tolerance: 0.0,
            fitted: false,
            sources: Sources::new([nothing(), nothing(), nothing()]),
            reason: String::new(),
        }
    }

    fn measured(value: f64, interval: Option<(f64, f64)>) -> Measured {
        Measured {
            values: vec![value],
            interval,
            pairs: Pairs {
                pairs: 5,
                shortfall: false,
            },
            stale: String::new(),
        }
    }

    fn of(low: f64, high: f64, unit: Unit, value: f64, interval: Option<(f64, f64)>) -> Verdict {
        Verdict::of(&figure(low, high, unit), &measured(value, interval))
    }

    #[test]
    fn a_ratio_agrees_in_size_in_kind_or_not() {
        let verdict = |value, interval| of(4.0, 4.0, Unit::Ratio, value, interval);
        assert_eq!(verdict(3.9, None), Verdict::AgreesInSize);
        assert_eq!(verdict(5.0, None), Verdict::AgreesInSize);
        assert_eq!(verdict(5.1, None), Verdict::AgreesInKind);
        assert_eq!(verdict(2.0, Some((1.5, 4.1))), Verdict::AgreesInSize);
        assert_eq!(verdict(2.0, Some((1.5, 2.5))), Verdict::AgreesInKind);
        assert_eq!(verdict(0.9, Some((0.8, 0.95))), Verdict::Disagrees);
        assert_eq!(verdict(0.9, Some((0.7, 1.1))), Verdict::NotResolved);
        assert_eq!(verdict(2.0, Some((0.9, 5.0))), Verdict::NotResolved);
        assert_eq!(verdict(1.2, Some((0.9, 1.5))), Verdict::NotResolved);
    }

    #[test]
    fn a_small_effect_of_the_other_sign_disagrees_though_the_ratio_is_near() {
        assert_eq!(of(1.08, 1.08, Unit::Ratio, 0.95, None), Verdict::Disagrees);
        assert_eq!(
            of(-7.6, -7.6, Unit::ChangePercent, -7.0, None),
            Verdict::AgreesInSize
        );
        assert_eq!(
            of(-7.6, -7.6, Unit::ChangePercent, -20.0, None),
            Verdict::AgreesInKind
        );
        assert_eq!(
            of(-7.6, -7.6, Unit::ChangePercent, 7.6, None),
            Verdict::Disagrees
        );
    }

    #[test]
    fn bounds_and_ranges() {
        let at_most = f64::NEG_INFINITY;
        assert_eq!(
            of(at_most, 6.0, Unit::Percent, 2.0, None),
            Verdict::AgreesInSize
        );
        assert_eq!(
            of(at_most, 6.0, Unit::Percent, 20.0, None),
            Verdict::Disagrees
        );
        // "Unchanged", and "falls by 20 % at most": a larger change is no agreement in kind.
        assert_eq!(
            of(-1.0, 1.0, Unit::ChangePercent, -15.0, Some((-20.0, -7.0))),
            Verdict::Disagrees
        );
        assert_eq!(
            of(-20.0, f64::INFINITY, Unit::ChangePercent, -50.0, None),
            Verdict::Disagrees
        );
        // "Falls".
        assert_eq!(
            of(at_most, 0.0, Unit::ChangePercent, 5.0, None),
            Verdict::Disagrees
        );
        assert_eq!(
            of(50.0, f64::INFINITY, Unit::Percent, 90.0, None),
            Verdict::AgreesInSize
        );
        assert_eq!(
            of(-100.0, -85.0, Unit::ChangePercent, -60.0, None),
            Verdict::AgreesInKind
        );
        assert_eq!(
            of(-100.0, -85.0, Unit::ChangePercent, -90.0, None),
            Verdict::AgreesInSize
        );
    }

    #[test]
    fn shares_have_a_kind_only_where_a_side_is_given() {
        let mut share = figure(99.3, 99.3, Unit::Percent);
        assert_eq!(
            Verdict::of(&share, &measured(60.0, None)),
            Verdict::Disagrees
        );
        share.side = Some(50.0);
        assert_eq!(
            Verdict::of(&share, &measured(60.0, None)),
            Verdict::AgreesInKind
        );
        assert_eq!(
            Verdict::of(&share, &measured(40.0, None)),
            Verdict::Disagrees
        );
        let mut nothing = figure(0.0, 0.0, Unit::Percent);
        assert_eq!(
            Verdict::of(&nothing, &measured(0.04, None)),
            Verdict::Disagrees
        );
        nothing.tolerance = 0.1;
        assert_eq!(
            Verdict::of(&nothing, &measured(0.04, None)),
            Verdict::AgreesInSize
        );
    }

    #[test]
    fn an_order_is_right_or_not() {
        let mut claim = figure(0.0, 0.0, Unit::Ratio);
        claim.expected = Expected::Ascending;
        let values = |values: &[f64]| Measured {
            values: values.to_vec(),
            ..measured(0.0, None)
        };
        assert_eq!(
            Verdict::of(&claim, &values(&[1.0, 2.0, 3.0])),
            Verdict::AgreesInKind
        );
        assert_eq!(
            Verdict::of(&claim, &values(&[1.0, 3.0, 2.0])),
            Verdict::Disagrees
        );
        assert_eq!(
            Verdict::of(&claim, &values(&[1.0, 1.0])),
            Verdict::Disagrees
        );
    }

    #[test]
    fn the_worst_world_counts() {
        use Verdict::*;
        assert_eq!(
            Verdict::of_worlds(&[AgreesInSize, Disagrees, CannotBeHad]),
            Disagrees
        );
        assert_eq!(
            Verdict::of_worlds(&[NotMeasured, AgreesInKind, CannotBeHad]),
            AgreesInKind
        );
        assert_eq!(
            Verdict::of_worlds(&[Tested, NotMeasured, CannotBeHad]),
            Tested
        );
        assert_eq!(
            Verdict::of_worlds(&[NotMeasured, CannotBeHad, CannotBeHad]),
            NotMeasured
        );
        assert_eq!(Verdict::of_worlds(&[CannotBeHad]), CannotBeHad);
    }

    proptest! {
        #[test]
        fn the_paper_s_own_figure_agrees_in_size(value in 0.01f64..1000.0, unit in 0usize..6) {
            let units = [Unit::Ratio, Unit::ChangePercent, Unit::Percent, Unit::PerSecond, Unit::Nanoseconds, Unit::Count];
            prop_assert_eq!(of(value, value, units[unit], value, None), Verdict::AgreesInSize);
        }

        #[test]
        fn a_wide_interval_is_no_agreement(value in 0.01f64..100.0, off in 1.5f64..10.0, unit in 0usize..3) {
            let units = [Unit::Ratio, Unit::ChangePercent, Unit::Percent];
            let interval = Some((value * off - 1000.0, value * off + 1000.0));
            prop_assert_eq!(of(value, value, units[unit], value * off, interval), Verdict::NotResolved);
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! When a figure under our scheduler is harm, by what it was under the kernel's own.

use unspin_report::Summary;

/// So many half-widths of the 95 % prediction interval a figure has to lie away from the kernel's. A canary looks hundreds of times,
/// at several figures of each VM, so one interval would be left by chance. Chosen so that the property test of `watch.rs` ends less than one in a
/// hundred canaries whose two schedulers do the same.
const WIDTHS: f64 = 4.0;
/// Groups under the kernel's scheduler without which nothing is judged: two have hardly a deviation.
const GROUPS_MIN: usize = 3;

/// Which way is worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Worse {
    Lower,
    Higher,
}

/// How two values are compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Scale {
    /// By their ratio. Less than `floor` counts as that: it is nothing, and has a logarithm.
    Ratio { floor: f64 },
    /// Percentages, by the logarithm of their odds: near 0 and near 100 they vary less than between. Nothing and all are half a percent off.
    Odds,
}

/// What is harm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rule {
    pub(crate) scale: Scale,
    pub(crate) worse: Worse,
    /// Worse by more than this is harm: a factor above 1; of odds: 1, their difference decides.
    pub(crate) by: f64,
    /// What differs by no more than this is none, whatever its ratio: in the figure's own unit.
    pub(crate) least: f64,
    /// So many values in a row are one group, whose mean is judged.
    pub(crate) group: usize,
}

impl Rule {
    fn scaled(&self, value: f64) -> f64 {
        match self.scale {
            Scale::Ratio { floor } => value.max(floor).ln(),
            Scale::Odds => {
                let percent = value.clamp(0.5, 99.5);
                (percent / (100.0 - percent)).ln()
            }
        }
    }

    fn unscaled(&self, scaled: f64) -> f64 {
        match self.scale {
            Scale::Ratio { .. } => scaled.exp(),
            Scale::Odds => 100.0 / (1.0 + (-scaled).exp()),
        }
    }

    /// Away from 0 in the direction that is worse.
    fn signed(&self, scaled: f64) -> f64 {
        match self.worse {
            Worse::Lower => -scaled,
            Worse::Higher => scaled,
        }
    }

    fn mean(&self, values: &[f64]) -> f64 {
        values.iter().map(|value| self.scaled(*value)).sum::<f64>() / values.len() as f64
    }
}

/// A figure under the kernel's scheduler, and where harm begins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Baseline {
    rule: Rule,
    mean: f64,
    limit: f64,
}

/// A figure that is harm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Judged {
    /// Under the kernel's own scheduler: mean (of ratios: geometric).
    pub kernel: f64,
    /// Under ours, of the last group.
    pub steered: f64,
    /// From here on it is harm.
    pub limit: f64,
}

impl Baseline {
    /// Of the values of each phase of the kernel's scheduler, in order of time; `None`: too few for a judgement. Values that follow one another are alike, so
    /// the spread is that of means of groups, not of single values.
    pub(crate) fn of(rule: Rule, phases: &[Vec<f64>]) -> Option<Baseline> {
        let groups = phases
            .iter()
            .flat_map(|phase| phase.chunks_exact(rule.group));
        let means: Vec<f64> = groups.map(|group| rule.mean(group)).collect();
        if means.len() < GROUPS_MIN {
            return None;
        }
        let of = Summary::of(&means)?;
        // The half-width of the mean's interval is t s / sqrt(n), that of one more group's t s sqrt(1 + 1/n).
        let half = (of.interval.high - of.mean) * ((of.samples + 1) as f64).sqrt();
        Some(Baseline {
            rule,
            mean: of.mean,
            limit: of.mean + rule.signed(rule.by.ln().max(WIDTHS * half)),
        })
    }

    /// Judges the last group under our scheduler; `None`: no harm, or values are missing.
    pub(crate) fn judge(&self, recent: &[f64]) -> Option<Judged> {
        let rule = &self.rule;
        let last = recent.len().checked_sub(rule.group)?;
        let mean = rule.mean(&recent[last..]);
        let kernel = rule.unscaled(self.mean);
        let (limit, least) = (rule.unscaled(self.limit), kernel + rule.signed(rule.least));
        let judged = Judged {
            kernel,
            steered: rule.unscaled(mean),
            limit: match rule.worse {
                Worse::Lower => limit.min(least),
                Worse::Higher => limit.max(least),
            },
        };
        (rule.signed(judged.steered) > rule.signed(judged.limit)).then_some(judged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOSS: Rule = Rule {
        scale: Scale::Ratio { floor: 1e-3 },
        worse: Worse::Lower,
        by: 1.25,
        least: 0.0,
        group: 2,
    };
    const RISE: Rule = Rule {
        scale: Scale::Odds,
        worse: Worse::Higher,
        by: 1.0,
        least: 10.0,
        group: 2,
    };

    fn baseline(rule: Rule, values: &[f64]) -> Baseline {
        Baseline::of(rule, &[values.to_vec()]).expect("enough")
    }

    #[test]
    fn a_steady_figure_is_judged_by_the_threshold_alone() {
        let steady = baseline(LOSS, &[100.0; 6]);
        assert_eq!(steady.judge(&[81.0, 81.0]), None);
        let harm = steady.judge(&[79.0, 79.0]).expect("below 80");
        assert!((harm.limit - 80.0).abs() < 1e-9 && (harm.kernel - 100.0).abs() < 1e-9);
        assert!((harm.steered - 79.0).abs() < 1e-9);
        // Better is never harm.
        assert_eq!(steady.judge(&[1e6, 1e6]), None);
        let rises = baseline(RISE, &[20.0; 6]);
        assert_eq!(rises.judge(&[29.9, 29.9]), None);
        let harm = rises.judge(&[30.1, 30.1]).expect("10 points more");
        assert!((harm.limit - 30.0).abs() < 1e-9, "{harm:?}");
        assert_eq!(rises.judge(&[0.0, 0.0]), None);
        // What is all spun already cannot become worse.
        assert_eq!(baseline(RISE, &[95.0; 6]).judge(&[100.0, 100.0]), None);
    }

    #[test]
    fn a_restless_figure_has_to_be_far_off() {
        let restless = baseline(LOSS, &[60.0, 60.0, 100.0, 100.0, 160.0, 160.0]);
        assert_eq!(restless.judge(&[50.0, 50.0]), None);
        assert_eq!(restless.judge(&[20.0, 20.0]), None);
        // What changes within groups alone is no unrest.
        let within = baseline(LOSS, &[60.0, 160.0, 60.0, 160.0, 60.0, 160.0]);
        assert!(within.judge(&[50.0, 50.0]).is_some());
    }

    #[test]
    fn one_value_ends_nothing_and_only_the_last_group_counts() {
        let steady = baseline(LOSS, &[100.0; 6]);
        assert_eq!(steady.judge(&[]), None);
        assert_eq!(steady.judge(&[1.0]), None);
        assert_eq!(steady.judge(&[1.0, 100.0, 100.0]), None);
        assert!(steady.judge(&[100.0, 100.0, 70.0, 70.0]).is_some());
    }

    #[test]
    fn nothing_has_a_logarithm_and_little_is_no_harm() {
        let steady = baseline(LOSS, &[0.5; 6]);
        let harm = steady.judge(&[0.0, 0.0]).expect("all is lost");
        assert!((harm.steered - 1e-3).abs() < 1e-12);
        let idle = baseline(LOSS, &[0.0; 6]);
        assert_eq!(idle.judge(&[0.0, 0.0]), None);
        let delay = Rule {
            worse: Worse::Higher,
            by: 3.0,
            least: 10.0,
            ..LOSS
        };
        let short = baseline(delay, &[1.0; 6]);
        assert_eq!(short.judge(&[9.0, 9.0]), None);
        assert!(short.judge(&[12.0, 12.0]).is_some());
    }

    #[test]
    fn too_little_is_not_judged_by() {
        assert_eq!(Baseline::of(LOSS, &[]), None);
        assert_eq!(Baseline::of(LOSS, &[vec![1.0; 5]]), None);
        // A group is of one phase.
        assert_eq!(Baseline::of(LOSS, &[vec![1.0; 3], vec![1.0; 3]]), None);
        assert!(Baseline::of(LOSS, &[vec![1.0; 4], vec![1.0; 2]]).is_some());
    }
}

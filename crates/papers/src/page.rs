// SPDX-License-Identifier: MIT OR Apache-2.0
//! docs/papers/claims.md, and the counts in docs/papers/README.md: written from the claims and what was measured.

use std::fmt::Write;

use crate::{
    papers::Papers,
    rows::Judged,
    source::{PAIRS_LEAST, World},
    verdict::{SIZE_RATIO, Verdict},
};

/// The page with every claim.
pub const PAGE: &str = "docs/papers/claims.md";
/// The page that has the counts between these two lines.
pub const COUNTS_PAGE: &str = "docs/papers/README.md";
const COUNTS_BEGIN: &str = "<!-- counts: written by make docs -->";
const COUNTS_END: &str = "<!-- end of counts -->";

/// How many claims, by the worst verdict of their numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counts {
    /// All.
    pub claims: usize,
    /// By verdict, in the order of [`Verdict::ALL`].
    pub by_verdict: [usize; Verdict::ALL.len()],
    /// Claims of numbers, of which at least one number was measured in the lab or on KVM.
    pub measured: usize,
    /// Numbers.
    pub figures: usize,
    /// Numbers with a figure in the lab.
    pub in_lab: usize,
    /// Numbers with a figure on KVM.
    pub on_kvm: usize,
    /// Figures on KVM of fewer than five pairs.
    pub shortfalls: usize,
    /// Figures of the lab that are older than what they depend on.
    pub stale: usize,
    /// How far predictions are from the paper's numbers.
    pub predicted: Predicted,
}

/// How far the lab's predictions of ratios with a remedy are from the papers' ([`Judged::prediction_error`]).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Predicted {
    /// How many there are.
    pub figures: usize,
    /// The median error; 0 of none.
    pub median: f64,
    /// How many are near enough to agree in size.
    pub near: usize,
    /// How many are off by a factor of more than 2.
    pub above_2: usize,
}

impl Predicted {
    /// Of judged numbers.
    fn of(judged: &[Judged]) -> Predicted {
        let errors = judged.iter().filter_map(Judged::prediction_error);
        let mut errors: Vec<f64> = errors.collect();
        errors.sort_by(f64::total_cmp);
        Predicted {
            figures: errors.len(),
            median: errors.get(errors.len() / 2).copied().unwrap_or(0.0),
            near: errors.iter().filter(|error| **error <= SIZE_RATIO).count(),
            above_2: errors.iter().filter(|error| **error > 2.0).count(),
        }
    }
}

impl Counts {
    /// Of judged numbers.
    pub fn of(judged: &[Judged]) -> Counts {
        let mut counts = Counts {
            predicted: Predicted::of(judged),
            ..Counts::default()
        };
        let mut worst: std::collections::BTreeMap<&str, (Verdict, bool)> = Default::default();
        for one in judged {
            let measured = one.verdict.is_measured();
            let entry = worst
                .entry(&one.claim.id)
                .or_insert((one.verdict, measured));
            entry.0 = entry.0.min(one.verdict);
            entry.1 |= measured;
            counts.figures += 1;
            let has = |world: World| one.worlds[world as usize].1.is_some();
            counts.in_lab += usize::from(has(World::Lab));
            counts.on_kvm += usize::from(has(World::Kvm));
            counts.stale += usize::from(!one.stale().is_empty());
            let kvm = one.worlds[World::Kvm as usize].1.as_ref();
            counts.shortfalls += usize::from(kvm.is_some_and(|kvm| kvm.pairs.pairs < PAIRS_LEAST));
        }
        counts.claims = worst.len();
        for (verdict, measured) in worst.into_values() {
            counts.by_verdict[verdict as usize] += 1;
            counts.measured += usize::from(measured);
        }
        counts
    }

    /// In a few lines.
    pub fn text(&self) -> String {
        let each = Verdict::ALL.iter().zip(self.by_verdict);
        let each: Vec<String> = each
            .map(|(verdict, claims)| format!("{} {claims}", verdict.name()))
            .collect();
        format!(
            "{} claims, by the worst of their numbers: {}. {} claims have a figure. Of {} numbers and rules {} have a figure of \
             the lab and {} one of KVM; {} of KVM's are of fewer than {PAIRS_LEAST} pairs. Of {} ratios with a remedy that the lab \
             predicts the median error is {:.2}, {} are within {SIZE_RATIO} and {} off by more than 2.",
            self.claims,
            each.join(", "),
            self.measured,
            self.figures,
            self.in_lab,
            self.on_kvm,
            self.shortfalls,
            self.predicted.figures,
            self.predicted.median,
            self.predicted.near,
            self.predicted.above_2
        )
    }
}

/// docs/papers/claims.md.
///
/// # Errors
/// As [`Papers::judged`].
pub fn page(papers: &Papers) -> anyhow::Result<String> {
    let all = papers.judged(|_| true)?;
    let mut out = format!(
        "# What the papers claim, and what we got\n\nWritten from `papers/` and `benchmarks/` by `make docs`; lint fails while it says \
         something else. `unspin paper` prints the same; what the columns mean: [the five papers](README.md).\n\n{}\n",
        Counts::of(&all).text()
    );
    for paper in &papers.papers {
        let judged: Vec<&Judged> = all
            .iter()
            .filter(|one| one.claim.paper == paper.key)
            .collect();
        let _ = write!(
            out,
            "\n## {}\n\n{}.\n\n| claim | | figure | paper | lab | KVM | threads | lab is | verdict | why |\n\
             |---|---|---|---|---|---|---|---|---|---|\n",
            paper.key, paper.title
        );
        for one in judged {
            let row = one.row();
            let cells = [
                row.claim.as_str(),
                row.class,
                match one.figure.what.as_str() {
                    "" => &row.text,
                    _ => &row.figure,
                },
                &row.paper,
                // A star says that it is stale, which changes with every commit of the lab: not on a page that is committed.
                row.lab.trim_end_matches('*'),
                &row.kvm,
                &row.threads,
                row.fit,
                row.verdict,
                &row.reason,
            ];
            let cells = cells.map(|cell| cell.replace('|', "\\|").replace('<', "&lt;"));
            let _ = writeln!(out, "| {} |", cells.join(" | "));
        }
    }
    Ok(out)
}

/// The text of docs/papers/README.md with the counts of today; none when it lacks the two lines between which they stand.
pub fn with_counts(readme: &str, counts: &Counts) -> Option<String> {
    let (head, rest) = readme.split_once(COUNTS_BEGIN)?;
    let (_, tail) = rest.split_once(COUNTS_END)?;
    Some(format!(
        "{head}{COUNTS_BEGIN}\n{}\n{COUNTS_END}{tail}",
        counts.text()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_stand_between_their_lines() {
        let readme = format!("a\n{COUNTS_BEGIN}\nold\n{COUNTS_END}\nb\n");
        let counts = Counts::default();
        let new = with_counts(&readme, &counts).unwrap();
        assert!(new.starts_with("a\n") && new.ends_with("\nb\n") && !new.contains("old"));
        assert_eq!(with_counts(&new, &counts).unwrap(), new);
        assert_eq!(with_counts("a\n", &counts), None);
    }
}

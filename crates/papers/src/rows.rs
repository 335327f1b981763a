// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `unspin paper` prints: a row for each number of each claim, failures first.

use anyhow::Context;
use unspin_report::row;

use crate::{
    claim::{Claim, Class, Expected, Figure, Unit},
    measured::Measured,
    papers::Papers,
    source::{PAIRS_LEAST, Source, World},
    verdict::Verdict,
};

row! {
    "claim", ["paper"];
    /// A number of a claim, or a claim of words, and what was measured of it.
    pub struct ClaimRow {
        /// The claim's name.
        pub claim: String = ("claim", Text),
        /// The paper's key.
        pub paper_key: String,
        /// Where in the paper.
        pub section: String,
        /// B: baseline, M: with a remedy, D: definition, L: limitation.
        pub class: &'static str = ("class", Text),
        /// What the claim says.
        pub text: String,
        /// What the number is of.
        pub figure: String = ("figure", Text),
        /// What it counts.
        pub unit: &'static str,
        /// What it is compared with.
        pub compared_with: String,
        /// What the paper says, as people see it.
        pub paper: String = ("paper", Text),
        /// The paper's number, or the lower bound of its range; null where it has none.
        pub paper_low: Option<f64>,
        /// The paper's number, or the upper bound of its range.
        pub paper_high: Option<f64>,
        /// The lab's figure and its interval, as people see it; `*`: stale.
        pub lab: String = ("lab (95 %)", Text),
        /// The lab's figure.
        pub lab_value: Option<f64>,
        /// Lower bound of its 95 % interval.
        pub lab_low: Option<f64>,
        /// Upper bound.
        pub lab_high: Option<f64>,
        /// How many seeds it is of.
        pub lab_seeds: Option<u32>,
        /// What the lab says of the claim.
        pub lab_verdict: &'static str,
        /// KVM's figure and its interval, as people see it; `n=2`: fewer pairs than five.
        pub kvm: String = ("KVM (95 %)", Text),
        /// KVM's figure.
        pub kvm_value: Option<f64>,
        /// Lower bound of its interval.
        pub kvm_low: Option<f64>,
        /// Upper bound.
        pub kvm_high: Option<f64>,
        /// How many pairs it is of.
        pub kvm_pairs: Option<u32>,
        /// What KVM says of the claim.
        pub kvm_verdict: &'static str,
        /// The figure of threads without VMs, as people see it.
        pub threads: String,
        /// What threads say of the claim.
        pub threads_verdict: &'static str,
        /// `fitted`: a parameter of the lab's scenario was fitted to it. `predicted`: none was.
        pub fit: &'static str = ("lab is", Text),
        /// Of a predicted ratio or change with a remedy: how far the lab's is from the paper's, as a ratio above 1.
        pub prediction_error: Option<f64>,
        /// The worst of what was measured.
        pub verdict: &'static str = ("verdict", Text),
        /// Why it disagrees, is missing, or cannot be had.
        pub reason: String,
        /// Why the lab's figure is older than what it depends on; empty when it is not.
        pub stale: String,
    }
}

/// One number of a claim, judged.
#[derive(Debug)]
pub struct Judged<'a> {
    /// Its claim.
    pub claim: &'a Claim,
    /// The number.
    pub figure: &'a Figure,
    /// What each world says, in the order of [`World::ALL`].
    pub worlds: [(Verdict, Option<Measured>); World::ALL.len()],
    /// The worst of what was measured.
    pub verdict: Verdict,
}

impl Papers {
    /// Every number of the claims that are wanted, judged; in the order in which they are printed.
    ///
    /// # Errors
    /// As [`Papers::measured`], with the claim's name.
    pub fn judged(&self, wanted: impl Fn(&Claim) -> bool) -> anyhow::Result<Vec<Judged<'_>>> {
        let mut all = Vec::new();
        let claims = self.papers.iter().flat_map(|paper| &paper.claims);
        for claim in claims.filter(|claim| wanted(claim)) {
            for figure in &claim.figures {
                let [lab, kvm, threads] = World::ALL.map(|world| {
                    let verdict = self.verdict(figure, world);
                    verdict
                        .with_context(|| format!("{}, {}: {}", claim.id, figure.what, world.name()))
                });
                let worlds = [lab?, kvm?, threads?];
                let verdicts = [worlds[0].0, worlds[1].0, worlds[2].0];
                all.push(Judged {
                    claim,
                    figure,
                    worlds,
                    verdict: Verdict::of_worlds(&verdicts),
                });
            }
        }
        // Stable: claims of one verdict stay in the papers' order.
        all.sort_by_key(|judged| judged.verdict);
        Ok(all)
    }
}

impl Judged<'_> {
    /// Its row.
    pub fn row(&self) -> ClaimRow {
        let Judged { claim, figure, .. } = self;
        let [lab, kvm, threads] = &self.worlds;
        let bound = |bound: f64| bound.is_finite().then_some(bound);
        let (paper_low, paper_high) = match figure.expected {
            Expected::Range { low, high } => (bound(low), bound(high)),
            Expected::Words | Expected::Ascending => (None, None),
        };
        let value = |of: &Option<Measured>| of.as_ref().and_then(Measured::value);
        let low = |of: &Option<Measured>| Some(of.as_ref()?.interval?.0);
        let high = |of: &Option<Measured>| Some(of.as_ref()?.interval?.1);
        let pairs = |of: &Option<Measured>| Some(of.as_ref()?.pairs.pairs);
        ClaimRow {
            claim: claim.id.clone(),
            paper_key: claim.paper.clone(),
            section: claim.section.clone(),
            class: class(claim),
            text: claim.text.clone(),
            figure: self.name(),
            unit: match figure.expected {
                Expected::Words => "",
                _ => figure.unit.name(),
            },
            compared_with: figure.of.clone(),
            paper: figure.expected.text(figure.unit),
            paper_low,
            paper_high,
            lab: self.text(World::Lab),
            lab_value: value(&lab.1),
            lab_low: low(&lab.1),
            lab_high: high(&lab.1),
            lab_seeds: pairs(&lab.1),
            lab_verdict: lab.0.name(),
            kvm: self.text(World::Kvm),
            kvm_value: value(&kvm.1),
            kvm_low: low(&kvm.1),
            kvm_high: high(&kvm.1),
            kvm_pairs: pairs(&kvm.1),
            kvm_verdict: kvm.0.name(),
            threads: self.text(World::Threads),
            threads_verdict: threads.0.name(),
            fit: figure.fit(),
            prediction_error: self.prediction_error(),
            verdict: self.verdict.name(),
            reason: self.reason(),
            stale: self.stale().to_owned(),
        }
    }

    /// What the number is of, and of what; the beginning of the claim's text where it has no numbers.
    pub fn name(&self) -> String {
        match (self.figure.what.as_str(), self.figure.of.as_str()) {
            ("", "") => shortened(&self.claim.text),
            (what, "") => what.to_owned(),
            (what, of) => format!("{what}, to {of}"),
        }
    }

    /// The figure of a world with its interval, or a word for why there is none.
    pub fn text(&self, world: World) -> String {
        let (verdict, measured) = &self.worlds[world as usize];
        let Some(measured) = measured else {
            return match verdict {
                Verdict::Tested => "tested".into(),
                Verdict::CannotBeHad => "cannot".into(),
                _ => "missing".into(),
            };
        };
        let unit = self.figure.unit;
        let text = |value: &f64| match self.figure.expected {
            Expected::Ascending => significant(*value),
            _ => unit.text(*value),
        };
        let values: Vec<String> = measured.values.iter().map(text).collect();
        let mut text = values.join(", ");
        if let Some((low, high)) = measured.interval {
            text.push_str(&format!(" ({} to {})", unit.text(low), unit.text(high)));
        }
        if measured.pairs.pairs < PAIRS_LEAST {
            text.push_str(&format!(" n={}", measured.pairs.pairs));
        }
        if !measured.stale.is_empty() {
            text.push('*');
        }
        text
    }

    /// Why it disagrees; else why it is missing, else why it cannot be had. Nothing where a figure agrees, unless somebody
    /// wrote something.
    pub fn reason(&self) -> String {
        if !self.figure.reason.is_empty() {
            return self.figure.reason.clone();
        }
        if self.verdict.is_measured() || self.verdict == Verdict::Tested {
            return String::new();
        }
        let missing = World::ALL.map(|world| match self.figure.sources.of(world) {
            Source::Missing { reason, .. } => Some((world, reason.as_str())),
            Source::Lab(_) => Some((world, "not run, or without such a value")),
            _ => None,
        });
        let cannot = World::ALL.map(|world| match self.figure.sources.of(world) {
            Source::Cannot { reason } => Some((world, reason.as_str())),
            _ => None,
        });
        let reasons = match self.verdict {
            Verdict::CannotBeHad => cannot,
            _ => missing,
        };
        let reasons = reasons.into_iter().flatten();
        let reasons: Vec<String> = reasons
            .map(|(world, reason)| format!("{}: {reason}", world.name()))
            .collect();
        reasons.join("; ")
    }

    /// How far what the lab predicts is from the paper's number, as a ratio, above 1; of ratios and of changes as ratios, with a
    /// remedy (class M) and with one number in the paper.
    pub fn prediction_error(&self) -> Option<f64> {
        let Expected::Range { low, high } = self.figure.expected else {
            return None;
        };
        let is_predicted = self.claim.class == Class::M && self.figure.fit() == "predicted";
        if low != high || !is_predicted {
            return None;
        }
        let as_ratio = |value: f64| match self.figure.unit {
            Unit::Ratio => Some(value),
            Unit::ChangePercent => Some(1.0 + value / 100.0),
            _ => None,
        };
        let lab = self.worlds[World::Lab as usize].1.as_ref()?.value()?;
        let error = as_ratio(lab)? / as_ratio(low)?;
        (error > 0.0).then(|| error.max(1.0 / error))
    }

    /// Why its figure of the lab is older than what it depends on.
    pub fn stale(&self) -> &str {
        let lab = &self.worlds[World::Lab as usize].1;
        lab.as_ref().map_or("", |lab| &lab.stale)
    }
}

/// A figure whose unit does not matter beside others of its kind: three digits at least.
fn significant(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// The beginning of a text: as much as fits beside figures.
fn shortened(text: &str) -> String {
    const CHARACTERS: usize = 60;
    match text.char_indices().nth(CHARACTERS) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}...", text[..end].trim_end()),
    }
}

fn class(claim: &Claim) -> &'static str {
    match claim.class {
        Class::B => "B",
        Class::M => "M",
        Class::D => "D",
        Class::L => "L",
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! What would measure claims on KVM.

use std::collections::{BTreeMap, BTreeSet};

use unspin_report::row;

use crate::{
    papers::Papers,
    rows::Judged,
    source::{Source, World},
};

row! {
    "kvm_command", ["paper"];
    /// A command that would measure claims on KVM.
    pub struct CommandRow {
        /// The claims.
        pub claims: String = ("claims", Text),
        /// Why: `missing`, or `of fewer than five pairs`.
        pub why: &'static str = ("why", Text),
        /// What to run, at the top of the tree.
        pub command: String = ("command", Text),
    }
}

/// What would measure on KVM what is missing there, or of too few pairs.
pub fn commands(papers: &Papers, judged: &[Judged]) -> Vec<CommandRow> {
    let mut claims: BTreeMap<(String, &'static str), BTreeSet<&str>> = BTreeMap::new();
    for one in judged {
        let (command, why) = match one.figure.sources.of(World::Kvm) {
            Source::Missing { command, .. } if !command.is_empty() => (command.clone(), "missing"),
            Source::Benchmark(of) if of.pairs.shortfall => {
                let benchmark = papers.benchmarks.get(&of.benchmark);
                let Some(benchmark) = benchmark.filter(|benchmark| !benchmark.command.is_empty())
                else {
                    continue;
                };
                (benchmark.command.clone(), "of fewer than five pairs")
            }
            _ => continue,
        };
        let of = claims.entry((command, why)).or_default();
        of.insert(&one.claim.id);
    }
    let rows = claims.into_iter().map(|((command, why), of)| CommandRow {
        claims: of.into_iter().collect::<Vec<_>>().join(" "),
        why,
        command,
    });
    rows.collect()
}

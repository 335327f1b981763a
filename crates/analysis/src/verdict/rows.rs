// SPDX-License-Identifier: MIT OR Apache-2.0
//! Verdicts as rows.

use unspin_events::facts::Facts;
use unspin_report::row;

use super::{
    decide::Finding,
    study::Study,
    words::{Instead, Verdict, unix_ns},
};

row! {
    "verdict", ["report"];
    /// What is the matter with a VM.
    pub struct VerdictRow {
        /// The VM.
        pub vm: String = ("VM", Text),
        /// The finding: preempted, contention, spinning, steal, io, stopped, blind or fine.
        pub finding: &'static str = ("finding", Text),
        /// Of preempted: what was waited for, as `cause` of explain's waits; null otherwise.
        pub cause: Option<&'static str>,
        /// Its share: of CPU time for preempted, contention and spinning, of the time in which vCPUs could run for steal, of vCPUs' time
        /// for io, of wall time for stopped; percent.
        pub share_percent: Option<f64> = ("share %", Percent),
        /// Since when, from the first event; ns.
        pub since_ns: Option<u64> = ("since", Nanoseconds),
        /// Since when, by the host's wall clock, from 1970; ns. Null: the recording has no wall clock.
        pub since_unix_ns: Option<u64>,
        /// Who ran instead of those that were waited for: a VM, `own vCPUs`, `idle`, or a task of the host; null otherwise.
        pub instead: Option<String> = ("ran instead", Text),
        /// For which share of the time spun for them; percent.
        pub instead_percent: Option<f64> = ("of that %", Percent),
        /// What else counts, by size, apart by commas; empty: nothing.
        pub also: String = ("also", Text),
        /// CPU time of its vCPUs; ns.
        pub cpu_ns: u64 = ("CPU time", Nanoseconds),
        /// Of it in spin loops; ns.
        pub spin_ns: u64 = ("spin time", Nanoseconds),
        /// Time for which its vCPUs waited for a CPU; ns.
        pub waiting_ns: u64 = ("waited", Nanoseconds),
        /// Time for which they slept for I/O; ns.
        pub io_ns: u64 = ("I/O", Nanoseconds),
        /// Wall time for which it was stopped; ns.
        pub stopped_ns: u64 = ("stopped", Nanoseconds),
        /// All of it in a sentence.
        pub sentence: String,
    }
}

/// A row for each verdict.
pub fn rows(facts: &Facts, study: &Study, verdicts: &[Verdict]) -> Vec<VerdictRow> {
    verdicts
        .iter()
        .map(|verdict| row(facts, study, verdict))
        .collect()
}

fn row(facts: &Facts, study: &Study, verdict: &Verdict) -> VerdictRow {
    let figures = study
        .vms
        .get(&verdict.vm)
        .map(|of| of.figures.clone())
        .unwrap_or_default();
    let others: Vec<&str> = verdict
        .others
        .iter()
        .map(|finding| finding.word())
        .collect();
    VerdictRow {
        vm: verdict.name.clone(),
        finding: verdict.finding.word(),
        cause: match verdict.finding {
            Finding::Preempted(cause) => Some(cause.name()),
            _ => None,
        },
        share_percent: verdict.share_percent,
        since_ns: verdict
            .since_ns
            .map(|ns| ns.saturating_sub(study.span_ns.0)),
        since_unix_ns: verdict.since_ns.and_then(|ns| unix_ns(facts, ns)),
        instead: verdict.instead.as_ref().map(|(who, _)| match who {
            Instead::Own => "own vCPUs".to_owned(),
            Instead::Idle => "idle".to_owned(),
            Instead::Other(name) => name.clone(),
        }),
        instead_percent: verdict.instead.as_ref().map(|(_, percent)| *percent),
        also: others.join(", "),
        cpu_ns: figures.running_ns,
        spin_ns: figures.spin_time.total(),
        waiting_ns: figures.waiting_ns,
        io_ns: figures.io_ns,
        stopped_ns: figures.stopped_ns,
        sentence: verdict.sentence.clone(),
    }
}

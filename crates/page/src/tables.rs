// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page's tables, as texts.

use serde::Serialize;
use unspin_analysis::{
    Source, WaitHistogram,
    explain::{cause::Cause, rows},
    verdict::{
        decide::Finding,
        study::{Study, VmStudy},
        words::Verdict,
    },
};

use crate::Limits;

/// Rows of whom spin time can be blamed on.
const BLAME_MAX: usize = 60;
/// VMs whose lengths are drawn.
const LENGTHS_MAX: usize = 24;

#[derive(Serialize)]
pub(crate) struct VerdictLine {
    /// The finding, for its colour.
    finding: &'static str,
    sentence: String,
    also: String,
}

/// A line for each verdict.
pub(crate) fn verdicts(verdicts: &[Verdict]) -> Vec<VerdictLine> {
    let line = |verdict: &Verdict| VerdictLine {
        finding: verdict.finding.word(),
        sentence: verdict.sentence.clone(),
        also: verdict
            .others
            .iter()
            .map(|finding| also(*finding))
            .collect::<Vec<_>>()
            .join(", "),
    };
    verdicts.iter().map(line).collect()
}

fn also(finding: Finding) -> &'static str {
    match finding {
        Finding::Preempted(_) => "waits for preempted vCPUs",
        Finding::Contention => "contention with all concerned running",
        Finding::Spinning => "spinning for nobody knows what",
        Finding::Steal => "steal",
        Finding::Io => "I/O",
        Finding::Stopped => "stops",
        Finding::Blind | Finding::Fine => "",
    }
}

#[derive(Serialize)]
pub(crate) struct Share {
    vm: String,
    vcpus: usize,
    cpu_s: String,
    spin: String,
    causes: Vec<String>,
    waiting: String,
    halted: String,
    io: String,
}

/// Where each VM's time went, percent.
pub(crate) fn shares(study: &Study, verdicts: &[Verdict]) -> Vec<Share> {
    let rows = verdicts.iter().filter_map(|verdict| {
        let of = study.vms.get(&verdict.vm)?;
        let figures = &of.figures;
        let could_run = figures.running_ns + figures.waiting_ns;
        let all = could_run + figures.halted_ns + figures.io_ns;
        Some(Share {
            vm: verdict.name.clone(),
            vcpus: of.lanes.len(),
            cpu_s: format!("{:.2}", figures.running_ns as f64 / 1e9),
            spin: percent(figures.spin_time.total(), figures.running_ns),
            causes: Cause::ALL
                .iter()
                .map(|&cause| percent(figures.spin_time.of(cause), figures.running_ns))
                .collect(),
            waiting: percent(figures.waiting_ns, could_run),
            halted: percent(figures.halted_ns, all),
            io: percent(figures.io_ns, all),
        })
    });
    rows.collect()
}

fn percent(part: u64, whole: u64) -> String {
    match whole {
        0 => "-".to_owned(),
        whole => format!("{:.1}", 100.0 * part as f64 / whole as f64),
    }
}

#[derive(Serialize)]
pub(crate) struct Blame {
    vm: String,
    cause: &'static str,
    vcpu: String,
    instead: String,
    spin_ms: String,
    percent: String,
}

/// For whom VMs spun, and who ran instead; in the order of verdicts, of each the largest first.
pub(crate) fn blame(
    source: &Source,
    study: &Study,
    verdicts: &[Verdict],
    limits: Limits,
) -> Vec<Blame> {
    let mut rows = rows::blame(source, &study.explanation);
    let place = |name: &str| verdicts.iter().position(|verdict| verdict.name == name);
    rows.sort_by_key(|row| place(&row.vm));
    rows.truncate(BLAME_MAX.min(limits.vms));
    let row = |row: rows::BlameRow| Blame {
        vm: row.vm,
        cause: row.cause,
        vcpu: row.vcpu.map_or("-".to_owned(), |vcpu| vcpu.to_string()),
        instead: row.instead.unwrap_or_else(|| "-".to_owned()),
        spin_ms: format!("{:.1}", row.spin_ns as f64 / 1e6),
        percent: row
            .spin_percent
            .map_or("-".to_owned(), |percent| format!("{percent:.1}")),
    };
    rows.into_iter().map(row).collect()
}

#[derive(Serialize)]
pub(crate) struct Lengths {
    /// The first power of two, ns.
    first: usize,
    vms: Vec<LengthsOf>,
}

#[derive(Serialize)]
struct LengthsOf {
    /// Place of the VM.
    vm: usize,
    /// How often vCPUs waited for a CPU, ran and slept for 2^i ns to below 2^(i+1) ns, from the first power on.
    waits: Vec<u64>,
    runs: Vec<u64>,
    sleeps: Vec<u64>,
}

/// How long vCPUs waited, ran and slept each time.
pub(crate) fn lengths(study: &Study, verdicts: &[Verdict], limits: Limits) -> Lengths {
    let shown = verdicts
        .iter()
        .take(LENGTHS_MAX.min(limits.vms))
        .enumerate();
    let vms: Vec<(usize, &VmStudy)> = shown
        .filter_map(|(place, verdict)| Some((place, study.vms.get(&verdict.vm)?)))
        .collect();
    let all = vms
        .iter()
        .flat_map(|(_, of)| [&of.waits, &of.runs, &of.sleeps]);
    let spans = all.filter_map(WaitHistogram::span);
    let (first, last) = spans
        .reduce(|sum, of| (sum.0.min(of.0), sum.1.max(of.1)))
        .unwrap_or((0, 0));
    let counts =
        |lengths: &WaitHistogram| (first..=last).map(|bucket| lengths.count(bucket)).collect();
    let of_vm = |&(vm, of): &(usize, &VmStudy)| LengthsOf {
        vm,
        waits: counts(&of.waits),
        runs: counts(&of.runs),
        sleeps: counts(&of.sleeps),
    };
    Lengths {
        first,
        vms: vms.iter().map(of_vm).collect(),
    }
}

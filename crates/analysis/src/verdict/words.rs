// SPDX-License-Identifier: MIT OR Apache-2.0
//! A verdict in plain words.

use std::collections::BTreeMap;

use unspin_events::{
    facts::Facts,
    vm_identity::{NAME_LENGTH_MAX, printable},
};

use super::{
    decide::{Finding, decide},
    figures::Sight,
    study::{CAUSES, HALTED, IO, RUNNING, STOPPED, Study, VmStudy, WAITING},
};
use crate::{
    explain::{attribution::VmExplanation, cause::Cause},
    waits::presence::Occupant,
};

/// Who ran instead of those that were waited for, for most of that time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Instead {
    /// Other vCPUs of the same VM.
    Own,
    /// Another VM, or a task of the host, by name.
    Other(String),
    /// Nobody.
    Idle,
}

/// What is said of one VM.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// Its number.
    pub vm: u32,
    /// What people call it.
    pub name: String,
    /// What is the matter.
    pub finding: Finding,
    /// Its share, percent; see [`Finding::share_percent`].
    pub share_percent: Option<f64>,
    /// What else counts, the largest share first.
    pub others: Vec<Finding>,
    /// Since when, on the clock of events: from the beginning of that bin of the VM's series on.
    pub since_ns: Option<u64>,
    /// Who ran instead, and for which share of that, percent.
    pub instead: Option<(Instead, f64)>,
    /// All of that in a sentence.
    pub sentence: String,
}

/// Verdicts on all VMs: what was lost to preemption first, then stops, the largest shares first.
pub fn verdicts(facts: &Facts, study: &Study) -> Vec<Verdict> {
    let mut all: Vec<Verdict> = study
        .vms
        .iter()
        .map(|(&vm, of)| verdict(facts, study, vm, of))
        .collect();
    let rank = |verdict: &Verdict| match verdict.finding {
        Finding::Preempted(_) | Finding::Stopped => 0,
        Finding::Contention | Finding::Spinning => 1,
        Finding::Blind => 2,
        Finding::Steal | Finding::Io => 3,
        Finding::Fine => 4,
    };
    let share = |verdict: &Verdict| verdict.share_percent.unwrap_or(0.0);
    all.sort_by(|left, right| {
        rank(left)
            .cmp(&rank(right))
            .then(share(right).total_cmp(&share(left)))
            .then(left.vm.cmp(&right.vm))
    });
    all
}

fn verdict(facts: &Facts, study: &Study, vm: u32, of: &VmStudy) -> Verdict {
    let (finding, others) = decide(&of.figures, &study.sight);
    let instead = match finding {
        Finding::Preempted(_) => study
            .explanation
            .vms
            .get(&vm)
            .and_then(|explained| instead(facts, vm, explained, study.span_ns.1)),
        _ => None,
    };
    let mut verdict = Verdict {
        vm,
        name: facts.vm_name(vm),
        finding,
        share_percent: finding.share_percent(&of.figures),
        others,
        since_ns: since(finding, of),
        instead,
        sentence: String::new(),
    };
    verdict.sentence = sentence(facts, study, of, &verdict);
    verdict
}

/// Who had the CPUs that the blamed vCPUs had left, for most of the time.
fn instead(
    facts: &Facts,
    vm: u32,
    explained: &VmExplanation,
    now_ns: u64,
) -> Option<(Instead, f64)> {
    let mut sums: BTreeMap<String, (Instead, u64)> = BTreeMap::new();
    let mut total_ns = 0;
    for (blame, &ns) in explained
        .blame
        .iter()
        .filter(|(blame, _)| blame.cause.is_preemption())
    {
        total_ns += ns;
        let who = match blame.instead {
            Some(Occupant::Vcpu { vm: other, .. }) if other == vm => Instead::Own,
            Some(Occupant::Vcpu { vm: other, .. }) => Instead::Other(facts.vm_name(other)),
            Some(Occupant::Task(thread)) => Instead::Other(match facts.task_at(thread, now_ns) {
                Some(task) => format!("the host's {}", printable(&task.comm, NAME_LENGTH_MAX)),
                None => "a task of the host".to_owned(),
            }),
            Some(Occupant::Idle) => Instead::Idle,
            None => continue,
        };
        sums.entry(format!("{who:?}")).or_insert((who, 0)).1 += ns;
    }
    let most = sums.into_values().max_by_key(|(_, ns)| *ns);
    most.map(|(who, ns)| (who, 100.0 * ns as f64 / total_ns.max(1) as f64))
}

/// The beginning of the first bin that is above the threshold and from which on the VM is above it in all.
fn since(finding: Finding, of: &VmStudy) -> Option<u64> {
    let parts: Vec<(u64, u64)> = of
        .series
        .bins()
        .iter()
        .map(|bin| parts(finding, bin))
        .collect::<Option<_>>()?;
    // A stop has no threshold of its own share.
    let least = finding.threshold_percent().max(1.0);
    let above = |(part, whole): (u64, u64)| {
        whole > 0 && part > 0 && 100.0 * part as f64 >= least * whole as f64
    };
    let mut rest = parts
        .iter()
        .fold((0, 0), |sum, bin| (sum.0 + bin.0, sum.1 + bin.1));
    for (place, &bin) in parts.iter().enumerate() {
        if above(bin) && above(rest) {
            return Some(of.series.begin_ns(place));
        }
        rest = (rest.0 - bin.0, rest.1 - bin.1);
    }
    None
}

/// The finding's time in a bin, and the time that it is a share of.
fn parts(finding: Finding, bin: &[u64]) -> Option<(u64, u64)> {
    let cause = |cause: Cause| bin[CAUSES + cause.index()];
    let could_run = bin[RUNNING] + bin[WAITING];
    let asleep = bin[HALTED] + bin[IO] + bin[STOPPED];
    let preempted = || {
        Cause::ALL
            .into_iter()
            .filter(|cause| cause.is_preemption())
            .map(cause)
            .sum()
    };
    Some(match finding {
        Finding::Preempted(_) => (preempted(), bin[RUNNING]),
        Finding::Contention => (cause(Cause::Contention), bin[RUNNING]),
        Finding::Spinning => (cause(Cause::Unknown), bin[RUNNING]),
        Finding::Steal => (bin[WAITING], could_run),
        Finding::Io => (bin[IO], could_run + asleep),
        Finding::Stopped => (bin[STOPPED], could_run + asleep),
        Finding::Blind | Finding::Fine => return None,
    })
}

fn sentence(facts: &Facts, study: &Study, of: &VmStudy, verdict: &Verdict) -> String {
    let name = &verdict.name;
    let share = verdict.share_percent.unwrap_or(0.0);
    let since = verdict
        .since_ns
        .map_or(String::new(), |ns| in_time(facts, study.span_ns, ns));
    match verdict.finding {
        Finding::Preempted(cause) => {
            let what = match cause {
                Cause::HolderPreempted => "lock-holder preemption",
                Cause::NextWaiterPreempted => {
                    "lock-waiter preemption (the next in line for a lock had no CPU)"
                }
                Cause::CallHalted => {
                    "waits for answers of halted vCPUs (TLB shootdowns and other function calls)"
                }
                _ => {
                    "waits for answers of preempted vCPUs (TLB shootdowns and other function calls)"
                }
            };
            let instead = match &verdict.instead {
                Some((Instead::Own, percent)) => {
                    format!("; its own other vCPUs ran instead for {percent:.0} % of that")
                }
                Some((Instead::Other(who), percent)) => {
                    format!("; {who} ran instead for {percent:.0} % of that")
                }
                Some((Instead::Idle, percent)) => {
                    format!("; the CPU that they had left was idle for {percent:.0} % of that")
                }
                None => String::new(),
            };
            format!("{name} lost {share:.0} % of its CPU time to {what}{since}{instead}.")
        }
        Finding::Contention => format!(
            "{name} spent {share:.0} % of its CPU time spinning for others that ran{since}: its locks are contended, and no scheduler can help."
        ),
        Finding::Spinning => format!(
            "{name} spent {share:.0} % of its CPU time spinning{since}; the host's events do not say for whom."
        ),
        Finding::Steal => format!(
            "{name}: this is steal only. Its vCPUs waited for a CPU for {share:.0} % of the time in which they could run{since}, and spun little: the host has too few CPUs for its VMs."
        ),
        Finding::Io => format!(
            "{name}: this is I/O. Its vCPUs slept for it for {share:.0} % of their time{since}; no scheduler can help."
        ),
        Finding::Stopped => format!(
            "{name} was stopped for {:.1} s, {share:.0} % of the time{since}: all its vCPUs slept and not by their guest's doing (a signal, a debugger, a frozen cgroup, a migration).",
            of.figures.stopped_ns as f64 / 1e9
        ),
        Finding::Blind => {
            let why = match &study.sight {
                Sight::Blind(why) => why.as_str(),
                Sight::Seen => "pause-loop exits are not seen",
            };
            let waited = Finding::Steal.share_percent(&of.figures).unwrap_or(0.0);
            format!(
                "{name}: blind, {why}. Its vCPUs waited for a CPU for {waited:.0} % of the time in which they could run; what they spun for cannot be seen."
            )
        }
        Finding::Fine => format!("{name} lost nothing that counts."),
    }
}

/// What is above the threshold so soon was so before: a part of the recording, in hundredths.
const BEGINNING_PERCENT: u64 = 2;

/// ` since 14:02:05 UTC`, by the host's wall clock where it is known.
fn in_time(facts: &Facts, (first_ns, last_ns): (u64, u64), at_ns: u64) -> String {
    let after_ns = at_ns.saturating_sub(first_ns);
    if after_ns <= (last_ns - first_ns) / 100 * BEGINNING_PERCENT {
        return " since the recording's beginning".to_owned();
    }
    match unix_ns(facts, at_ns) {
        Some(unix_ns) => format!(" since {}", clock(unix_ns)),
        None => format!(
            " since {:.1} s after the recording's beginning",
            after_ns as f64 / 1e9
        ),
    }
}

/// The wall clock at that time of the events' clock; `None`: it is not known.
pub fn unix_ns(facts: &Facts, at_ns: u64) -> Option<u64> {
    let begin = &facts.begin;
    (begin.unix_ns > 0).then(|| {
        begin
            .unix_ns
            .saturating_add(at_ns)
            .saturating_sub(begin.monotonic_ns)
    })
}

/// The time of day.
fn clock(unix_ns: u64) -> String {
    let seconds = unix_ns / 1_000_000_000 % 86_400;
    format!(
        "{:02}:{:02}:{:02} UTC",
        seconds / 3_600,
        seconds / 60 % 60,
        seconds % 60
    )
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tables of what pause-loop exits were for and what became of them: VEE'21's Figures 3 to 6.

use std::collections::BTreeMap;

use unspin_analysis::{Exits, Symbols, VmExits};
use unspin_policy::{Outcome, RunRule};
use unspin_report::{Cell, Column, Table, Unit};

use crate::commands::outcomes::reasons as reason_tables;

/// One recording, and what is known beside it.
pub struct Workload<'a> {
    /// What tables call it.
    pub name: String,
    /// What was found.
    pub exits: &'a Exits,
    /// The guests' symbols, if given.
    pub symbols: Option<&'a Symbols>,
    /// What people call the VMs; "vm7" for those that are not in it.
    pub names: &'a BTreeMap<u32, String>,
    /// By VM, what the counters of KVM's programs say, which events are not needed for.
    pub counted: &'a BTreeMap<u32, Counted>,
}

/// Counters of one VM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Pause-loop exits.
    pub exits: u64,
    /// yield_to() above 0.
    pub boosted: u64,
}

const EXITS: &[Column] = &[
    Column::new("workload", "workload", Unit::Text),
    Column::new("vm", "VM", Unit::Text),
    Column::new("vcpus", "vCPUs", Unit::Count),
    Column::new("seconds", "seconds", Unit::Ratio),
    Column::new("ple_exits", "PLE exits", Unit::Count),
    Column::new("ple_exits_per_second", "PLE exits/s", Unit::Count),
    Column::new("cpu_share_percent", "CPU %", Unit::Percent),
    Column::json_only("boosted", Unit::Count),
    Column::json_only("counted_exits", Unit::Count),
    Column::json_only("counted_boosted", Unit::Count),
    Column::json_only("lost_events", Unit::Count),
    Column::json_only("late_events", Unit::Count),
    Column::json_only("ipi_blind", Unit::Count),
];

const RUNS: &[Column] = &[
    Column::new("workload", "workload", Unit::Text),
    Column::new("vm", "VM", Unit::Text),
    Column::new("host_interrupts", "host interrupts", Unit::Text),
    Column::new("runs", "runs", Unit::Count),
    Column::new("exits_in_runs", "exits", Unit::Count),
    Column::new(
        "above_twice_vcpus_percent",
        "% in runs > 2 x vCPUs",
        Unit::Percent,
    ),
    Column::new("above_hundred_percent", "% in runs > 100", Unit::Percent),
    Column::new("longest", "longest", Unit::Count),
    Column::json_only("exits_without_location", Unit::Count),
    Column::json_only("exits_by_log2_length", Unit::Text),
];

const OUTCOMES: &[Column] = &[
    Column::new("workload", "workload", Unit::Text),
    Column::new("vm", "VM", Unit::Text),
    Column::new("counted", "counted", Unit::Text),
    Column::new("ple_exits", "PLE exits", Unit::Count),
    Column::new("no_candidate_percent", "no candidate %", Unit::Percent),
    Column::new(
        "lost_opportunity_percent",
        "lost opportunity %",
        Unit::Percent,
    ),
    Column::new("lost_other_percent", "lost, other %", Unit::Percent),
    Column::new("mismatch_percent", "mismatch %", Unit::Percent),
    Column::new("overboost_percent", "overboost %", Unit::Percent),
    Column::new("success_percent", "success %", Unit::Percent),
    Column::new("unknown_percent", "unknown %", Unit::Percent),
    Column::json_only("mismatch_same_cpu", Unit::Count),
];

/// All tables, in the order of the paper's figures.
pub fn tables(workloads: &[Workload<'_>]) -> Vec<Table> {
    vec![
        exits_table(workloads),
        runs_table(workloads),
        reason_tables::reasons_table(workloads),
        outcomes_table(workloads),
        reason_tables::locations_table(workloads),
    ]
}

/// `part` of `all` in percent; `None` of nothing.
pub fn percent(part: u64, all: u64) -> Option<f64> {
    (all > 0).then(|| part as f64 * 100.0 / all as f64)
}

impl Workload<'_> {
    /// What people call that VM.
    pub fn vm_name(&self, number: u32) -> String {
        let name = self.names.get(&number).cloned();
        name.unwrap_or_else(|| format!("vm{number}"))
    }
}

/// The workload's VMs with the words for them.
pub fn vms<'a>(workload: &Workload<'a>) -> impl Iterator<Item = (Cell, Cell, &'a VmExits)> {
    let vms = workload.exits.vms.iter();
    vms.map(|(&number, vm)| {
        (
            workload.name.clone().into(),
            workload.vm_name(number).into(),
            vm,
        )
    })
}

fn exits_table(workloads: &[Workload<'_>]) -> Table {
    let mut table = Table::new("ple_exits", "Pause-loop exits (VEE'21, Figure 3)", EXITS);
    for workload in workloads {
        for ((name, number, vm), vm_number) in vms(workload).zip(workload.exits.vms.keys()) {
            let counted = workload.counted.get(vm_number);
            let seconds = vm.seen_for_ns() as f64 / 1e9;
            let known = |value: f64| (seconds > 0.0).then_some(value);
            table.push(vec![
                name,
                number,
                vm.vcpus.into(),
                seconds.into(),
                vm.exits().into(),
                known(vm.exits() as f64 / seconds).into(),
                known(vm.cpu_ns as f64 / 1e7 / seconds).into(),
                vm.boosted.into(),
                counted.map(|counted| counted.exits).into(),
                counted.map(|counted| counted.boosted).into(),
                workload.exits.lost_events.into(),
                workload.exits.late_events.into(),
                u64::from(workload.exits.sight.ipi_blind).into(),
            ]);
        }
    }
    table
}

fn runs_table(workloads: &[Workload<'_>]) -> Table {
    let title = "Continuous runs, weighted by exits (VEE'21, Figure 4; ruling 29)";
    let mut table = Table::new("ple_runs", title, RUNS);
    let rules = [
        (RunRule::InterruptsEnd, "end a run"),
        (RunRule::InterruptsIgnored, "do not"),
    ];
    for workload in workloads {
        for (name, number, vm) in vms(workload) {
            for (rule, word) in rules {
                let lengths = vm.runs(rule);
                let shares = lengths.shares;
                let by_length: Vec<String> = lengths
                    .exits_by_length
                    .iter()
                    .map(|(length, exits)| format!("{length}:{exits}"))
                    .collect();
                table.push(vec![
                    name.clone(),
                    number.clone(),
                    word.into(),
                    shares.runs.into(),
                    shares.exits.into(),
                    percent(shares.above_twice_vcpus, shares.exits).into(),
                    percent(shares.above_hundred, shares.exits).into(),
                    (shares.runs > 0).then_some(shares.longest).into(),
                    vm.exits_without_location.into(),
                    by_length.join(" ").into(),
                ]);
            }
        }
    }
    table
}

/// Whether an outcome counts in the paper's form, which has no words for these two.
fn is_the_papers(outcome: Outcome) -> bool {
    !matches!(outcome, Outcome::NoCandidate | Outcome::LostOther)
}

fn outcomes_table(workloads: &[Workload<'_>]) -> Table {
    let title = "What became of them (VEE'21, Figure 6; ruling 28)";
    let mut table = Table::new("ple_outcomes", title, OUTCOMES);
    for workload in workloads {
        for (name, number, vm) in vms(workload) {
            for (word, papers) in [("all", false), ("as in the paper", true)] {
                let counts = |outcome: Outcome| !papers || is_the_papers(outcome);
                let all: u64 = Outcome::ALL
                    .into_iter()
                    .filter(|&outcome| counts(outcome))
                    .map(|outcome| vm.outcomes[outcome as usize])
                    .sum();
                let mut row = vec![name.clone(), number.clone(), word.into(), all.into()];
                row.extend(Outcome::ALL.map(|outcome| {
                    let part = percent(vm.outcomes[outcome as usize], all);
                    Cell::from(part.filter(|_| counts(outcome)))
                }));
                row.push(vm.mismatch_same_cpu.into());
                table.push(row);
            }
        }
    }
    table
}

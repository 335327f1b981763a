// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tables of what pause-loop exits were for and what became of them: VEE'21's Figures 3 to 6.

use unspin_policy::{Outcome, RunRule};
use unspin_report::{Table, row};

use crate::commands::outcomes::{Workload, percent, reasons as reason_tables, vms};

row! {
    "ple_exits", ["outcomes"];
    /// Pause-loop exits of a VM (VEE'21, Figure 3).
    struct ExitsRow {
        /// The recording.
        workload: String = ("workload", Text),
        /// The VM.
        vm: String = ("VM", Text),
        /// vCPUs that were seen.
        vcpus: u64 = ("vCPUs", Count),
        /// For how long it was seen; s.
        seconds: f64 = ("seconds", Ratio),
        /// Pause-loop exits.
        ple_exits: u64 = ("PLE exits", Count),
        /// Pause-loop exits per second.
        ple_exits_per_second: Option<f64> = ("PLE exits/s", Count),
        /// CPU time of its vCPUs in that time; percent of one CPU.
        cpu_share_percent: Option<f64> = ("CPU %", Percent),
        /// Exits at which a vCPU was boosted, whatever came of it.
        boosted: u64,
        /// Pause-loop exits by the counters of KVM's programs, which lose nothing.
        counted_exits: Option<u64>,
        /// Such exits by the same counters.
        counted_boosted: Option<u64>,
        /// Events of the recording that were lost.
        lost_events: Option<u64>,
        /// Events of the recording that came too late to be put in order.
        late_events: u64,
        /// 1 where IPIs could not be seen.
        ipi_blind: u64,
    }
}

row! {
    "ple_runs", ["outcomes"];
    /// Continuous runs of pause-loop exits of a VM, weighted by exits (VEE'21, Figure 4; ruling 29).
    struct RunsRow {
        /// The recording.
        workload: String = ("workload", Text),
        /// The VM.
        vm: String = ("VM", Text),
        /// Whether interrupts of the host end a run: `end a run`, `do not`.
        host_interrupts: &'static str = ("host interrupts", Text),
        /// Runs.
        runs: u64 = ("runs", Count),
        /// Exits in them.
        exits_in_runs: u64 = ("exits", Count),
        /// Share of these in runs longer than twice the VM's vCPUs; percent.
        above_twice_vcpus_percent: Option<f64> = ("% in runs > 2 x vCPUs", Percent),
        /// Share of these in runs longer than 100; percent.
        above_hundred_percent: Option<f64> = ("% in runs > 100", Percent),
        /// Exits of the longest run.
        longest: Option<u64> = ("longest", Count),
        /// Exits whose instruction is not known, which are in no run.
        exits_without_location: u64,
        /// Exits in runs of 2^b to 2^(b+1) - 1 exits, as `b:exits` with blanks between.
        exits_by_log2_length: String,
    }
}

row! {
    "ple_outcomes", ["outcomes"];
    /// What became of a VM's pause-loop exits (VEE'21, Figure 6; ruling 28).
    struct OutcomesRow {
        /// The recording.
        workload: String = ("workload", Text),
        /// The VM.
        vm: String = ("VM", Text),
        /// Which exits count: `all`, or `as in the paper`, which has no words for two of the outcomes.
        counted: &'static str = ("counted", Text),
        /// Exits that count.
        ple_exits: u64 = ("PLE exits", Count),
        /// Share with no other vCPU of the VM descheduled that can be woken; percent.
        no_candidate_percent: Option<f64> = ("no candidate %", Percent),
        /// Share with none boosted, and a receiver of the spinner's IPI passed over for being in user mode; percent.
        lost_opportunity_percent: Option<f64> = ("lost opportunity %", Percent),
        /// Share with none boosted: passed over for another reason, or the yield failed; percent.
        lost_other_percent: Option<f64> = ("lost, other %", Percent),
        /// Share with one boosted, and the spinner running again before it; percent.
        mismatch_percent: Option<f64> = ("mismatch %", Percent),
        /// Share with a halted one boosted, to which the spinner had sent no IPI; percent.
        overboost_percent: Option<f64> = ("overboost %", Percent),
        /// Share with another vCPU boosted that ran; percent.
        success_percent: Option<f64> = ("success %", Percent),
        /// Share of which a fact that decides is not known; percent.
        unknown_percent: Option<f64> = ("unknown %", Percent),
        /// Mismatches whose boosted vCPU had last run on the spinner's pCPU (ruling 30).
        mismatch_same_cpu: u64,
    }
}

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

fn exits_table(workloads: &[Workload<'_>]) -> Table {
    let mut rows = Vec::new();
    for workload in workloads {
        for ((name, number, vm), vm_number) in vms(workload).zip(workload.exits.vms.keys()) {
            let counted = workload.counted.get(vm_number);
            let seconds = vm.seen_for_ns() as f64 / 1e9;
            let known = |value: f64| (seconds > 0.0).then_some(value);
            rows.push(ExitsRow {
                workload: name,
                vm: number,
                vcpus: vm.vcpus,
                seconds,
                ple_exits: vm.exits(),
                ple_exits_per_second: known(vm.exits() as f64 / seconds),
                cpu_share_percent: known(vm.cpu_ns as f64 / 1e7 / seconds),
                boosted: vm.boosted,
                counted_exits: counted.map(|counted| counted.exits),
                counted_boosted: counted.map(|counted| counted.boosted),
                lost_events: workload.exits.lost_events,
                late_events: workload.exits.late_events,
                ipi_blind: workload.exits.sight.ipi_blind.into(),
            });
        }
    }
    Table::of("Pause-loop exits (VEE'21, Figure 3)", rows)
}

fn runs_table(workloads: &[Workload<'_>]) -> Table {
    let title = "Continuous runs, weighted by exits (VEE'21, Figure 4; ruling 29)";
    let mut rows = Vec::new();
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
                rows.push(RunsRow {
                    workload: name.clone(),
                    vm: number.clone(),
                    host_interrupts: word,
                    runs: shares.runs,
                    exits_in_runs: shares.exits,
                    above_twice_vcpus_percent: percent(shares.above_twice_vcpus, shares.exits),
                    above_hundred_percent: percent(shares.above_hundred, shares.exits),
                    longest: (shares.runs > 0).then_some(shares.longest),
                    exits_without_location: vm.exits_without_location,
                    exits_by_log2_length: by_length.join(" "),
                });
            }
        }
    }
    Table::of(title, rows)
}

/// Whether an outcome counts in the paper's form, which has no words for these two.
fn is_the_papers(outcome: Outcome) -> bool {
    !matches!(outcome, Outcome::NoCandidate | Outcome::LostOther)
}

fn outcomes_table(workloads: &[Workload<'_>]) -> Table {
    let title = "What became of them (VEE'21, Figure 6; ruling 28)";
    let mut rows = Vec::new();
    for workload in workloads {
        for (name, number, vm) in vms(workload) {
            for (word, papers) in [("all", false), ("as in the paper", true)] {
                let counts = |outcome: Outcome| !papers || is_the_papers(outcome);
                let all: u64 = Outcome::ALL
                    .into_iter()
                    .filter(|&outcome| counts(outcome))
                    .map(|outcome| vm.outcomes[outcome as usize])
                    .sum();
                let share = |outcome: Outcome| {
                    let part = percent(vm.outcomes[outcome as usize], all);
                    part.filter(|_| counts(outcome))
                };
                rows.push(OutcomesRow {
                    workload: name.clone(),
                    vm: number.clone(),
                    counted: word,
                    ple_exits: all,
                    no_candidate_percent: share(Outcome::NoCandidate),
                    lost_opportunity_percent: share(Outcome::LostOpportunity),
                    lost_other_percent: share(Outcome::LostOther),
                    mismatch_percent: share(Outcome::Mismatch),
                    overboost_percent: share(Outcome::Overboost),
                    success_percent: share(Outcome::Success),
                    unknown_percent: share(Outcome::Unknown),
                    mismatch_same_cpu: vm.mismatch_same_cpu,
                });
            }
        }
    }
    Table::of(title, rows)
}

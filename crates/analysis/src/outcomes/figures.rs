// SPDX-License-Identifier: MIT OR Apache-2.0
//! How many pause-loop exits there were, in which runs, and what became of them: VEE'21's Figures 3, 4 and 6.

use unspin_policy::{Outcome, RunRule};
use unspin_report::row;

use super::{Workload, percent};

row! {
    "ple_exits", ["outcomes"];
    /// Pause-loop exits of a VM (VEE'21, Figure 3).
    pub struct ExitsRow {
        /// The recording.
        pub workload: String = ("workload", Text),
        /// The VM.
        pub vm: String = ("VM", Text),
        /// vCPUs that were seen.
        pub vcpus: u64 = ("vCPUs", Count),
        /// For how long it was seen; s.
        pub seconds: f64 = ("seconds", Ratio),
        /// Pause-loop exits.
        pub ple_exits: u64 = ("PLE exits", Count),
        /// Pause-loop exits per second.
        pub ple_exits_per_second: Option<f64> = ("PLE exits/s", Count),
        /// CPU time of its vCPUs in that time; percent of one CPU.
        pub cpu_share_percent: Option<f64> = ("CPU %", Percent),
        /// Exits at which a vCPU was boosted, whatever came of it.
        pub boosted: u64,
        /// Pause-loop exits by the counters of KVM's programs, which lose nothing.
        pub counted_exits: Option<u64>,
        /// Such exits by the same counters.
        pub counted_boosted: Option<u64>,
        /// Events of the recording that were lost.
        pub lost_events: Option<u64>,
        /// Events of the recording that came too late to be put in order.
        pub late_events: u64,
        /// 1 where IPIs could not be seen.
        pub ipi_blind: u64,
    }
}

row! {
    "ple_runs", ["outcomes"];
    /// Continuous runs of pause-loop exits of a VM, weighted by exits (VEE'21, Figure 4; ruling 29).
    pub struct RunsRow {
        /// The recording.
        pub workload: String = ("workload", Text),
        /// The VM.
        pub vm: String = ("VM", Text),
        /// Whether interrupts of the host end a run: `end a run`, `do not`.
        pub host_interrupts: &'static str = ("host interrupts", Text),
        /// Runs.
        pub runs: u64 = ("runs", Count),
        /// Exits in them.
        pub exits_in_runs: u64 = ("exits", Count),
        /// Share of these in runs longer than twice the VM's vCPUs; percent.
        pub above_twice_vcpus_percent: Option<f64> = ("% in runs > 2 x vCPUs", Percent),
        /// Share of these in runs longer than 100; percent.
        pub above_hundred_percent: Option<f64> = ("% in runs > 100", Percent),
        /// Exits of the longest run.
        pub longest: Option<u64> = ("longest", Count),
        /// Exits whose instruction is not known, which are in no run.
        pub exits_without_location: u64,
        /// Exits in runs of 2^b to 2^(b+1) - 1 exits, as `b:exits` with blanks between.
        pub exits_by_log2_length: String,
    }
}

row! {
    "ple_outcomes", ["outcomes"];
    /// What became of a VM's pause-loop exits (VEE'21, Figure 6; ruling 28).
    pub struct OutcomesRow {
        /// The recording.
        pub workload: String = ("workload", Text),
        /// The VM.
        pub vm: String = ("VM", Text),
        /// Which exits count: `all`, or `as in the paper`, which has no words for two of the outcomes.
        pub counted: &'static str = ("counted", Text),
        /// Exits that count.
        pub ple_exits: u64 = ("PLE exits", Count),
        /// Share with no other vCPU of the VM descheduled that can be woken; percent.
        pub no_candidate_percent: Option<f64> = ("no candidate %", Percent),
        /// Share with none boosted, and a receiver of the spinner's IPI passed over for being in user mode; percent.
        pub lost_opportunity_percent: Option<f64> = ("lost opportunity %", Percent),
        /// Share with none boosted: passed over for another reason, or the yield failed; percent.
        pub lost_other_percent: Option<f64> = ("lost, other %", Percent),
        /// Share with one boosted, and the spinner running again before it; percent.
        pub mismatch_percent: Option<f64> = ("mismatch %", Percent),
        /// Share with a halted one boosted, to which the spinner had sent no IPI; percent.
        pub overboost_percent: Option<f64> = ("overboost %", Percent),
        /// Share with another vCPU boosted that ran; percent.
        pub success_percent: Option<f64> = ("success %", Percent),
        /// Share of which a fact that decides is not known; percent.
        pub unknown_percent: Option<f64> = ("unknown %", Percent),
        /// Mismatches whose boosted vCPU had last run on the spinner's pCPU (ruling 30).
        pub mismatch_same_cpu: u64,
    }
}

/// Pause-loop exits of each VM.
pub fn exits(workloads: &[Workload]) -> Vec<ExitsRow> {
    let mut rows = Vec::new();
    for workload in workloads {
        for (number, name, vm) in workload.vms() {
            let counted = workload.counted.get(&number);
            let seconds = vm.seen_for_ns() as f64 / 1e9;
            let known = |value: f64| (seconds > 0.0).then_some(value);
            rows.push(ExitsRow {
                workload: workload.name.clone(),
                vm: name,
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
    rows
}

/// Continuous runs of each VM, by both rules for interrupts of the host (ruling 29).
pub fn runs(workloads: &[Workload]) -> Vec<RunsRow> {
    let rules = [
        (RunRule::InterruptsEnd, "end a run"),
        (RunRule::InterruptsIgnored, "do not"),
    ];
    let mut rows = Vec::new();
    for workload in workloads {
        for (_, name, vm) in workload.vms() {
            for (rule, word) in rules {
                let lengths = vm.runs(rule);
                let shares = lengths.shares;
                let by_length: Vec<String> = lengths
                    .exits_by_length
                    .iter()
                    .map(|(length, exits)| format!("{length}:{exits}"))
                    .collect();
                rows.push(RunsRow {
                    workload: workload.name.clone(),
                    vm: name.clone(),
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
    rows
}

/// Whether an outcome counts in the paper's form, which has no words for these two.
fn is_the_papers(outcome: Outcome) -> bool {
    !matches!(outcome, Outcome::NoCandidate | Outcome::LostOther)
}

/// What became of each VM's exits, of all and as in the paper (ruling 28).
pub fn outcomes(workloads: &[Workload]) -> Vec<OutcomesRow> {
    let mut rows = Vec::new();
    for workload in workloads {
        for (_, name, vm) in workload.vms() {
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
                    workload: workload.name.clone(),
                    vm: name.clone(),
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
    rows
}

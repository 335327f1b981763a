// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tables of `unspin canary`: what came of it, and all that was measured.

use unspin_experiment::Estimate;
use unspin_report::{Comparison, Document, Table, row};

use crate::{
    measured::{Measured, Outcome},
    phase::Phase,
    reading::{VmWindow, percentile},
    words,
};

row! {
    "canary", ["canary"];
    /// What came of a policy that was tried on the host's own VMs.
    pub struct CanaryRow {
        /// The policy.
        pub policy: String = ("policy", Text),
        /// better, harm, no-difference, or interrupted.
        pub outcome: &'static str = ("outcome", Text),
        /// Pairs of whole phases.
        pub pairs: usize = ("pairs", Count),
        /// Useful time of all VMs together beside that under the kernel's scheduler; geometric mean of the pairs.
        pub useful_ratio: Option<f64> = ("useful time, ratio", Ratio),
        /// Lower bound of its 95 % interval.
        pub useful_ratio_low: Option<f64> = ("95 % from", Ratio),
        /// Upper bound.
        pub useful_ratio_high: Option<f64> = ("to", Ratio),
        /// What the probe prints beside that under the kernel's scheduler; null: there is no probe.
        pub probe_ratio: Option<f64> = ("probe, ratio", Ratio),
        /// Lower bound of its 95 % interval.
        pub probe_ratio_low: Option<f64>,
        /// Upper bound.
        pub probe_ratio_high: Option<f64>,
        /// What has called it harm: useful-share, spin-share, run-delay, sleeper-delay, probe, probe-fails, taken-back or pairs; null: nothing.
        pub guard: Option<&'static str> = ("guard", Text),
        /// The VM that is harmed; null: the host.
        pub vm: Option<String> = ("VM", Text),
        /// Its process.
        pub process: Option<u32>,
        /// The guard's figure under the policy: a share from 0 to 1 (useful-share), percent (spin-share), ns (both delays), the probe's own unit, or a ratio (pairs).
        pub steered: Option<f64>,
        /// The same under the kernel's scheduler.
        pub kernel: Option<f64>,
        /// From where on it is harm.
        pub limit: Option<f64>,
        /// More about the harm; may be empty.
        pub message: String,
        /// From when the policy began until harm was seen, ns.
        pub seen_after_ns: Option<u64> = ("seen after", Nanoseconds),
        /// From when the policy began until the kernel's own scheduler was back, ns.
        pub back_after_ns: Option<u64> = ("back after", Nanoseconds),
        /// For how long the policy went on after all phases, ns; null: it did not.
        pub kept_ns: Option<u64> = ("kept", Nanoseconds),
        /// VMs that were not guarded, since there were too many threads.
        pub unguarded_vms: usize,
    }
}

row! {
    "canary_vm", ["canary"];
    /// A VM under the policy and under the kernel's own scheduler; of whole phases.
    pub struct CanaryVmRow {
        /// What its manager calls it, else its program's name.
        pub vm: String = ("VM", Text),
        /// Its process.
        pub process: u32 = ("process", Text),
        /// Useful time a second, under the kernel's scheduler; CPUs.
        pub kernel_useful_cpus: Option<f64> = ("CPUs of useful time: kernel", Ratio),
        /// The same under the policy.
        pub steered_useful_cpus: Option<f64> = ("policy", Ratio),
        /// Ratio of both; geometric mean of the pairs.
        pub useful_ratio: Option<f64> = ("ratio", Ratio),
        /// Lower bound of its 95 % interval.
        pub useful_ratio_low: Option<f64> = ("95 % from", Ratio),
        /// Upper bound.
        pub useful_ratio_high: Option<f64> = ("to", Ratio),
        /// higher, lower or not resolved.
        pub verdict: Option<String> = ("is", Text),
        /// Spin time as a share of time in the guest, under the kernel's scheduler; percent.
        pub kernel_spin_percent: Option<f64> = ("spun %: kernel", Percent),
        /// The same under the policy.
        pub steered_spin_percent: Option<f64> = ("policy", Percent),
        /// 99th percentile of run delays under the kernel's scheduler, ns: of the mean time that a vCPU waited for a CPU before a run, over all vCPUs and windows of 250 ms.
        pub kernel_run_delay_p99_ns: Option<u64> = ("run delay p99: kernel", Nanoseconds),
        /// The same under the policy.
        pub steered_run_delay_p99_ns: Option<u64> = ("policy", Nanoseconds),
        /// The policies that `auto` had given it at the end of the last phase; null: none of its own.
        pub chosen: Option<String> = ("chosen", Text),
    }
}

row! {
    "canary_host", ["canary"];
    /// The host under one scheduler; of whole phases.
    pub struct CanaryHostRow {
        /// `kernel`, or the policy.
        pub scheduler: String = ("scheduler", Text),
        /// Phases.
        pub phases: usize = ("phases", Count),
        /// Length of all of them, ns.
        pub length_ns: u64 = ("length", Nanoseconds),
        /// How often a thread that sleeps for 1 ms woke up.
        pub sleeps: usize = ("sleeps", Count),
        /// How late it woke up: median, ns.
        pub sleeper_delay_median_ns: Option<u64> = ("late: median", Nanoseconds),
        /// 99th percentile, ns.
        pub sleeper_delay_p99_ns: Option<u64> = ("p99", Nanoseconds),
        /// Longest, ns.
        pub sleeper_delay_longest_ns: Option<u64> = ("longest", Nanoseconds),
        /// Numbers that the probe printed.
        pub probe_values: usize = ("probe values", Count),
        /// Their mean; null: none.
        pub probe_mean: Option<f64> = ("mean", Ratio),
    }
}

row! {
    "canary_phase", ["canary"];
    /// A VM in a phase, for programs: what the host saw.
    pub struct CanaryPhaseRow {
        /// Number of the phase, in order of time, from 1 on.
        pub phase: usize,
        /// Number of the pair, from 1 on.
        pub pair: usize,
        /// `kernel`, or the policy.
        pub scheduler: String,
        /// false: it was cut short.
        pub whole: bool,
        /// Its length, ns.
        pub length_ns: u64,
        /// 99th percentile of the sleeper's delays in it, ns.
        pub sleeper_delay_p99_ns: Option<u64>,
        /// Mean of what the probe printed in it.
        pub probe_mean: Option<f64>,
        /// The VM.
        pub vm: String,
        /// Its process.
        pub process: u32,
        /// CPU time of its vCPUs' threads, ns.
        pub run_ns: u64,
        /// Time that they waited for a CPU, ns.
        pub wait_ns: u64,
        /// Time in the guest, ns.
        pub guest_ns: u64,
        /// Of it spinning, ns.
        pub spin_ns: u64,
        /// 99th percentile of run delays, ns.
        pub run_delay_p99_ns: Option<u64>,
        /// The policies that `auto` had given it at the phase's end; null: none of its own.
        pub chosen: Option<String>,
    }
}

/// All of it.
pub fn tables(document: &mut Document, measured: &Measured, policy: &str) {
    document.table(Table::of("What came of it", [canary(measured, policy)]));
    let vms = 0..measured.vms.len();
    document.table(Table::of(
        "VMs under both schedulers",
        vms.map(|number| vm(measured, number)),
    ));
    let hosts = [false, true].map(|steered| host(measured, policy, steered));
    document.table(Table::of("The host under both schedulers", hosts));
    document.table(Table::of("Phases", phases(measured, policy)));
    let lines = words::outcome(measured, policy);
    for line in lines.into_iter().chain(words::unsure(measured)) {
        document.note(line);
    }
}

fn estimate(of: Option<&Comparison>) -> Option<Estimate> {
    of.map(Estimate::of_ratio)
}

fn canary(measured: &Measured, policy: &str) -> CanaryRow {
    let compared = &measured.compared;
    let (useful, probe) = (
        estimate(compared.host.as_ref()),
        estimate(compared.probe.as_ref()),
    );
    let harm = match &measured.outcome {
        Outcome::Harm(harm) => Some(harm),
        _ => None,
    };
    let vm = harm.and_then(|harm| measured.vms.get(harm.vm?));
    let judged = harm.and_then(|harm| harm.judged);
    let ns = |time: std::time::Duration| time.as_nanos() as u64;
    CanaryRow {
        policy: policy.to_owned(),
        outcome: match &measured.outcome {
            Outcome::Harm(_) => "harm",
            Outcome::Better => "better",
            Outcome::NoDifference => "no-difference",
            Outcome::Interrupted => "interrupted",
        },
        pairs: compared.host.as_ref().map_or(0, |of| of.pairs),
        useful_ratio: useful.and_then(|of| of.known()),
        useful_ratio_low: useful.and_then(|of| of.low),
        useful_ratio_high: useful.and_then(|of| of.high),
        probe_ratio: probe.and_then(|of| of.known()),
        probe_ratio_low: probe.and_then(|of| of.low),
        probe_ratio_high: probe.and_then(|of| of.high),
        guard: harm.map(|harm| harm.guard.name()),
        vm: vm.map(|vm| vm.name.clone()),
        process: vm.map(|vm| vm.process),
        steered: judged.map(|judged| judged.steered),
        kernel: judged.map(|judged| judged.kernel),
        limit: judged.map(|judged| judged.limit),
        message: harm.map_or(String::new(), |harm| harm.message.clone()),
        seen_after_ns: harm.map(|harm| ns(harm.seen_after)),
        back_after_ns: harm.map(|harm| ns(harm.back_after)),
        kept_ns: measured.kept.map(ns),
        unguarded_vms: measured.unguarded,
    }
}

/// Whole phases of one scheduler.
fn of_scheduler(measured: &Measured, steered: bool) -> impl Iterator<Item = &Phase> {
    let phases = measured.phases.iter();
    phases.filter(move |phase| phase.whole && phase.steered == steered)
}

fn vm(measured: &Measured, number: usize) -> CanaryVmRow {
    let about = &measured.vms[number];
    let sum = |steered| {
        let mut sum = crate::Window::default();
        let with_it =
            of_scheduler(measured, steered).filter(|phase| phase.sum.vms.contains_key(&number));
        with_it.for_each(|phase| sum.add(&phase.sum));
        let length = sum.length;
        sum.vms.remove(&number).map(|vm| (vm, length))
    };
    let (kernel, steered) = (sum(false), sum(true));
    let useful = |of: &Option<(VmWindow, std::time::Duration)>| {
        of.as_ref()
            .map(|(vm, length)| vm.useful_ns() as f64 / length.as_nanos().max(1) as f64)
    };
    let spin = |of: &Option<(VmWindow, std::time::Duration)>| {
        of.as_ref()
            .and_then(|(vm, length)| vm.spin_percent(*length))
    };
    let delay = |of: &Option<(VmWindow, std::time::Duration)>| {
        of.as_ref()
            .and_then(|(vm, _)| percentile(&vm.delays_ns, 0.99))
    };
    let ratio = estimate(measured.compared.vms.get(&number));
    let last = of_scheduler(measured, true).last();
    CanaryVmRow {
        vm: about.name.clone(),
        process: about.process,
        kernel_useful_cpus: useful(&kernel),
        steered_useful_cpus: useful(&steered),
        useful_ratio: ratio.and_then(|of| of.known()),
        useful_ratio_low: ratio.and_then(|of| of.low),
        useful_ratio_high: ratio.and_then(|of| of.high),
        verdict: ratio.map(|of| of.verdict.to_string()),
        kernel_spin_percent: spin(&kernel),
        steered_spin_percent: spin(&steered),
        kernel_run_delay_p99_ns: delay(&kernel),
        steered_run_delay_p99_ns: delay(&steered),
        chosen: last.and_then(|phase| chosen(phase, about.process)),
    }
}

fn chosen(phase: &Phase, process: u32) -> Option<String> {
    let mut all = phase.policies.iter();
    all.find(|(of, _)| *of == process)
        .map(|(_, policy)| policy.clone())
}

fn host(measured: &Measured, policy: &str, steered: bool) -> CanaryHostRow {
    let mut sum = crate::Window::default();
    let (mut phases, mut probe) = (0, Vec::new());
    for phase in of_scheduler(measured, steered) {
        phases += 1;
        sum.add(&phase.sum);
        probe.extend(&phase.probe);
    }
    let late = |share| percentile(&sum.late_ns, share);
    CanaryHostRow {
        scheduler: scheduler(policy, steered),
        phases,
        length_ns: sum.length.as_nanos() as u64,
        sleeps: sum.late_ns.len(),
        sleeper_delay_median_ns: late(0.5),
        sleeper_delay_p99_ns: late(0.99),
        sleeper_delay_longest_ns: late(1.0),
        probe_values: probe.len(),
        probe_mean: (!probe.is_empty()).then(|| probe.iter().sum::<f64>() / probe.len() as f64),
    }
}

fn scheduler(policy: &str, steered: bool) -> String {
    match steered {
        true => policy.to_owned(),
        false => "kernel".to_owned(),
    }
}

fn phases(measured: &Measured, policy: &str) -> Vec<CanaryPhaseRow> {
    let numbered = measured.phases.iter().enumerate();
    let rows = numbered.flat_map(|(place, phase)| {
        let vms = phase.sum.vms.iter();
        vms.filter_map(move |(number, vm)| {
            let about = measured.vms.get(*number)?;
            Some(CanaryPhaseRow {
                phase: place + 1,
                pair: phase.pair + 1,
                scheduler: scheduler(policy, phase.steered),
                whole: phase.whole,
                length_ns: phase.sum.length.as_nanos() as u64,
                sleeper_delay_p99_ns: phase.sum.sleeper_p99_ns(),
                probe_mean: phase.probe_mean(),
                vm: about.name.clone(),
                process: about.process,
                run_ns: vm.run_ns,
                wait_ns: vm.wait_ns,
                guest_ns: vm.guest_ns,
                spin_ns: vm.spin_ns,
                run_delay_p99_ns: percentile(&vm.delays_ns, 0.99),
                chosen: chosen(phase, about.process),
            })
        })
    });
    rows.collect()
}

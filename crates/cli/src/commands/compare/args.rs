// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `unspin compare` takes.

use std::{path::PathBuf, time::Duration};

use crate::terminal::options::{Observe, Output, OverrideArguments, parse_limit, parse_time};
use clap::Args;
use unspin_agent::PolicyChoice;
use unspin_experiment::rival::Rival;

/// `unspin compare`
#[derive(Args, Debug)]
pub struct CompareArguments {
    /// What to run, in TOML; one comparison each.
    #[arg(value_name = "SCENARIO", required_unless_present = "full")]
    pub scenarios: Vec<PathBuf>,
    /// What overrides the scenarios.
    #[command(flatten)]
    pub overrides: OverrideArguments,
    /// VMs x vCPUs in place of the scenario's, as in 1x4. May be repeated: one comparison each.
    #[arg(long = "shape", value_name = "VMSxVCPUS", value_parser = crate::commands::compare::parse_shape)]
    pub shapes: Vec<(u32, u32)>,
    /// Also run with our scheduler: with every directed yield refused, and with this policy, as in loan,kernel-exit. May be
    /// repeated: all share the same ideal, stock and refuse-yields. auto gets 20 s to learn before its first sample; tune
    /// and tune=100us leave the host's scheduler in place, as `unspin tune` does.
    #[arg(long = "policy", value_name = "POLICY")]
    pub policies: Vec<PolicyChoice>,
    /// Also run under other sched_ext schedulers, apart by commas: scx_bpfland, scx_lavd, scx_rusty, each with its default options
    /// (`make rivals` builds them). May be repeated.
    #[arg(long = "rival", value_name = "RIVAL", value_delimiter = ',')]
    pub rivals: Vec<Rival>,
    /// Our scheduler has vCPU threads only, everything else stays with the kernel's own, as with `unspin steer --only-vms`.
    #[arg(long, requires = "policies")]
    pub only_vms: bool,
    /// Also measure the VMs' useful time, by which the policy auto judges: a key of the rows of samples (--json). It costs every exit of
    /// a vCPU two short BPF programs, in all columns.
    #[arg(long)]
    pub useful_time: bool,
    /// Pairs of samples of each column; each two pairs run in VMs of their own, from the next seed.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub pairs: u32,
    /// Length of each sample; the scenario's duration without its warm-up when absent.
    #[arg(long, value_name = "TIME", value_parser = parse_limit)]
    pub sample: Option<Duration>,
    /// What is left out after each change of scheduler or policy.
    #[arg(long, value_name = "TIME", default_value = "250ms", value_parser = parse_time)]
    pub discard: Duration,
    /// Whether to watch stock with BPF programs after the last sample, and say what its time went into.
    #[arg(long, value_enum, default_value = "auto")]
    pub observe: Observe,
    /// Run the whole matrix instead (scenarios/compare), each cell in a testbed of its own; goes on where it stopped.
    #[arg(long, conflicts_with_all = ["scenarios", "shapes", "policies", "rivals", "only_vms", "seed", "duration", "set"])]
    pub full: bool,
    /// Where --full keeps what it has measured.
    #[arg(
        long,
        value_name = "FOLDER",
        default_value = "compare-full",
        requires = "full"
    )]
    pub out: PathBuf,
    /// With --full: go on although another binary has measured the rows that are there.
    #[arg(long, requires = "full")]
    pub keep: bool,
    /// With --full: on this machine's own KVM, one cell after the other, with its pause-loop window as it is.
    #[arg(long, requires = "full")]
    pub on_this_host: bool,
    /// Whether the lab predicts each cell.
    #[command(flatten)]
    pub prediction: PredictionArguments,
    /// How to print.
    #[command(flatten)]
    pub output: Output,
}

/// What the lab predicts of a comparison.
#[derive(Args, Clone, Debug)]
pub struct PredictionArguments {
    /// Print beside each measured cell what the lab predicts for it. After `unspin testbed run --` the lab runs outside.
    #[arg(long)]
    pub lab: bool,
    /// What things cost where it is measured, as `unspin lab calibrate kvm --out` wrote it; the testbed's when absent.
    #[arg(long, value_name = "FILE", requires = "lab")]
    pub lab_costs: Option<PathBuf>,
    /// How many seeds the lab runs, from the scenario's on.
    #[arg(long, value_name = "SEEDS", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub lab_seeds: u32,
}

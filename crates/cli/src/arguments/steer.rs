// SPDX-License-Identifier: MIT OR Apache-2.0
//! Policies: attached, switched, compared, shown.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    time::Duration,
};

use clap::{Args, Subcommand};

use super::{Observe, Output, OverrideArguments, parse_limit, parse_time};
use crate::{disclosure_choice::DisclosureChoice, policy_choice::PolicyChoice};

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
    #[arg(long = "shape", value_name = "VMSxVCPUS", value_parser = crate::compare::parse_shape)]
    pub shapes: Vec<(u32, u32)>,
    /// Also run with our scheduler: with every directed yield refused, and with this policy, as in loan,kernel-exit. May be
    /// repeated: all share the same ideal, stock and none.
    #[arg(long = "policy", value_name = "POLICY")]
    pub policies: Vec<PolicyChoice>,
    /// Pairs of samples of each column; each two pairs run in VMs of their own, from the next seed.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub pairs: u32,
    /// Length of each sample; the scenario's duration without its warm-up when absent.
    #[arg(long, value_name = "TIME", value_parser = parse_limit)]
    pub window: Option<Duration>,
    /// What is left out after each change of scheduler or policy.
    #[arg(long, value_name = "TIME", default_value = "250ms", value_parser = parse_time)]
    pub discard: Duration,
    /// Whether to watch stock with BPF programs after the last sample, and say what its time went into.
    #[arg(long, value_enum, default_value = "auto")]
    pub observe: Observe,
    /// Run the whole matrix instead (scenarios/compare), each cell in a testbed of its own; goes on where it stopped.
    #[arg(long, conflicts_with_all = ["scenarios", "shapes", "policies", "seed", "duration", "set"])]
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

/// `unspin policy ...`
#[derive(Debug, Subcommand)]
pub enum PolicyVerb {
    /// Print the names of all policies.
    List,
    /// Change what the running `unspin steer` decides by, from the next decision on.
    Set(PolicySetArguments),
    /// Write a user policy, NAME.c, with comments that say how, and its test NAME_test.c, into this folder.
    New(PolicyNewArguments),
    /// Compile a user policy and its test for this machine, and run the test.
    Test(PolicyFileArguments),
    /// Compile a user policy into an object file, to be loaded where there is no compiler.
    Build(PolicyBuildArguments),
    /// Take the decisions of a log again, on this machine, and fail unless all are the same to the bit.
    Replay(PolicyReplayArguments),
}

/// `unspin policy set`
#[derive(Args, Debug)]
pub struct PolicySetArguments {
    /// none, or some of the others apart by commas; a user policy, if it runs, by its name.
    #[arg(value_name = "POLICY")]
    pub policy: String,
}

/// `unspin policy new`
#[derive(Args, Debug)]
pub struct PolicyNewArguments {
    /// What its functions' names begin with: letters a to z, digits and `_`.
    #[arg(value_name = "NAME")]
    pub name: String,
}

/// `unspin policy test`
#[derive(Args, Debug)]
pub struct PolicyFileArguments {
    /// The policy's C file.
    #[arg(value_name = "NAME.c")]
    pub file: PathBuf,
}

/// `unspin policy build`
#[derive(Args, Debug)]
pub struct PolicyBuildArguments {
    /// The policy's C file.
    #[arg(value_name = "NAME.c")]
    pub file: PathBuf,
    /// Where to put the object; NAME.bpf.o in this folder when absent.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// For `steer --dry-run`.
    #[arg(long)]
    pub dry_run: bool,
}

/// `unspin policy replay`
#[derive(Args, Debug)]
pub struct PolicyReplayArguments {
    /// What `unspin steer --log-decisions` wrote.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The C file of the policy of a user's own that was asked, too.
    #[arg(long, value_name = "NAME.c")]
    pub with: Option<PathBuf>,
}

/// `unspin steer`
#[derive(Args, Debug)]
pub struct SteerArguments {
    /// What decides: none, or some of those that `unspin policy list` prints, apart by commas; and a user policy,
    /// ./NAME.c or what `unspin policy build` made of it, which is asked first. For the pause-loop window: window=N,
    /// window=kvm, apple or apple=DELTA/LOWER/INITIAL/UPPER, which alone leave the host's scheduler in place.
    #[arg(long, value_name = "POLICY", default_value = "none")]
    pub policy: PolicyChoice,
    /// The kernel module that sets windows (kmod/); /lib/modules/<release>/extra/unspin_ple.ko when absent. none: set no
    /// windows, but tell guests that cooperate how many turns to spin before they halt or ask for help; apple does so by itself
    /// where no module is installed.
    #[arg(long, value_name = "FILE")]
    pub ple_module: Option<PathBuf>,
    /// Attach nothing to the scheduler: take every decision as far as its facts are known, count it, and say who would
    /// have been chosen. Also works where there is no sched_ext.
    #[arg(long)]
    pub dry_run: bool,
    /// Let policies touch this process's vCPUs only. May be repeated, and go with --cgroup.
    #[arg(long = "vm", value_name = "PROCESS")]
    pub vms: Vec<u32>,
    /// Let policies touch the vCPUs in this cgroup and below only, as in /sys/fs/cgroup/machine.slice. May be repeated.
    #[arg(long = "cgroup", value_name = "FOLDER")]
    pub cgroups: Vec<PathBuf>,
    /// How much guests are told in their pv pages: nothing, own (the default: what concerns the vCPU itself), or all (also
    /// whether somebody else could run on its CPU). For one VM: all=PROCESS or all=FOLDER of its cgroup. May be repeated.
    #[arg(long = "tell", value_name = "LEVEL[=WHOM]")]
    pub disclose: Vec<DisclosureChoice>,
    /// The guests' symbols, their /proc/kallsyms as root there, or System.map where the guest boots with nokaslr: a vCPU in
    /// a function that only runs inside critical sections counts as in one (AMD only). For all that are steered.
    #[arg(long, value_name = "FILE", conflicts_with = "dry_run")]
    pub sections: Option<PathBuf>,
    /// Detach after so long, as in 30s; until Ctrl-C when absent, or until COMMAND ends.
    #[arg(long, value_name = "TIME", value_parser = parse_limit)]
    pub duration: Option<Duration>,
    /// Write every decision with all that it followed from to this file; `unspin policy replay` takes them again.
    #[arg(long, value_name = "FILE")]
    pub log_decisions: Option<PathBuf>,
    /// How to print.
    #[command(flatten)]
    pub output: Output,
    /// Run this meanwhile, detach when it ends, and pass its exit status on.
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

impl SteerArguments {
    /// Whether guests' thresholds are to be set in place of windows, wherever the module is.
    pub fn sets_thresholds(&self) -> bool {
        self.ple_module.as_deref() == Some(Path::new("none"))
    }
}

/// `unspin demo`
#[derive(Args, Debug)]
pub struct DemoArguments {
    /// Pairs of samples of each row.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub pairs: u32,
    /// Run on this machine's own KVM instead of the testbed; asks first.
    #[arg(long)]
    pub on_this_host: bool,
    /// Do not ask, and run beside other VMs.
    #[arg(long)]
    pub yes: bool,
    /// How to print.
    #[command(flatten)]
    pub output: Output,
}

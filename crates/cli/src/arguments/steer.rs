// SPDX-License-Identifier: MIT OR Apache-2.0
//! Policies: attached, switched, compared, shown.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use clap::{Args, Subcommand};
use unspin_steering::Policies;

use super::{Observe, Output, ScenarioArguments, parse_limit};

/// `unspin compare`
#[derive(Args, Debug)]
pub struct CompareArguments {
    /// What to run.
    #[command(flatten)]
    pub scenario: ScenarioArguments,
    /// Pairs of runs; pair k runs from seed + k.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub pairs: u32,
    /// Whether to watch KVM and the scheduler with BPF programs.
    #[arg(long, value_enum, default_value = "auto")]
    pub observe: Observe,
    /// Also run with our scheduler: with every directed yield refused, and with this policy, as in loan,kernel-exit.
    #[arg(long, value_name = "POLICY", value_parser = crate::steer::parse_policies)]
    pub policy: Option<Policies>,
    /// How to print.
    #[command(flatten)]
    pub output: Output,
}

/// `unspin policy ...`
#[derive(Debug, Subcommand)]
pub enum PolicyVerb {
    /// Print the names of all policies.
    List,
    /// Change what the running `unspin steer` decides by, from the next decision on.
    Set(PolicySetArguments),
    /// Take the decisions of a log again, on this machine, and fail unless all are the same to the bit.
    Replay(PolicyReplayArguments),
}

/// `unspin policy set`
#[derive(Args, Debug)]
pub struct PolicySetArguments {
    /// none, or some of the others apart by commas.
    #[arg(value_name = "POLICY", value_parser = crate::steer::parse_policies)]
    pub policy: Policies,
}

/// `unspin policy replay`
#[derive(Args, Debug)]
pub struct PolicyReplayArguments {
    /// What `unspin steer --log-decisions` wrote.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

/// `unspin steer`
#[derive(Args, Debug)]
pub struct SteerArguments {
    /// What decides: none, or some of loan, loan-cpl, kernel-exit, directed-yield, apart by commas.
    #[arg(long, value_name = "POLICY", default_value = "none", value_parser = crate::steer::parse_policies)]
    pub policy: Policies,
    /// Let policies touch this process's vCPUs only. May be repeated, and go with --cgroup.
    #[arg(long = "vm", value_name = "PROCESS")]
    pub vms: Vec<u32>,
    /// Let policies touch the vCPUs in this cgroup and below only, as in /sys/fs/cgroup/machine.slice. May be repeated.
    #[arg(long = "cgroup", value_name = "FOLDER")]
    pub cgroups: Vec<PathBuf>,
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

/// `unspin demo`
#[derive(Args, Debug)]
pub struct DemoArguments {
    /// Pairs of runs of each row.
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

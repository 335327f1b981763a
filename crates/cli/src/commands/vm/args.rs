// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `unspin vm` takes.

use std::path::PathBuf;

use crate::{
    commands::vm::linux::{
        args::{LinuxArguments, LinuxLocksArguments},
        policies::args::LinuxPoliciesArguments,
    },
    terminal::options::{Output, ScenarioArguments},
};
use clap::{Args, Subcommand, ValueEnum};
use unspin_scenario::Host;

/// What the host below Linux guests has to be.
#[derive(Args, Clone, Copy, Debug)]
pub struct PauseLoopArguments {
    /// The pause-loop window: kvm_amd's pause_filter_count, kvm_intel's ple_window. In the testbed KVM is loaded with it,
    /// elsewhere it must be in force.
    #[arg(long, value_name = "NUMBER")]
    pub ple_window: Option<u32>,
    /// pause_filter_thresh, ple_gap.
    #[arg(long, value_name = "NUMBER")]
    pub ple_gap: Option<u32>,
    /// KVM leaves the window alone.
    #[arg(long)]
    pub ple_window_fixed: bool,
}

impl PauseLoopArguments {
    /// The same as a scenario has it.
    pub fn host(self) -> Host {
        Host {
            cpus: None,
            ple_window: self.ple_window,
            ple_gap: self.ple_gap,
            ple_window_fixed: self.ple_window_fixed,
        }
    }
}

/// `unspin vm ...`
#[derive(Debug, Subcommand)]
pub enum VmVerb {
    /// Run a scenario's VMs and print what each vCPU did.
    Run(VmRunArguments),
    /// Run unmodified Linux guests under the distribution's QEMU and print what they and the host say.
    Linux(LinuxArguments),
    /// Run Linux guests with each of the papers' spinlocks, alternately, and print their times beside the ticket lock's.
    LinuxLocks(LinuxLocksArguments),
    /// Run Linux guests that keep running while policies come and go, and print their times under each beside the host's own
    /// scheduler.
    LinuxPolicies(LinuxPoliciesArguments),
}

/// Whether to load the BPF programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Observe {
    /// When this host allows it; otherwise say why not and go on.
    Auto,
    /// Or fail.
    On,
    /// Never.
    Off,
}

impl From<Observe> for unspin_experiment::watch::Observe {
    fn from(observe: Observe) -> Self {
        match observe {
            Observe::Auto => Self::Auto,
            Observe::On => Self::On,
            Observe::Off => Self::Off,
        }
    }
}

/// `unspin vm run`
#[derive(Args, Debug)]
pub struct VmRunArguments {
    /// What to run.
    #[command(flatten)]
    pub scenario: ScenarioArguments,
    /// Write the event log (switches, pause-loop exits, directed yields) to this file.
    #[arg(long, value_name = "FILE")]
    pub events: Option<PathBuf>,
    /// Record the run into this new folder, as `unspin record` does.
    #[arg(long, value_name = "FOLDER")]
    pub record: Option<PathBuf>,
    /// Write the guests' own logs, the ground truth, to this file: `unspin ground-truth` judges explanations by it.
    #[arg(long, value_name = "FILE")]
    pub guest_log: Option<PathBuf>,
    /// Whether to watch KVM and the scheduler with BPF programs.
    #[arg(long, value_enum, default_value = "auto")]
    pub observe: Observe,
    /// How to print.
    #[command(flatten)]
    pub output: Output,
}

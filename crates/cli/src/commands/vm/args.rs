// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `unspin vm` takes.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::{
    commands::vm::linux::{
        args::{LinuxArguments, LinuxLocksArguments},
        policies::args::LinuxPoliciesArguments,
    },
    terminal::options::{Observe, Output, ScenarioArguments},
};

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

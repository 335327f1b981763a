// SPDX-License-Identifier: MIT OR Apache-2.0
//! What runs: scenarios and the VMs made from them.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use unspin_scenario::{Overrides, Scenario};

use super::Output;
use super::{LinuxArguments, LinuxLocksArguments, LinuxPoliciesArguments};
use crate::{failure::Failure, lab_calibrate};

/// `unspin scenario ...`
#[derive(Debug, Subcommand)]
pub enum ScenarioVerb {
    /// Print the JSON Schema of a scenario.
    Schema,
    /// Read a scenario and print its canonical form, which every run can be repeated from.
    Check(CheckArguments),
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

/// Flags that override a scenario.
#[derive(Args, Clone, Debug, Default)]
pub struct OverrideArguments {
    /// Override the seed.
    #[arg(long)]
    pub seed: Option<u64>,
    /// Override the length, as in 2s or 250ms.
    #[arg(long, value_name = "TIME")]
    pub duration: Option<String>,
    /// Override any value, as in vm.vcpus=4 or vm.0.hold='{ exponential = "300 loops" }'. May be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// What things cost in the lab, as `unspin lab calibrate --out` wrote it; --set goes before it.
    #[arg(long, value_name = "FILE")]
    pub costs: Option<PathBuf>,
}

/// A scenario file and what overrides it.
#[derive(Args, Clone, Debug)]
pub struct ScenarioArguments {
    /// The scenario, in TOML.
    #[arg(value_name = "SCENARIO")]
    pub file: PathBuf,
    /// What overrides it.
    #[command(flatten)]
    pub overrides: OverrideArguments,
}

/// `unspin scenario check`
#[derive(Args, Debug)]
pub struct CheckArguments {
    /// What to read.
    #[command(flatten)]
    pub scenario: ScenarioArguments,
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

impl OverrideArguments {
    /// The flags as overrides, in the order costs, seed, duration, set.
    pub fn overrides(&self) -> Result<Overrides, Failure> {
        let mut overrides = Overrides::default();
        let seed = self.seed.map(|seed| format!("seed={seed}"));
        let duration = self
            .duration
            .as_ref()
            .map(|time| format!("duration={time}"));
        let costs = match &self.costs {
            Some(file) => lab_calibrate::overrides_of(file)?,
            None => Vec::new(),
        };
        let given = costs.iter().chain(&seed).chain(&duration).chain(&self.set);
        for given in given {
            overrides
                .set(given)
                .map_err(|error| Failure::Usage(error.to_string()))?;
        }
        Ok(overrides)
    }
}

impl ScenarioArguments {
    /// Reads the file and overrides it.
    pub fn load(&self) -> Result<Scenario, Failure> {
        Ok(Scenario::load(&self.file, &self.overrides.overrides()?)?)
    }
}

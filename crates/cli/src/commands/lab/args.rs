// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `unspin lab` takes.

use std::path::PathBuf;

use crate::terminal::options::{Output, ScenarioArguments};
use clap::{Args, Subcommand, ValueEnum};
use unspin_agent::Explained;

/// `unspin lab ...`
#[derive(Debug, Subcommand)]
pub enum LabVerb {
    /// Run a scenario on a simulated host and print what each VM, vCPU and pCPU did.
    Run(LabRunArguments),
    /// Compare policies with the scenario as it is, and with the same work without overcommit, seed by seed.
    Compare(LabCompareArguments),
    /// Run a grid of scenarios on all cores into one Parquet file; run it again to continue after a kill.
    Sweep(LabSweepArguments),
    /// Search a space of scenarios for those in which a policy harms, through the Python module unspin_lab.
    Find(LabFindArguments),
    /// Turn a recording into a scenario.
    From(LabFromArguments),
    /// Measure the costs of operations on this machine, or under its KVM, with programs that contain no lock.
    Calibrate(LabCalibrateArguments),
    /// Predict figures that were measured elsewhere and print both, cell by cell.
    Conform(LabConformArguments),
}

/// `unspin lab run`
#[derive(Args, Debug)]
pub struct LabRunArguments {
    /// What to run.
    #[command(flatten)]
    pub scenario: ScenarioArguments,
    /// Write the timeline to this file, for ui.perfetto.dev.
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Write a recording, as of a real host, to this folder, for `unspin outcomes`, `explain` and `threshold`.
    #[arg(long, value_name = "DIR", conflicts_with = "trace")]
    pub record: Option<PathBuf>,
    /// With lab.policy = "auto": print every epoch of the VM with that number, or of `all`.
    #[arg(long, value_name = "VM")]
    pub explain_choice: Option<Explained>,
    /// How to print.
    #[command(flatten)]
    pub output: Output,
}

/// `unspin lab compare`
#[derive(Args, Debug)]
pub struct LabCompareArguments {
    /// What to run.
    #[command(flatten)]
    pub scenario: ScenarioArguments,
    /// A change to compare with the scenario as it is: words separated by commas. May be repeated: a comparison each. A
    /// word is a host scheduler (eevdf-6.6), a rule for candidates (strict), a window control (apple), a steering policy
    /// (loan, auto), or KEY=VALUE of the table [lab].
    #[arg(long = "policy", value_name = "POLICY", required = true)]
    pub policies: Vec<String>,
    /// How many seeds, from the scenario's on.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub seeds: u32,
    /// How many runs at a time; as many as there are CPUs when absent.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=4_096))]
    pub workers: Option<u32>,
    /// How to print.
    #[command(flatten)]
    pub output: Output,
}

/// `unspin lab sweep`
#[derive(Args, Debug)]
pub struct LabSweepArguments {
    /// What to run. --set takes several values here, each run with each of the others': key=x,y,z, key=a..b,
    /// key=a..b..step and key=a..b..*factor, both ends included.
    #[command(flatten)]
    pub scenario: ScenarioArguments,
    /// Folder for the results: a new or an empty one, or that of the same sweep, to continue it. With --ray a folder that
    /// all nodes see, or a URL that fsspec takes, which gets a file for each part of the grid.
    #[arg(long, value_name = "FOLDER")]
    pub out: PathBuf,
    /// Run the cells on the Ray cluster at this address (auto, HOST:6379), or on one of this machine's own (local), through
    /// the Python module unspin_lab: docs/python.md.
    #[arg(long, value_name = "ADDRESS", conflicts_with = "workers")]
    pub ray: Option<String>,
    /// How many seeds for each point of the grid, from the scenario's on.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub seeds: u32,
    /// How many runs at a time; as many as there are CPUs when absent.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=4_096))]
    pub workers: Option<u32>,
    /// How to print.
    #[command(flatten)]
    pub output: Output,
}

/// `unspin lab find`
#[derive(Args, Debug)]
pub struct LabFindArguments {
    /// Where the search begins. --set takes several values here, as for `lab sweep`: all of them, each with each of the others',
    /// are the space.
    #[command(flatten)]
    pub scenario: ScenarioArguments,
    /// The policy, as `lab compare` takes it.
    #[arg(long, value_name = "POLICY")]
    pub policy: String,
    /// How many points are looked at; optuna chooses them.
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub trials: u32,
    /// How many seeds each is looked at with.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(2..=1_000))]
    pub seeds: u32,
    /// With how many new seeds those are verified that looked harmful.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(2..=1_000))]
    pub verify_seeds: u32,
    /// How many findings are kept.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub keep: u32,
    /// Another search of the same space.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub search_seed: u32,
    /// How many runs at a time; as many as there are CPUs when absent.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=4_096))]
    pub workers: Option<u32>,
    /// A new folder, which gets a scenario for each finding.
    #[arg(long, value_name = "FOLDER")]
    pub out: Option<PathBuf>,
    /// How to print.
    #[command(flatten)]
    pub output: Output,
}

/// `unspin lab from`
#[derive(Args, Debug)]
pub struct LabFromArguments {
    /// The recording.
    #[arg(value_name = "RECORDING")]
    pub folder: PathBuf,
    /// Write the scenario to this new file; to standard output when absent.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// What is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum CalibratedWorld {
    /// Threads on this machine's CPUs.
    #[default]
    Threads,
    /// The same, and a guest under this machine's KVM.
    Kvm,
}

/// `unspin lab calibrate`
#[derive(Args, Debug)]
pub struct LabCalibrateArguments {
    /// What to measure.
    #[arg(value_enum, default_value_t)]
    pub world: CalibratedWorld,
    /// The scenario whose [host] has the pause-loop window with which KVM is loaded: the testbed loads it so. Without a
    /// fixed window, pause-loop exits are not measured.
    #[arg(long, value_name = "SCENARIO")]
    pub like: Option<PathBuf>,
    /// Write the costs to this file, for --costs of the lab's commands.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// How to print.
    #[command(flatten)]
    pub output: Output,
}

/// `unspin lab conform`
#[derive(Args, Debug)]
pub struct LabConformArguments {
    /// The measured figures: costs, scenarios, and operations per second of each.
    #[arg(value_name = "CELLS")]
    pub file: PathBuf,
    /// How many seeds, from each scenario's on.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub seeds: u32,
    /// How many runs at a time; as many as there are CPUs when absent.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=4_096))]
    pub workers: Option<u32>,
    /// How to print.
    #[command(flatten)]
    pub output: Output,
}

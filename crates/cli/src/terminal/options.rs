// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options that several commands take.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use unspin_experiment::costs;
use unspin_scenario::{Host, Overrides, Scenario};

use crate::terminal::failure::Failure;

pub use unspin_config::{parse_limit, parse_time};

/// `--json`, which every command with a table takes.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct Output {
    /// Print one JSON object on standard output: {"format_version", "command", "commit", "machine", "rows": [...]};
    /// docs/reference/json.md says what its keys are.
    #[arg(long)]
    pub json: bool,
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
            Some(file) => costs::overrides_of(file)?,
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

// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `unspin outcomes` takes.

use std::path::PathBuf;

use crate::terminal::{
    failure::Failure,
    options::{Output, OverrideArguments},
};
use clap::{Args, ValueEnum};
use unspin_scenario::Scenario;

/// What pause-loop windows count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum WindowWord {
    /// PAUSEs (AMD).
    Pauses,
    /// TSC cycles (Intel).
    Cycles,
}

/// `unspin outcomes`
#[derive(Args, Debug)]
pub struct OutcomesArguments {
    /// Recordings (folders), event logs (files), or scenarios (.toml), which are run now; one for each workload.
    #[arg(required = true, value_name = "RECORDING|SCENARIO")]
    pub recordings: Vec<PathBuf>,
    /// What overrides scenarios.
    #[command(flatten)]
    pub overrides: OverrideArguments,
    /// The guests' symbols, System.map or /proc/kallsyms: they name the function that spun.
    #[arg(long, value_name = "FILE")]
    pub symbols: Option<PathBuf>,
    /// The guests are Linux: their interrupt vectors say which IPIs are waited for.
    #[arg(long)]
    pub linux: bool,
    /// What `vm run --json` printed of each recording, in the same order: adds the guests' own share of spinning. Scenarios
    /// that are run now tell it themselves.
    #[arg(long = "guest", value_name = "FILE")]
    pub guests: Vec<PathBuf>,
    /// What windows count, for event logs, which do not say it.
    #[arg(long, value_enum)]
    pub window_unit: Option<WindowWord>,
    /// Frequency of the TSC in kHz: iterations windows of TSC cycles into time.
    #[arg(long, value_name = "KHZ", value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub tsc_khz: Option<u64>,
    /// How to print.
    #[command(flatten)]
    pub output: Output,
}

impl OutcomesArguments {
    /// Those of its inputs that are scenarios, with the overrides applied.
    pub fn scenarios(&self) -> Result<Vec<Scenario>, Failure> {
        let files = self.recordings.iter().filter(|file| is_scenario(file));
        files
            .map(|file| Ok(Scenario::load(file, &self.overrides.overrides()?)?))
            .collect()
    }
}

/// Whether an input of `unspin outcomes` is to be run, not read.
pub fn is_scenario(file: &std::path::Path) -> bool {
    file.extension().is_some_and(|ending| ending == "toml")
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The lab's commands.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{Output, ScenarioArguments};

/// `unspin lab ...`
#[derive(Debug, Subcommand)]
pub enum LabVerb {
    /// Run a scenario on a simulated host and print what each VM, vCPU and pCPU did.
    Run(LabRunArguments),
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
    /// How to print.
    #[command(flatten)]
    pub output: Output,
}

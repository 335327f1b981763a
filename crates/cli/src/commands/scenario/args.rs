// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `unspin scenario` takes.

use crate::terminal::options::ScenarioArguments;
use clap::{Args, Subcommand};

/// `unspin scenario ...`
#[derive(Debug, Subcommand)]
pub enum ScenarioVerb {
    /// Print the JSON Schema of a scenario.
    Schema(SchemaArguments),
    /// Read a scenario and print its canonical form, which every run can be repeated from.
    Check(CheckArguments),
}

/// `unspin scenario schema`
#[derive(Args, Debug)]
pub struct SchemaArguments {
    /// Print it as a page of Markdown instead.
    #[arg(long)]
    pub markdown: bool,
}

/// `unspin scenario check`
#[derive(Args, Debug)]
pub struct CheckArguments {
    /// What to read.
    #[command(flatten)]
    pub scenario: ScenarioArguments,
}

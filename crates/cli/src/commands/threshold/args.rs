// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `unspin threshold` takes.

use std::path::PathBuf;

use crate::terminal::options::Output;
use clap::Args;

/// `unspin threshold`
#[derive(Args, Debug)]
pub struct ThresholdArguments {
    /// A recording.
    #[arg(value_name = "FOLDER")]
    pub folder: PathBuf,
    /// Only this VM's waits, by its number; those of all VMs together when absent.
    #[arg(long, value_name = "NUMBER")]
    pub vm: Option<u32>,
    /// How to print.
    #[command(flatten)]
    pub output: Output,
}

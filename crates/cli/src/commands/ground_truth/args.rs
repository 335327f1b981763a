// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `unspin ground-truth` takes.

use std::path::PathBuf;

use crate::terminal::options::Output;
use clap::Args;

/// `unspin ground-truth`
#[derive(Args, Debug)]
pub struct GroundTruthArguments {
    /// The recording, or an event log.
    #[arg(value_name = "RECORDING")]
    pub recording: PathBuf,
    /// What `vm run --guest-log` wrote in the same run.
    #[arg(long, value_name = "FILE")]
    pub guest_log: PathBuf,
    /// Leave the guests' pv pages out: host knowledge alone.
    #[arg(long)]
    pub no_pv_pages: bool,
    /// How to print.
    #[command(flatten)]
    pub output: Output,
}

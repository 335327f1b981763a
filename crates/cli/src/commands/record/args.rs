// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `unspin record` takes.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use crate::{
    commands::record::flight_args::FlightArguments,
    terminal::options::{Output, parse_limit},
};
use clap::{Args, ValueEnum};

/// Yes or no.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Switch {
    /// Yes.
    On,
    /// No.
    Off,
}

/// `unspin record`
#[derive(Args, Debug)]
pub struct RecordArguments {
    /// Folder for the recording: a new or an empty one; with --keep also one with an earlier flight recorder's.
    #[arg(value_name = "FOLDER")]
    pub folder: PathBuf,
    /// How long to record, as in 90s; until Ctrl-C, or until the command ends, when absent.
    #[arg(long, value_name = "TIME", value_parser = parse_limit)]
    pub duration: Option<Duration>,
    /// Whether to record inter-processor interrupts.
    #[arg(long, value_enum, default_value = "on")]
    pub ipi: Switch,
    /// Record every exit and entry of every vCPU, too: by far the most events.
    #[arg(long)]
    pub exits: bool,
    /// How to print the summary; with --keep also a line every 10 s, and one for each trigger.
    #[command(flatten)]
    pub output: Output,
    /// A command to run meanwhile; its exit status is passed on. `unspin` is this binary.
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
    /// Record all the time and keep the end.
    #[command(flatten)]
    pub flight: FlightArguments,
}

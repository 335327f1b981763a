// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `unspin preload` takes.

use std::{ffi::OsString, path::PathBuf};

use clap::Args;

use crate::terminal::options::Output;

/// `unspin preload`
#[derive(Args, Debug)]
pub struct PreloadArguments {
    /// When the program ends, say on standard error which locks calls have waited for, and what was left to libc.
    #[arg(long)]
    pub report: bool,
    /// Write the report to this file in place of standard error.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// How many locks the report names at most.
    #[arg(long, value_name = "NUMBER", default_value_t = 20)]
    pub locks: usize,
    /// How to print: --json asks for the report, too.
    #[command(flatten)]
    pub output: Output,
    /// The program and its arguments.
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "PROGRAM"
    )]
    pub program: Vec<OsString>,
}

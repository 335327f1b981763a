// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `unspin help` takes.

use std::path::PathBuf;

use clap::Args;

/// `unspin help`
#[derive(Args, Debug)]
pub struct HelpArguments {
    /// The command to explain, as in `lab run`; all of them when absent.
    #[arg(value_name = "COMMAND")]
    pub command: Vec<String>,
    /// Write a man page for each command into this folder: unspin.1, unspin-lab-run.1 and so on.
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    pub man: Option<PathBuf>,
    /// Print the tables of --json, each with the JSON Schema of its rows.
    #[arg(long, conflicts_with_all = ["command", "man"])]
    pub tables: bool,
    /// Print every command and its options, or with --tables every table and its keys, as one page of Markdown.
    #[arg(long, conflicts_with_all = ["command", "man"])]
    pub markdown: bool,
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `unspin config` takes.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::terminal::options::Output;

/// `unspin config ...`
#[derive(Debug, Subcommand)]
pub enum ConfigVerb {
    /// Read the configuration and say whether anything in it is not known or cannot be: exit status 2.
    Check(FileArguments),
    /// Print every value that is in force, and where it comes from.
    Show(FileArguments),
    /// Print a configuration in which every key stands with its default as a comment.
    Default(DefaultArguments),
}

/// `unspin config check`, `unspin config show`
#[derive(Args, Debug)]
pub struct FileArguments {
    /// The file; /etc/unspin/unspin.toml when absent.
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// How to print.
    #[command(flatten)]
    pub output: Output,
}

/// `unspin config default`
#[derive(Args, Debug)]
pub struct DefaultArguments {
    /// Print it as a page of Markdown instead.
    #[arg(long)]
    pub markdown: bool,
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `unspin top` takes.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use clap::Args;

use crate::terminal::options::{Output, parse_limit};

/// `unspin top`
#[derive(Args, Debug)]
pub struct TopArguments {
    /// Where `unspin serve` answers. When nobody does, root watches by itself.
    #[arg(long, value_name = "PATH", default_value = unspin_watch::socket::SOCKET_PATH)]
    pub socket: PathBuf,
    /// Watch by itself, whether `unspin serve` runs or not; takes root.
    #[arg(long, conflicts_with = "socket")]
    pub own: bool,
    /// How long figures are counted for, and how often they are shown.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_limit)]
    pub interval: Duration,
    /// Print one table of VMs, their vCPUs and for whom they spun, in place of the screen.
    #[arg(long)]
    pub once: bool,
    /// How to print it.
    #[command(flatten)]
    pub output: Output,
    /// With --once: a command to run meanwhile; its exit status is passed on. `unspin` is this binary. Figures are of the time before
    /// it ends.
    #[arg(last = true, value_name = "COMMAND", requires = "once")]
    pub command: Vec<OsString>,
}

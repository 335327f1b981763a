// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `unspin explain` takes.

use std::{path::PathBuf, time::Duration};

use crate::terminal::options::{Output, parse_limit};
use clap::Args;
use unspin_vms::VmName;

/// `unspin explain`
#[derive(Args, Debug)]
pub struct ExplainArguments {
    /// The recording (`unspin record`, `unspin vm run --record`), or an event log (`--events`).
    #[arg(value_name = "RECORDING")]
    pub recording: PathBuf,
    /// This VM alone, by name, UUID, id at its manager or process. May be repeated; all VMs when absent.
    #[arg(long = "vm", value_name = "VM")]
    pub vms: Vec<VmName>,
    /// List the waits one by one that spun for at least so much CPU time.
    #[arg(long, value_name = "TIME", default_value = "100us", value_parser = parse_limit)]
    pub min_wait: Duration,
    /// How many of them at most, the longest first.
    #[arg(long, value_name = "NUMBER", default_value_t = 10)]
    pub waits: usize,
    /// Names for the guests' addresses: a Linux System.map, or /proc/kallsyms of a guest.
    #[arg(long, value_name = "FILE")]
    pub symbols: Option<PathBuf>,
    /// Draw the vCPUs' time line into this file.
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Where the drawing begins, since the first event.
    #[arg(long, value_name = "TIME", requires = "svg", value_parser = parse_limit)]
    pub svg_from: Option<Duration>,
    /// How much time it shows.
    #[arg(long, value_name = "TIME", requires = "svg", default_value = "2ms", value_parser = parse_limit)]
    pub svg_length: Duration,
    /// How to print.
    #[command(flatten)]
    pub output: Output,
}

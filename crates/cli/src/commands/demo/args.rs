// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `unspin demo` takes.

use crate::{commands::testbed::args::Machine, terminal::options::Output};
use clap::Args;

/// `unspin demo`
#[derive(Args, Debug)]
pub struct DemoArguments {
    /// Pairs of samples of each row.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub pairs: u32,
    /// Whose virtualisation the testbed's machine has.
    #[arg(long, value_enum, default_value = "amd", conflicts_with_all = ["on_this_host", "predict"])]
    pub machine: Machine,
    /// Run on this machine's own KVM instead of the testbed; asks first.
    #[arg(long)]
    pub on_this_host: bool,
    /// Print what the lab predicts for the table instead, which takes a second and needs no testbed.
    #[arg(long, conflicts_with = "on_this_host")]
    pub predict: bool,
    /// Do not ask, and run beside other VMs.
    #[arg(long)]
    pub yes: bool,
    /// How to print.
    #[command(flatten)]
    pub output: Output,
}

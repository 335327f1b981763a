// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin bench vm`: which locks, how many VMs of how many vCPUs, what they do, and beside whom.

use std::path::PathBuf;

use clap::{Args, value_parser};

use super::{Output, OverrideArguments};

/// `unspin bench vm`
#[derive(Args, Debug)]
pub struct BenchVmArguments {
    /// The scenario, in TOML, with one group of VMs and a duration; a built-in one when there is none (2 vCPUs, one lock,
    /// user work of 3,000 and hold of 300 loops in the mean, 200 ms).
    #[arg(value_name = "SCENARIO")]
    pub file: Option<PathBuf>,
    /// What overrides it.
    #[command(flatten)]
    pub overrides: OverrideArguments,
    /// Locks to compare, apart by commas, or all; the first is what the others are compared with, and runs twice. The
    /// scenario's own when absent.
    #[arg(long = "lock", value_name = "LOCK", value_delimiter = ',')]
    pub locks: Vec<String>,
    /// Numbers of VMs, apart by commas.
    #[arg(long, value_name = "NUMBER", value_delimiter = ',', default_value = "1,2,3",
          value_parser = value_parser!(u32).range(1..=100))]
    pub vms: Vec<u32>,
    /// Numbers of vCPUs of each VM, apart by commas.
    #[arg(long, value_name = "NUMBER", value_delimiter = ',', default_value = "2",
          value_parser = value_parser!(u32).range(1..=64))]
    pub vcpus: Vec<u32>,
    /// How long the lock is held, apart by commas, as in 50ns,2us; the scenario's own when absent.
    #[arg(long, value_name = "TIME", value_delimiter = ',', value_parser = super::parse_time)]
    pub hold: Vec<std::time::Duration>,
    /// Time in user mode between unlock and lock, apart by commas, as in 0ns,50us; the scenario's own when absent.
    #[arg(long, value_name = "TIME", value_delimiter = ',', value_parser = super::parse_time)]
    pub think: Vec<std::time::Duration>,
    /// VMs of one vCPU beside them that only use CPU time, apart by commas.
    #[arg(long, value_name = "NUMBER", value_delimiter = ',', default_value = "0",
          value_parser = value_parser!(u32).range(0..=100))]
    pub neighbours: Vec<u32>,
    /// How often each lock is run at each point: every second time in reversed order, each time with the next seed.
    #[arg(long, default_value_t = 2, value_parser = value_parser!(u32).range(1..=10_000))]
    pub repeat: u32,
    /// Draw the rates of each lock over the number of VMs, a picture for each of the other axes' values.
    #[arg(long, value_name = "FILE.svg")]
    pub plot: Option<PathBuf>,
    /// How to print.
    #[command(flatten)]
    pub output: Output,
}

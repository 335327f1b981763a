// SPDX-License-Identifier: MIT OR Apache-2.0
//! The lab beside real machines: what things cost, and how near its predictions come.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::Output;

/// What is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum CalibratedWorld {
    /// Threads on this machine's CPUs.
    #[default]
    Threads,
    /// The same, and a guest under this machine's KVM.
    Kvm,
}

/// `unspin lab calibrate`
#[derive(Args, Debug)]
pub struct LabCalibrateArguments {
    /// What to measure.
    #[arg(value_enum, default_value_t)]
    pub world: CalibratedWorld,
    /// The scenario whose [host] says with which pause-loop window KVM is loaded: the testbed loads it so. Without a window
    /// that stays, pause-loop exits are not measured.
    #[arg(long, value_name = "SCENARIO")]
    pub like: Option<PathBuf>,
    /// Write the costs to this file, for --costs of the lab's commands.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// How to print.
    #[command(flatten)]
    pub output: Output,
}

/// `unspin lab conform`
#[derive(Args, Debug)]
pub struct LabConformArguments {
    /// What was measured: costs, scenarios, and operations per second of each.
    #[arg(value_name = "CELLS")]
    pub file: PathBuf,
    /// How many seeds, from each scenario's on.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub seeds: u32,
    /// How many runs at a time; as many as there are CPUs when absent.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=4_096))]
    pub workers: Option<u32>,
    /// How to print.
    #[command(flatten)]
    pub output: Output,
}

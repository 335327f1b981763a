// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recording, and what is found out from recordings.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use clap::{Args, ValueEnum};
use unspin_scenario::Scenario;

use super::{Output, OverrideArguments, parse_limit};
use crate::failure::Failure;

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
    /// Folder for the recording: a new or an empty one.
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
    /// How to print the summary.
    #[command(flatten)]
    pub output: Output,
    /// A command to run meanwhile; its exit status is passed on. `unspin` is this binary.
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// `unspin threshold`
#[derive(Args, Debug)]
pub struct ThresholdArguments {
    /// A recording.
    #[arg(value_name = "FOLDER")]
    pub folder: PathBuf,
    /// Only this VM's waits, by its number; those of all VMs together when absent.
    #[arg(long, value_name = "NUMBER")]
    pub vm: Option<u32>,
    /// How to print.
    #[command(flatten)]
    pub output: Output,
}

/// What pause-loop windows count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum WindowWord {
    /// PAUSEs (AMD).
    Pauses,
    /// TSC cycles (Intel).
    Cycles,
}

/// `unspin outcomes`
#[derive(Args, Debug)]
pub struct OutcomesArguments {
    /// Recordings (folders), event logs (files), or scenarios (.toml), which are run now; one for each workload.
    #[arg(required = true, value_name = "RECORDING|SCENARIO")]
    pub recordings: Vec<PathBuf>,
    /// What overrides scenarios.
    #[command(flatten)]
    pub overrides: OverrideArguments,
    /// The guests' symbols, System.map or /proc/kallsyms: they name the function that spun.
    #[arg(long, value_name = "FILE")]
    pub symbols: Option<PathBuf>,
    /// The guests are Linux: their interrupt vectors say which IPIs are waited for.
    #[arg(long)]
    pub linux: bool,
    /// What `vm run --json` printed of each recording, in the same order: adds the guests' own share of spinning. Scenarios
    /// that are run now tell it themselves.
    #[arg(long = "guest", value_name = "FILE")]
    pub guests: Vec<PathBuf>,
    /// What windows count, for event logs, which do not say it.
    #[arg(long, value_enum)]
    pub window_unit: Option<WindowWord>,
    /// Frequency of the TSC in kHz: iterations windows of TSC cycles into time.
    #[arg(long, value_name = "KHZ", value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub tsc_khz: Option<u64>,
    /// How to print.
    #[command(flatten)]
    pub output: Output,
}

/// `unspin explain`
#[derive(Args, Debug)]
pub struct ExplainArguments {
    /// The recording (`unspin record`, `unspin vm run --record`), or an event log (`--events`).
    #[arg(value_name = "RECORDING")]
    pub recording: PathBuf,
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

impl OutcomesArguments {
    /// Those of its inputs that are scenarios, with the overrides applied.
    pub fn scenarios(&self) -> Result<Vec<Scenario>, Failure> {
        let files = self.recordings.iter().filter(|file| is_scenario(file));
        files
            .map(|file| Ok(Scenario::load(file, &self.overrides.overrides()?)?))
            .collect()
    }
}

/// Whether an input of `unspin outcomes` is to be run, not read.
pub fn is_scenario(file: &std::path::Path) -> bool {
    file.extension().is_some_and(|ending| ending == "toml")
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin bench threads`: which locks, how many threads, what they do, and beside whom.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{Output, OverrideArguments};

/// Axes that were chosen once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Matrix {
    /// 1, 2, 4, 16 threads, hold 50 ns and 2 us, think 0 and 2 us: a minute or two.
    Quick,
    /// 1 to 32 threads, hold 50 ns to 20 us, think 0 to 50 us, without a neighbour and with one: tens of minutes.
    Full,
}

/// Where the locks' run_states come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RunStateSource {
    /// bpf, else rseq, else none.
    Best,
    /// A BPF program at every switch of the scheduler; needs root.
    Bpf,
    /// Restartable sequences: who was last on my CPU does not run.
    Rseq,
    /// Nothing is ever said.
    None,
}

/// `unspin bench threads`
#[derive(Args, Debug)]
pub struct ThreadsArguments {
    /// The scenario, in TOML; a built-in one when there is none (a ticket lock between 4 threads, hold 50 and think 50 loops).
    #[arg(value_name = "SCENARIO")]
    pub file: Option<PathBuf>,
    /// What overrides it.
    #[command(flatten)]
    pub overrides: OverrideArguments,
    /// Locks to compare, apart by commas, or all; the scenario's own when absent, all with --matrix.
    #[arg(long = "lock", value_name = "LOCK", value_delimiter = ',')]
    pub locks: Vec<String>,
    /// Baselines beside them, apart by commas, or all: glibc_mutex, glibc_spinlock, parking_lot, ck_fas, ck_ticket, ck_mcs; all
    /// with --matrix.
    #[arg(long = "baselines", value_name = "BASELINE", value_delimiter = ',')]
    pub baselines: Vec<String>,
    /// Numbers of threads, apart by commas; the scenario's vCPUs when absent.
    #[arg(long, value_name = "NUMBER", value_delimiter = ',')]
    pub threads: Vec<u32>,
    /// How long the lock is held, apart by commas, as in 50ns,2us; the scenario's own when absent.
    #[arg(long, value_name = "TIME", value_delimiter = ',', value_parser = super::parse_time)]
    pub hold: Vec<std::time::Duration>,
    /// Time between unlock and lock, apart by commas, as in 0ns,50us; the scenario's own when absent.
    #[arg(long, value_name = "TIME", value_delimiter = ',', value_parser = super::parse_time)]
    pub think: Vec<std::time::Duration>,
    /// Threads beside them that only use CPU time, apart by commas.
    #[arg(long, value_name = "NUMBER", value_delimiter = ',')]
    pub neighbours: Vec<u32>,
    /// Axes that were chosen once; those given by themselves go before it. Runs of 20 ms, longer with more threads.
    #[arg(long, value_enum, conflicts_with = "file")]
    pub matrix: Option<Matrix>,
    /// Where the locks' run_states come from.
    #[arg(long, value_enum, default_value = "best")]
    pub run_states: RunStateSource,
    /// Disclosure the running `unspin steer` of critical sections, from before a lock is asked for until after its unlock, so that
    /// its policies ecs and ecs-give-back prolong slices that end in one; needs root.
    #[arg(long)]
    pub grants: bool,
    /// Ask the kernel for time-slice extension around critical sections, ours and baselines' alike (Linux 7.0).
    #[arg(long)]
    pub slice_extension: bool,
    /// How often each lock is run at each point.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub repeat: u32,
    /// Draw the rates of each lock over the number of threads, a picture for each hold and think time.
    #[arg(long, value_name = "FILE.svg")]
    pub plot: Option<PathBuf>,
    /// How to print.
    #[command(flatten)]
    pub output: Output,
}

/// `unspin bench ecs`
#[derive(Args, Debug)]
pub struct EcsArguments {
    /// Numbers of threads, apart by commas.
    #[arg(long, value_name = "NUMBER", value_delimiter = ',', default_value = "1,2",
          value_parser = clap::value_parser!(u32).range(1..=64))]
    pub threads: Vec<u32>,
    /// How often each is measured.
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub repeat: u32,
    /// Lock-unlock pairs of each thread in each measurement.
    #[arg(long, default_value_t = 50_000, value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    pub pairs: u32,
    /// How to print.
    #[command(flatten)]
    pub output: Output,
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where things run: this machine, the testbed, bare threads.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use clap::{Args, Subcommand, ValueEnum};

use super::{BenchVmArguments, EcsArguments, Output, ThreadsArguments, parse_limit};

/// `unspin testbed ...`
#[derive(Debug, Subcommand)]
pub enum Testbed {
    /// Boot the testbed, run a command in it, pass on its output and exit status.
    ///
    /// Files of this machine that the command names are copied into the testbed under the same name; what it writes
    /// below /out there comes back with --bring-back.
    Run(TestbedArguments),
    /// Count the testbed's boots, and fail when more than 1 in 20 hung or panicked.
    Boots(BootsArguments),
}

/// `unspin bench ...`
#[derive(Debug, Subcommand)]
pub enum Bench {
    /// Run the locks between threads of this process, on this machine's own CPUs.
    Threads(Box<ThreadsArguments>),
    /// Run the locks in micro guests on this host's KVM, over numbers of VMs and vCPUs, hold and think times.
    Vm(Box<BenchVmArguments>),
    /// Measure what eCS's annotation of critical sections costs, between threads of this process.
    Ecs(EcsArguments),
    /// Measure the lab's engine, and other simulators on the same model: events a second.
    ///
    /// Installs what is missing of the others into the cache: SimPy (python3 and PyPI), NeXosim (cargo and its registry).
    Engine(EngineArguments),
    /// Time the scheduler's BPF programs on this kernel, and the way of events through ring and recording.
    #[command(hide = true)]
    Observing(ObservingArguments),
}

/// `unspin bench observing`
#[derive(Args, Debug)]
pub struct ObservingArguments {
    /// Rounds of four blocks of 250 ms for each of two kinds of observer.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub rounds: u32,
    /// Synthetic events per second.
    #[arg(long, default_value_t = 200_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub rate: u32,
    /// How long, seconds.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=3_600))]
    pub seconds: u32,
    /// Folder for the recording, which must have no `recording` yet; a temporary one when absent.
    #[arg(long, value_name = "FOLDER")]
    pub folder: Option<PathBuf>,
    /// How to print.
    #[command(flatten)]
    pub output: Output,
}

/// A simulator to measure the lab's engine against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BaselineKind {
    /// Python's.
    Simpy,
    /// A fast one in Rust.
    Nexosim,
}

impl BaselineKind {
    /// All of them.
    pub const ALL: [BaselineKind; 2] = [BaselineKind::Simpy, BaselineKind::Nexosim];
}

/// Which baselines run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Baselines {
    /// All of them.
    All,
    /// None: the engine alone.
    None,
    /// SimPy alone.
    Simpy,
    /// NeXosim alone.
    Nexosim,
}

impl Baselines {
    /// Those that run.
    pub fn kinds(self) -> Vec<BaselineKind> {
        match self {
            Baselines::All => BaselineKind::ALL.to_vec(),
            Baselines::None => Vec::new(),
            Baselines::Simpy => vec![BaselineKind::Simpy],
            Baselines::Nexosim => vec![BaselineKind::Nexosim],
        }
    }
}

/// `unspin bench engine`
#[derive(Args, Debug)]
pub struct EngineArguments {
    /// Against whom.
    #[arg(long, value_enum, default_value = "all")]
    pub baselines: Baselines,
    /// Numbers of timers, apart by commas.
    #[arg(long, value_name = "NUMBER", value_delimiter = ',', default_value = "8,64,1024",
        value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub timers: Vec<u32>,
    /// Rounds in which all take iterations.
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub rounds: u32,
    /// Events of the lab's engine in a round, about; a baseline has a 40th of them.
    #[arg(long, default_value_t = 20_000_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub events: u64,
    /// From which all delays are drawn.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// How to print.
    #[command(flatten)]
    pub output: Output,
}

/// `unspin doctor`
#[derive(Args, Debug)]
pub struct DoctorArguments {
    /// Instead of this machine: whether every BPF program of ours finds what it needs in that kernel, without booting it.
    /// A folder with `vmlinuz` and `modules/`, as set-up's cache has them; what is packed is unpacked beside it.
    #[arg(long, value_name = "FOLDER")]
    pub kernel: Option<PathBuf>,
    /// How to print.
    #[command(flatten)]
    pub output: Output,
}

/// Which emulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Emulator {
    /// The distribution's: every PAUSE of a guest exits, whatever the window.
    Stock,
    /// With the change that makes the pause-loop window real.
    Unspin,
}

/// `unspin testbed run`
#[derive(Args, Debug)]
pub struct TestbedArguments {
    /// CPUs of the emulated machine, 1 to 64. For anything timed no more than this machine has.
    #[arg(long, default_value_t = 2)]
    pub cpus: u32,
    /// Memory of the emulated machine.
    #[arg(long, value_name = "MIB", default_value_t = 2048)]
    pub memory_mib: u32,
    /// Boot another kernel than the cache's: a folder with `vmlinuz` and `modules/`, called after its release
    /// (setup/kernels makes some).
    #[arg(long, value_name = "FOLDER")]
    pub kernel: Option<PathBuf>,
    /// Virtual time on one thread: the same output, byte for byte, for the same scenario, seed and binary.
    #[arg(long)]
    pub deterministic: bool,
    /// Which emulator.
    #[arg(long, value_enum, default_value = "unspin")]
    pub qemu: Emulator,
    /// How long one attempt may take, as in 90s.
    #[arg(long, value_name = "TIME", default_value = "600s", value_parser = parse_limit)]
    pub time_limit: Duration,
    /// Where to put what the command leaves below /out.
    #[arg(long, value_name = "FOLDER")]
    pub bring_back: Option<PathBuf>,
    /// Keep the testbed kernel's console in this file.
    #[arg(long, value_name = "FILE")]
    pub console: Option<PathBuf>,
    /// The command; `unspin` is this binary.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// `unspin testbed boots`
#[derive(Args, Debug)]
pub struct BootsArguments {
    /// Only boots since this moment, in seconds since 1970 (date +%s).
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    pub since: u64,
    /// How to print.
    #[command(flatten)]
    pub output: Output,
}

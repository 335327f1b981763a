// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `unspin testbed` takes.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use crate::terminal::options::{Output, parse_limit};
use clap::{Args, Subcommand, ValueEnum};
use unspin_testbed::{Topology, Vendor};

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

/// Whose virtualisation the emulated machine has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Machine {
    /// SVM, in QEMU.
    Amd,
    /// VMX, in Bochs (`make intel` fetches it); always deterministic.
    Intel,
}

impl From<Machine> for Vendor {
    fn from(machine: Machine) -> Self {
        match machine {
            Machine::Amd => Self::Amd,
            Machine::Intel => Self::Intel,
        }
    }
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
    /// Whose virtualisation the emulated machine has.
    #[arg(long, value_enum, default_value = "amd")]
    pub machine: Machine,
    /// CPUs of the emulated machine, 1 to 64 (intel: 8); 2, or those of --topology, when absent. For anything timed no more
    /// than this machine has.
    #[arg(long)]
    pub cpus: Option<u32>,
    /// What its CPUs share: sockets (NUMA nodes) x caches of each x cores of each x threads of each, as in 2x2x4x1. Not of
    /// an Intel machine.
    #[arg(long, value_name = "SOCKETSxCACHESxCORESxTHREADS")]
    pub topology: Option<Topology>,
    /// Memory of the emulated machine.
    #[arg(long, value_name = "MIB", default_value_t = 2048)]
    pub memory_mib: u32,
    /// Boot another kernel than the cache's: a folder with `vmlinuz` and `modules/`, called after its release
    /// (setup/kernels makes some).
    #[arg(long, value_name = "FOLDER")]
    pub kernel: Option<PathBuf>,
    /// Virtual time on one thread: the same output, byte for byte, for the same scenario, seed and binary. An intel machine
    /// always runs so.
    #[arg(long)]
    pub deterministic: bool,
    /// Which QEMU, for an amd machine.
    #[arg(long, value_enum, default_value = "unspin")]
    pub qemu: Emulator,
    /// How long one attempt may take, as in 90s.
    #[arg(long, value_name = "TIME", default_value = "600s", value_parser = parse_limit)]
    pub time_limit: Duration,
    /// Copy this file, or this folder with all that lies in it, into the testbed, too; may be repeated.
    #[arg(long, value_name = "PATH")]
    pub bring: Vec<PathBuf>,
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

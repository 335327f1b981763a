// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `unspin vm linux-policies` takes.

use std::time::Duration;

use crate::{
    commands::vm::linux::args::Load,
    terminal::options::{Observe, Output, PauseLoopArguments, parse_limit, parse_time},
};
use clap::{Args, ValueEnum};
use unspin_agent::PolicyChoice;
use unspin_linux_guest::{CountsModule, Features};
use unspin_scenario::Host;

/// `unspin vm linux-policies`
#[derive(Args, Debug)]
pub struct LinuxPoliciesArguments {
    /// Policies, as of `compare`, but for those that set windows; a row each. May be repeated: all share ideal, stock and none.
    #[arg(long = "policy", value_name = "POLICY")]
    pub policies: Vec<PolicyChoice>,
    /// VMs x vCPUs, as in 1x4, apart by commas.
    #[arg(
        long = "shapes",
        value_name = "VMSxVCPUS",
        value_delimiter = ',',
        default_value = "1x4,2x4",
        value_parser = crate::commands::compare::parse_shape
    )]
    pub shapes: Vec<(u32, u32)>,
    /// Loads, apart by commas: hackbench, make, mmaps (the last two with `make linux-guest`), calls; each with a size of its own.
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "hackbench,make,mmaps"
    )]
    pub loads: Vec<PoliciesLoad>,
    /// Paravirtual features of all guests, as of `vm linux`. May be repeated; vee21 and stock when absent.
    #[arg(long, value_name = "WORDS", default_values = ["vee21", "stock"])]
    pub features: Vec<Features>,
    /// Pairs of samples of each column; each two pairs run in guests of their own.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub pairs: u32,
    /// Whole runs in each VM that are a sample; those that go on around them are left out.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub runs: u32,
    /// What is left out after each change of scheduler or policy, beside the run that goes on.
    #[arg(long, value_name = "TIME", default_value = "50ms", value_parser = parse_time)]
    pub discard: Duration,
    /// Memory of each VM.
    #[arg(long, value_name = "MIB", default_value_t = 160)]
    pub memory_mib: u32,
    /// The guests load the module that tells the host of their kernel's own counts, as of `vm linux`: off, on or hooks.
    #[arg(long, value_name = "WORD", default_value = "off")]
    pub counts: CountsModule,
    /// The host's window.
    #[command(flatten)]
    pub pause_loop: PauseLoopArguments,
    /// How long the guests of one cell may take to boot, and then each sample, by this host's clock. Under a policy that takes
    /// longer the load stood still: its row says so; guests or another column that take longer end the cell, and the next one
    /// is run.
    #[arg(long, value_name = "TIME", default_value = "120s", value_parser = parse_limit)]
    pub limit: Duration,
    /// Whether to count pause-loop exits with BPF programs, in every column alike.
    #[arg(long, value_enum, default_value = "auto")]
    pub observe: Observe,
    /// How to print.
    #[command(flatten)]
    pub output: Output,
}

/// Loads that repeat for ever and need no kernel of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PoliciesLoad {
    /// Groups of senders and receivers over sockets (rt-tests).
    Hackbench,
    /// GNU make, compiling one file many times.
    Make,
    /// Threads that map, fill and unmap memory, as ebizzy does.
    Mmaps,
    /// Function calls to all vCPUs, waited for.
    Calls,
}

impl PoliciesLoad {
    /// As `vm linux` has it.
    pub fn load(self) -> unspin_linux_guest::Load {
        match self {
            PoliciesLoad::Hackbench => Load::Hackbench,
            PoliciesLoad::Make => Load::Make,
            PoliciesLoad::Mmaps => Load::Mmaps,
            PoliciesLoad::Calls => Load::Calls,
        }
        .load()
    }

    /// Groups and loops: each run takes tenths of a second when nothing is in its way.
    pub fn size(self) -> (u32, u32) {
        match self {
            PoliciesLoad::Hackbench => (1, 10),
            PoliciesLoad::Make => (8, 8),
            PoliciesLoad::Mmaps => (16, 12),
            PoliciesLoad::Calls => (1, 5),
        }
    }
}

impl LinuxPoliciesArguments {
    /// What the host below the guests has to be.
    pub fn host(&self) -> Host {
        self.pause_loop.host()
    }

    /// The most VMs that run at once.
    pub fn vms(&self) -> u32 {
        self.shapes.iter().map(|(vms, _)| *vms).max().unwrap_or(1)
    }

    /// The programs that have to be in the testbed.
    pub fn programs(&self) -> Vec<&'static str> {
        let mut programs = vec![unspin_linux_guest::QEMU];
        programs.extend(self.loads.iter().flat_map(|load| load.load().programs()));
        programs.extend(self.counts.programs());
        programs.sort_unstable();
        programs.dedup();
        programs
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `unspin vm linux-policies` takes.

use std::time::Duration;

use crate::{
    commands::vm::linux::args::Load,
    terminal::options::{Observe, Output, PauseLoopArguments, parse_limit, parse_time},
};
use clap::{
    Args, ValueEnum,
    builder::{PossibleValuesParser, TypedValueParser},
};
use unspin_agent::PolicyChoice;
use unspin_experiment::rival::Rival;
use unspin_linux_guest::{CountsModule, Features};
use unspin_scenario::Host;

/// `unspin vm linux-policies`
#[derive(Args, Debug)]
pub struct LinuxPoliciesArguments {
    /// Policies, as of `compare`, but for those that set windows; a row each. May be repeated: all share ideal, stock and none.
    #[arg(long = "policy", value_name = "POLICY")]
    pub policies: Vec<PolicyChoice>,
    /// Other sched_ext schedulers, apart by commas: scx_bpfland, scx_lavd, scx_rusty, each with its default options (`make rivals`
    /// builds them); a row each. May be repeated.
    #[arg(long = "rival", value_name = "RIVAL", value_delimiter = ',')]
    pub rivals: Vec<Rival>,
    /// VMs x vCPUs, as in 1x4, apart by commas.
    #[arg(
        long = "shapes",
        value_name = "VMSxVCPUS",
        value_delimiter = ',',
        default_value = "1x4,2x4",
        value_parser = crate::commands::compare::parse_shape
    )]
    pub shapes: Vec<(u32, u32)>,
    /// Loads, apart by commas, as those of `vm linux`, each with a size of its own.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "hackbench,make,mmaps",
        value_parser = loads()
    )]
    pub loads: Vec<Load>,
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
    /// Memory of each VM [default: 160, or what the load that needs most needs].
    #[arg(long, value_name = "MIB")]
    pub memory_mib: Option<u32>,
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

/// Memory of a guest where nobody says how much, unless its load needs more.
const MEMORY_MIB: u32 = 160;
/// Loads that do no work whose time could be compared.
const NOT_COMPARED: [Load; 3] = [Load::Messaging, Load::Torture, Load::Idle];

/// Words of the loads that repeat for ever and need no kernel of ours.
fn loads() -> impl TypedValueParser<Value = Load> {
    let compared = Load::value_variants()
        .iter()
        .filter(|load| !NOT_COMPARED.contains(load));
    let words = compared.filter_map(Load::to_possible_value);
    PossibleValuesParser::new(words).try_map(|word| Load::from_str(&word, false))
}

/// Groups and loops of a load: each run takes tenths of a second when nothing is in its way.
pub fn size(load: Load) -> (u32, u32) {
    match load {
        Load::Hackbench => (1, 10),
        Load::Make => (8, 8),
        Load::Mmaps => (16, 12),
        Load::Calls => (1, 5),
        other => other.load().size(),
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

    /// Memory of each VM, MiB: the same for all loads.
    pub fn memory_mib(&self) -> u32 {
        let needs = |load: &Load| load.load().least_memory_mib();
        let most = self.loads.iter().map(needs).max().unwrap_or(MEMORY_MIB);
        self.memory_mib.unwrap_or(MEMORY_MIB.max(most))
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

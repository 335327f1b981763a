// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command line of `unspin vm linux-locks`.

use std::{fmt, str::FromStr, time::Duration};

use clap::Args;
use unspin_linux::{Features, Lock};
use unspin_scenario::Host;

use crate::arguments::{Load, Output, PauseLoopArguments, parse_limit};

/// The kernel and lock of a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuestLock {
    /// The distribution's kernel as it is.
    Stock,
    /// Our kernel with this lock.
    Ours(Lock),
}

impl fmt::Display for GuestLock {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GuestLock::Stock => formatter.write_str("stock"),
            GuestLock::Ours(lock) => lock.fmt(formatter),
        }
    }
}

impl FromStr for GuestLock {
    type Err = String;

    fn from_str(text: &str) -> Result<GuestLock, String> {
        match text {
            "stock" => Ok(GuestLock::Stock),
            lock => Ok(GuestLock::Ours(lock.parse()?)),
        }
    }
}

/// `unspin vm linux-locks`
#[derive(Args, Debug)]
pub struct LinuxLocksArguments {
    /// VMs at once, apart by commas: a row for each.
    #[arg(long, value_delimiter = ',', default_value = "1,2,3")]
    pub vms: Vec<u32>,
    /// Kernels and locks, in turn: stock (the distribution's kernel), and our kernel's native, ticket, preemptable, pv_ticket,
    /// pv_preemptable.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "stock,native,ticket,preemptable,pv_ticket,pv_preemptable"
    )]
    pub locks: Vec<GuestLock>,
    /// Loads, apart by commas: as those of `vm linux`, each with a size of its own.
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "hackbench,make,mmaps"
    )]
    pub loads: Vec<Load>,
    /// How often all cells are run, one after the other.
    #[arg(long, default_value_t = 1)]
    pub rounds: u32,
    /// vCPUs of each VM.
    #[arg(long, default_value_t = 4)]
    pub vcpus: u32,
    /// Memory of each VM.
    #[arg(long, value_name = "MIB", default_value_t = 160)]
    pub memory_mib: u32,
    /// Runs in each VM that are waited for; the others go on meanwhile.
    #[arg(long, default_value_t = 2)]
    pub runs: u32,
    /// Paravirtual features of all guests, as of `vm linux`.
    #[arg(long, value_name = "WORDS", default_value = "vee21")]
    pub features: Features,
    /// The pause-loop window, which KVM then leaves alone (as of `vm linux`); 0: no pause-loop exits, as on the hosts of 2013
    /// that had none.
    #[arg(long, value_name = "NUMBER")]
    pub ple_window: Option<u32>,
    /// How long the guests of one cell may take to boot, and then to run, by this host's clock; a cell that takes longer has no
    /// time, and the next one is run.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse_limit)]
    pub limit: Duration,
    /// How to print.
    #[command(flatten)]
    pub output: Output,
}

impl LinuxLocksArguments {
    /// What the host below the guests has to be.
    pub fn host(&self) -> Host {
        PauseLoopArguments {
            ple_window: self.ple_window,
            ple_gap: None,
            ple_window_fixed: self.ple_window.is_some(),
        }
        .host()
    }

    /// The programs that have to be in the testbed.
    pub fn programs(&self) -> Vec<&'static str> {
        let mut programs = vec![unspin_linux::QEMU];
        programs.extend(self.loads.iter().flat_map(|load| load.load().programs()));
        programs.sort_unstable();
        programs.dedup();
        programs
    }

    /// Whether a cell runs our kernel.
    pub fn our_kernel(&self) -> bool {
        self.locks.iter().any(|lock| *lock != GuestLock::Stock)
    }
}

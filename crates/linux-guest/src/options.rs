// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a caller can choose about a run, and what it hears while the run goes on.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::load::Load;
use crate::{CountsModule, Error, Features, Ours, Programs};

/// What to run.
#[derive(Clone)]
pub struct Options {
    /// QEMU, kernel and loads.
    pub programs: Programs,
    /// VMs, 1 to 64.
    pub vms: u32,
    /// vCPUs of each, 1 to 64.
    pub vcpus: u32,
    /// Memory of each, what the load needs to 16,384 MiB.
    pub memory_mib: u32,
    /// What each runs.
    pub load: Load,
    /// Groups of 40 tasks of a messaging load, jobs of `make` and `kernbench`, threads of `mmaps`, `ebizzy`, `sysbench` and `gc`,
    /// clients of `dbench` and `pgbench`; 1 to 1,000.
    pub groups: u32,
    /// Messages that each of its senders passes to each receiver, how often `calls` patches, compilations of `make`, iterations of
    /// each thread of `mmaps`, seconds of `torture` and `dbench`, allocations, locks, transactions, requests of each thread or
    /// client, sweeps of `openmp`, builds of `kernbench`; 1 to 1,000,000.
    pub loops: u32,
    /// Runs of the load that are waited for in each VM, 1 to 10,000.
    pub runs: u32,
    /// The guests' paravirtual features.
    pub features: Features,
    /// What our kernel is told; `None`: the distribution's kernel runs. [`Programs::with_our_kernel`] goes with it.
    pub ours: Option<Ours>,
    /// Whether the guests' module tells the host of the kernel's own counts.
    pub counts: CountsModule,
    /// Appended to the guest kernel's command line.
    pub kernel_arguments: Vec<String>,
    /// Bring the symbols of the guest's kernel back from the first VM.
    pub symbols: bool,
    /// How long all guests may take to boot, and how long the runs (and the symbols) may take, by this host's clock.
    pub limit: Duration,
    /// Set from outside to stop.
    pub interrupt: Arc<AtomicBool>,
}

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// So many guests are ready.
    Booting(usize),
    /// All guests are ready and idle; the loads start when the callback returns.
    Ready,
    /// So many VMs have done their runs; their loads go on until all have.
    Running(usize),
    /// All have; the VMs still exist, and end when the callback returns.
    Done,
}

impl Options {
    /// Words of the guest kernel's command line beside those of its features.
    pub(crate) fn kernel_args(&self) -> Vec<String> {
        let mut words = self.ours.map(Ours::kernel_arguments).unwrap_or_default();
        words.extend(self.counts.kernel_argument().map(str::to_owned));
        words.extend(self.kernel_arguments.iter().cloned());
        words
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        for (what, value, least, most) in [
            ("the number of VMs", self.vms, 1, 64),
            ("the number of vCPUs", self.vcpus, 1, 64),
            (
                "a guest's memory in MiB",
                self.memory_mib,
                self.load.least_memory_mib(),
                16_384,
            ),
            ("the number of groups", self.groups, 1, 1_000),
            ("the number of loops", self.loops, 1, 1_000_000),
            ("the number of runs", self.runs, 1, 10_000),
        ] {
            if !(least..=most).contains(&value) {
                return Err(Error::Range {
                    what,
                    value: value.into(),
                    least: least.into(),
                    most: most.into(),
                });
            }
        }
        Ok(())
    }
}

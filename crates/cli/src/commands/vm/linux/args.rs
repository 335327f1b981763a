// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `unspin vm linux` takes.

use std::{path::PathBuf, time::Duration};

use crate::terminal::options::{Observe, Output, PauseLoopArguments, parse_limit};
use clap::{Args, ValueEnum};
use unspin_linux_guest::{CountsModule, Features, GuestLock, Lock, Marks, Ours};
use unspin_scenario::Host;

/// Memory of a guest where nobody says how much, unless its load needs more.
const MEMORY_MIB: u32 = 256;

/// What each guest runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Load {
    /// Groups of senders and receivers over sockets (rt-tests).
    Hackbench,
    /// The same idea in perf: perf bench sched messaging.
    Messaging,
    /// Function calls to all vCPUs, waited for (the kernel patches its text), while the others run in user mode.
    Calls,
    /// GNU make, compiling one file many times (`make linux-guest`).
    Make,
    /// Threads that map, fill and unmap memory, as ebizzy does (`make linux-guest`).
    Mmaps,
    /// Linux's own lock torture, with --lock: fails when two are inside one spinlock.
    Torture,
    /// Sleep.
    Idle,
    /// Threads that allocate, touch and free memory, as ebizzy does: stress-ng's malloc (`make linux-loads`, as all below but the last).
    Ebizzy,
    /// Threads that take one mutex: sysbench.
    Sysbench,
    /// Parallel loops of OpenMP whose threads spin at barriers in user mode (libgomp, OMP_WAIT_POLICY=active).
    Openmp,
    /// Clients of a file server, on a file system in memory: dbench.
    Dbench,
    /// Clients of PostgreSQL and its server, in one guest.
    Pgbench,
    /// GNU make and tcc, building Lua.
    Kernbench,
    /// Workers of a Go program that keep its garbage collector busy.
    Gc,
    /// hackbench, and beside it threads that sleep 2 ms and look how late they wake up (rt-tests).
    Cyclictest,
}

impl Load {
    /// As the crate that runs it has it.
    pub fn load(self) -> unspin_linux_guest::Load {
        use unspin_linux_guest::Load as Guest;
        match self {
            Load::Hackbench => Guest::Hackbench,
            Load::Messaging => Guest::Messaging,
            Load::Calls => Guest::Calls,
            Load::Make => Guest::Make,
            Load::Mmaps => Guest::Mmaps,
            Load::Torture => Guest::Torture,
            Load::Idle => Guest::Idle,
            Load::Ebizzy => Guest::Ebizzy,
            Load::Sysbench => Guest::Sysbench,
            Load::Openmp => Guest::Openmp,
            Load::Dbench => Guest::Dbench,
            Load::Pgbench => Guest::Pgbench,
            Load::Kernbench => Guest::Kernbench,
            Load::Gc => Guest::Gc,
            Load::Cyclictest => Guest::Cyclictest,
        }
    }
}

/// eCS's marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Ecs {
    /// None.
    Off,
    /// Saved and put back when the guest switches tasks.
    On,
    /// They stay with the vCPU.
    #[value(name = "no_save")]
    NoSave,
}

/// `unspin vm linux`
#[derive(Args, Debug)]
pub struct LinuxArguments {
    /// VMs, all alike.
    #[arg(long, default_value_t = 1)]
    pub vms: u32,
    /// vCPUs of each.
    #[arg(long, default_value_t = 4)]
    pub vcpus: u32,
    /// Memory of each [default: 256, or what the load needs].
    #[arg(long, value_name = "MIB")]
    pub memory_mib: Option<u32>,
    /// What each runs, in all at once, over and over until every one has done its runs.
    #[arg(long, value_enum, default_value = "hackbench")]
    pub load: Load,
    /// Groups of 40 tasks; jobs of make and kernbench; threads of mmaps, ebizzy, sysbench and gc; clients of dbench and pgbench
    /// [default: by load; hackbench 2, pgbench 8].
    #[arg(long)]
    pub groups: Option<u32>,
    /// Messages that each sender passes to each receiver; how often `calls` patches; compilations of make; iterations of a thread
    /// of mmaps; seconds of torture and dbench (2 and more); allocations, locks, requests or transactions of each thread or client;
    /// sweeps of openmp; builds of kernbench [default: by load; hackbench 100, pgbench 20].
    #[arg(long)]
    pub loops: Option<u32>,
    /// Runs in each VM that are waited for.
    #[arg(long, default_value_t = 3)]
    pub runs: u32,
    /// Paravirtual features: all that are on, apart by commas; the others are off. One of nopvspin (native queued
    /// spinlocks), pvspin, virtspin (test-and-set); and any of pv-tlb-flush, pv-ipi, pv-sched-yield, async-pf, steal-time.
    /// Or vee21 (nopvspin,async-pf,steal-time), stock (what KVM and QEMU give).
    #[arg(long, value_name = "WORDS", default_value = "vee21")]
    pub features: Features,
    /// Our kernel instead of the distribution's (`make linux-guest` builds it), all its spinlocks of this kind: native
    /// (Linux's own, as --features says), ticket, preemptable, pv_ticket, pv_preemptable.
    #[arg(long)]
    pub lock: Option<Lock>,
    /// The guests ask the host for help after each so many spins of a wait (Friebel 2008); 0: never.
    #[arg(long, value_name = "SPINS", default_value_t = 0, requires = "lock")]
    pub help_after: u32,
    /// The guests mark what they hold in a page for the host (eCS): off, on, or no_save, an ablation.
    #[arg(long, value_enum, default_value = "off", requires = "lock")]
    pub ecs: Ecs,
    /// The guests load a module that tells the host where their kernel's own counts of critical sections lie: off, on, or
    /// hooks, which counts mutexes and reader-writer semaphores, too (`make linux-module` builds it; not with --lock).
    #[arg(
        long,
        value_name = "WORD",
        default_value = "off",
        conflicts_with = "lock"
    )]
    pub counts: CountsModule,
    /// The host's window.
    #[command(flatten)]
    pub pause_loop: PauseLoopArguments,
    /// A word for the guest kernel's command line. May be repeated.
    #[arg(long = "kernel-argument", value_name = "WORD")]
    pub kernel_arguments: Vec<String>,
    /// Write the symbols of the guests' kernel (its /proc/kallsyms; no guest moves its addresses) to this file.
    #[arg(long, value_name = "FILE")]
    pub symbols: Option<PathBuf>,
    /// How long all guests may take to boot, and how long all runs may take, by this host's clock.
    #[arg(long, value_name = "TIME", default_value = "300s", value_parser = parse_limit)]
    pub limit: Duration,
    /// Whether to watch KVM and the scheduler with BPF programs.
    #[arg(long, value_enum, default_value = "auto")]
    pub observe: Observe,
    /// How to print.
    #[command(flatten)]
    pub output: Output,
}

impl LinuxArguments {
    /// Groups and loops.
    pub fn size(&self) -> (u32, u32) {
        let (groups, loops) = self.load.load().size();
        (self.groups.unwrap_or(groups), self.loops.unwrap_or(loops))
    }

    /// Memory of each VM, MiB.
    pub fn memory_mib(&self) -> u32 {
        let least = self.load.load().least_memory_mib();
        self.memory_mib.unwrap_or(MEMORY_MIB.max(least))
    }

    /// What the host below the guests has to be.
    pub fn host(&self) -> Host {
        self.pause_loop.host()
    }

    /// What our kernel is told; `None`: the distribution's runs.
    pub fn ours(&self) -> Option<Ours> {
        let marks = match self.ecs {
            Ecs::Off => Marks::Off,
            Ecs::On => Marks::On,
            Ecs::NoSave => Marks::NoSave,
        };
        self.lock.map(|lock| Ours {
            lock,
            help_after_spins: self.help_after,
            marks,
        })
    }

    /// The programs that have to be in the testbed.
    pub fn programs(&self) -> Vec<&'static str> {
        let mut programs = vec![unspin_linux_guest::QEMU];
        programs.extend(self.load.load().programs());
        programs.extend(self.counts.programs());
        programs
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
        let mut programs = vec![unspin_linux_guest::QEMU];
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

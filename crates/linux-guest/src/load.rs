// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a guest runs: the loads' names, programs, commands and sizes.

use crate::programs::{MAKE, MMAPS, SHELL, TORTURE};

/// Least memory of a guest that runs a shell and a small program; MiB.
pub const LEAST_MEMORY_MIB: u32 = 96;

/// Which load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// hackbench of rt-tests: groups of 20 senders and 20 receivers over sockets.
    Hackbench,
    /// `perf bench sched messaging`, the same idea in the kernel's own tool.
    Messaging,
    /// Function calls to all vCPUs, waited for, while the others run in user mode: what TLB shootdowns do, too.
    Calls,
    /// GNU make compiling one file many times, so many at once; with `make linux-guest`.
    Make,
    /// Threads of one process that map, fill and unmap memory (what ebizzy does); with `make linux-guest`.
    Mmaps,
    /// Linux's own lock torture: fails when two are inside one spinlock. Our kernel only.
    Torture,
    /// Sleeps of a second: what a guest costs that has nothing to do.
    Idle,
    /// stress-ng's malloc stressor with threads of one process: blocks that malloc maps, every page of which is touched, and that
    /// free unmaps again. That is ebizzy's pattern, page faults and TLB shootdowns in one address space; its stressors mmap and
    /// tlb-shootdown are processes, each with an address space of its own. With `make linux-loads`, as all below.
    Ebizzy,
    /// sysbench's threads that take one mutex (a futex).
    Sysbench,
    /// An OpenMP program of ours with active waiting: threads spin at barriers in user mode.
    Openmp,
    /// dbench's clients, on a file system in memory.
    Dbench,
    /// pgbench's clients and a PostgreSQL server in one guest.
    Pgbench,
    /// GNU make and tcc, building Lua.
    Kernbench,
    /// A Go program of ours with a busy garbage collector.
    Gc,
    /// hackbench, and beside it threads that sleep and look how late they wake up; with `make setup` alone.
    Cyclictest,
}

impl Load {
    /// All of them.
    pub const ALL: [Load; 15] = [
        Load::Hackbench,
        Load::Messaging,
        Load::Calls,
        Load::Make,
        Load::Mmaps,
        Load::Torture,
        Load::Idle,
        Load::Ebizzy,
        Load::Sysbench,
        Load::Openmp,
        Load::Dbench,
        Load::Pgbench,
        Load::Kernbench,
        Load::Gc,
        Load::Cyclictest,
    ];

    /// Its word on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hackbench => "hackbench",
            Self::Messaging => "messaging",
            Self::Calls => "calls",
            Self::Make => "make",
            Self::Mmaps => "mmaps",
            Self::Torture => "torture",
            Self::Idle => "idle",
            Self::Ebizzy => "ebizzy",
            Self::Sysbench => "sysbench",
            Self::Openmp => "openmp",
            Self::Dbench => "dbench",
            Self::Pgbench => "pgbench",
            Self::Kernbench => "kernbench",
            Self::Gc => "gc",
            Self::Cyclictest => "cyclictest",
        }
    }

    /// The programs that a guest with this load needs.
    pub fn programs(self) -> &'static [&'static str] {
        match self {
            Self::Hackbench => &[SHELL, "hackbench"],
            Self::Messaging => &[SHELL, "perf"],
            Self::Make => &[SHELL, MAKE],
            Self::Mmaps => &[SHELL, MMAPS],
            Self::Torture => &[SHELL, TORTURE],
            Self::Calls | Self::Idle => &[SHELL],
            Self::Ebizzy => &[SHELL, "stress-ng"],
            Self::Sysbench => &[SHELL, "sysbench"],
            Self::Openmp => &[SHELL, "sweeps"],
            Self::Dbench => &[SHELL, "dbench"],
            Self::Pgbench => &[SHELL, "pgbench"],
            Self::Kernbench => &[SHELL, "kernbench"],
            Self::Gc => &[SHELL, "collect"],
            Self::Cyclictest => &[SHELL, "hackbench", "cyclictest"],
        }
    }

    /// Groups and loops unless somebody says others.
    pub fn size(self) -> (u32, u32) {
        match self {
            Self::Ebizzy => (8, 50),
            Self::Sysbench => (8, 500),
            Self::Openmp => (1, 500),
            Self::Dbench => (4, 2),
            Self::Pgbench => (8, 20),
            Self::Kernbench => (8, 1),
            Self::Gc => (8, 100),
            Self::Cyclictest => (1, 50),
            _ => (2, 100),
        }
    }

    /// Least memory of a guest with this load; MiB. Its initramfs stands in memory twice while it is unpacked.
    pub fn least_memory_mib(self) -> u32 {
        match self {
            // 72 MB of programs, half of them ICU's data; 38 MB of data, and what the server shares: at 320 unpacking was killed.
            Self::Pgbench => 512,
            // 45 MB of programs.
            Self::Ebizzy => 256,
            Self::Dbench | Self::Sysbench => 160,
            _ => LEAST_MEMORY_MIB,
        }
    }

    /// The command that the guest repeats, for people and for PID 1's shell.
    pub fn command(self, groups: u32, loops: u32) -> String {
        match self {
            Self::Hackbench => format!("/usr/bin/hackbench -g {groups} -l {loops}"),
            Self::Messaging => format!(
                "/usr/bin/perf bench -f simple sched messaging --group {groups} --nr_loops {loops}"
            ),
            Self::Calls => format!("calls {loops}"),
            Self::Make => format!("make_all {groups} {loops}"),
            Self::Mmaps => format!("/usr/bin/mmaps {groups} {loops}"),
            Self::Torture => format!("torture {loops}"),
            Self::Idle => "sleep 1".to_owned(),
            // The thread that starts the others allocates, too. Every block of a page and more is mapped.
            Self::Ebizzy => format!(
                "/usr/bin/stress-ng --malloc 1 --malloc-pthreads {} --malloc-bytes 256K --malloc-thresh 4K --malloc-max 64 \
                 --malloc-touch --malloc-ops {} --metrics --no-rand-seed",
                groups - 1,
                u64::from(groups) * u64::from(loops)
            ),
            Self::Sysbench => format!(
                "/usr/bin/sysbench mutex --threads={groups} --mutex-num=1 --mutex-locks={loops} --mutex-loops=1000 \
                 --percentile=99 run"
            ),
            Self::Openmp => format!("OMP_WAIT_POLICY=active /usr/bin/sweeps {loops}"),
            Self::Gc => format!("/usr/bin/collect {groups} {loops}"),
            Self::Dbench | Self::Pgbench | Self::Kernbench | Self::Cyclictest => {
                format!("once {groups} {loops}")
            }
        }
    }

    /// The same as PID 1 runs it: its output says how long it took.
    pub fn timed(self, command: &str) -> String {
        match self {
            Self::Idle => format!("$B time -f 'Time: %e' $B {command}"),
            // They say it themselves.
            _ => command.to_owned(),
        }
    }

    /// The script that has `once`, and `prepare` where something comes before the first run.
    pub fn script(self) -> Option<&'static str> {
        match self {
            Self::Dbench => Some(include_str!("loads/dbench.sh")),
            Self::Pgbench => Some(include_str!("loads/pgbench.sh")),
            Self::Kernbench => Some(include_str!("loads/kernbench.sh")),
            Self::Cyclictest => Some(include_str!("loads/cyclictest.sh")),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_have_their_sizes() {
        let commands = [
            (Load::Hackbench, "/usr/bin/hackbench -g 3 -l 50"),
            (Load::Openmp, "OMP_WAIT_POLICY=active /usr/bin/sweeps 50"),
            (Load::Gc, "/usr/bin/collect 3 50"),
            (Load::Pgbench, "once 3 50"),
        ];
        for (load, command) in commands {
            assert_eq!(load.command(3, 50), command);
        }
        let ebizzy = Load::Ebizzy.command(3, 50);
        for part in ["--malloc-pthreads 2 ", "--malloc-ops 150 "] {
            assert!(ebizzy.contains(part), "{ebizzy}");
        }
        let mutex = Load::Sysbench.command(3, 50);
        assert!(
            mutex.contains("--threads=3 --mutex-num=1 --mutex-locks=50 "),
            "{mutex}"
        );
    }

    #[test]
    fn every_load_has_a_name_of_its_own_and_what_its_command_calls() {
        for (at, load) in Load::ALL.into_iter().enumerate() {
            assert!(
                Load::ALL[..at]
                    .iter()
                    .all(|other| other.name() != load.name())
            );
            let (groups, loops) = load.size();
            let calls_a_script = load.command(groups, loops).starts_with("once ");
            let script = load.script();
            assert_eq!(calls_a_script, script.is_some(), "{load:?}");
            assert!(
                script.is_none_or(|script| script.contains("\nonce() {")),
                "{load:?}"
            );
        }
    }
}

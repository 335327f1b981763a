// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `unspin bench` takes.

use std::path::PathBuf;

use crate::terminal::options::{Output, OverrideArguments, parse_limit, parse_time};
use clap::{Args, Subcommand, ValueEnum, value_parser};
use unspin_agent::PolicyChoice;
use unspin_experiment::{engine::BaselineKind, host, rival::Rival, threads};

/// `unspin bench vm`
#[derive(Args, Debug)]
pub struct BenchVmArguments {
    /// The scenario, in TOML, with one group of VMs and a duration; a built-in one when there is none (2 vCPUs, one lock,
    /// user work of 3,000 and hold of 300 loops in the mean, 200 ms).
    #[arg(value_name = "SCENARIO")]
    pub file: Option<PathBuf>,
    /// What overrides it.
    #[command(flatten)]
    pub overrides: OverrideArguments,
    /// Locks to compare, apart by commas, or all; the first is what the others are compared with, and runs twice. The
    /// scenario's own when absent.
    #[arg(long = "lock", value_name = "LOCK", value_delimiter = ',')]
    pub locks: Vec<String>,
    /// Numbers of VMs, apart by commas.
    #[arg(long, value_name = "NUMBER", value_delimiter = ',', default_value = "1,2,3",
          value_parser = value_parser!(u32).range(1..=100))]
    pub vms: Vec<u32>,
    /// Numbers of vCPUs of each VM, apart by commas.
    #[arg(long, value_name = "NUMBER", value_delimiter = ',', default_value = "2",
          value_parser = value_parser!(u32).range(1..=64))]
    pub vcpus: Vec<u32>,
    /// How long the lock is held, apart by commas, as in 50ns,2us; the scenario's own when absent.
    #[arg(long, value_name = "TIME", value_delimiter = ',', value_parser = parse_time)]
    pub hold: Vec<std::time::Duration>,
    /// Time in user mode between unlock and lock, apart by commas, as in 0ns,50us; the scenario's own when absent.
    #[arg(long, value_name = "TIME", value_delimiter = ',', value_parser = parse_time)]
    pub think: Vec<std::time::Duration>,
    /// VMs of one vCPU beside them that only use CPU time, apart by commas.
    #[arg(long, value_name = "NUMBER", value_delimiter = ',', default_value = "0",
          value_parser = value_parser!(u32).range(0..=100))]
    pub neighbours: Vec<u32>,
    /// How often each lock is run at each point: every second time in reversed order, each time with the next seed.
    #[arg(long, default_value_t = 2, value_parser = value_parser!(u32).range(1..=10_000))]
    pub repeat: u32,
    /// Draw the rates of each lock over the number of VMs, a picture for each of the other axes' values.
    #[arg(long, value_name = "FILE.svg")]
    pub plot: Option<PathBuf>,
    /// How to print.
    #[command(flatten)]
    pub output: Output,
}

/// `unspin bench ...`
#[derive(Debug, Subcommand)]
pub enum Bench {
    /// Run the locks between threads of this process, on this machine's own CPUs.
    Threads(Box<ThreadsArguments>),
    /// Run the locks in micro guests on this host's KVM, over numbers of VMs and vCPUs, hold and think times.
    Vm(Box<BenchVmArguments>),
    /// Measure the host itself, without VMs: how late tasks wake up, how fast they call one another, which shares they get, under
    /// the kernel's scheduler and ours in turns.
    Host(HostArguments),
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

/// `unspin bench host`
#[derive(Args, Debug)]
pub struct HostArguments {
    /// Policies, as of `compare`, but for those that set windows; a row each, beside our scheduler without any. May be repeated.
    #[arg(long = "policy", value_name = "POLICY")]
    pub policies: Vec<PolicyChoice>,
    /// Other sched_ext schedulers, apart by commas: scx_bpfland, scx_lavd, scx_rusty, each with its default options (`make rivals`
    /// builds them); a row each. May be repeated.
    #[arg(long = "rival", value_name = "RIVAL", value_delimiter = ',')]
    pub rivals: Vec<Rival>,
    /// Loads, apart by commas: wakeups (periodic tasks beside CPU hogs), naps (the same beside tasks that sleep and wake up),
    /// pipes (pairs that send a byte back and forth), calls (all called threads answer), weights (CPU hogs of three nice values),
    /// affinity (CPU hogs that may run on one CPU only beside others), requests (workers that are woken for each, as schbench),
    /// messages (groups of senders and receivers, as hackbench), processes (short ones, as a build); all when absent.
    #[arg(long, value_name = "LOADS", value_delimiter = ',')]
    pub loads: Vec<host::Load>,
    /// Pairs of samples of each scheduler.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub pairs: u32,
    /// How long a sample is.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_limit)]
    pub sample: std::time::Duration,
    /// Count runs and time of our scheduler's BPF programs, too: a second table. Counting makes them slower.
    #[arg(long)]
    pub programs: bool,
    /// What is left out after each change of scheduler.
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = parse_time)]
    pub discard: std::time::Duration,
    /// How to print.
    #[command(flatten)]
    pub output: Output,
    /// A command instead, as in `-- make -j8`: a sample is a run of it, whose time stands under latencies.
    #[arg(last = true, conflicts_with_all = ["loads", "sample"])]
    pub command: Vec<std::ffi::OsString>,
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
    /// Switches per second and CPU beside the flight recorder.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub switches: u32,
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

impl From<RunStateSource> for threads::RunStateSource {
    fn from(source: RunStateSource) -> threads::RunStateSource {
        match source {
            RunStateSource::Best => threads::RunStateSource::Best,
            RunStateSource::Bpf => threads::RunStateSource::Bpf,
            RunStateSource::Rseq => threads::RunStateSource::Rseq,
            RunStateSource::None => threads::RunStateSource::None,
        }
    }
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
    #[arg(long, value_name = "TIME", value_delimiter = ',', value_parser = parse_time)]
    pub hold: Vec<std::time::Duration>,
    /// Time between unlock and lock, apart by commas, as in 0ns,50us; the scenario's own when absent.
    #[arg(long, value_name = "TIME", value_delimiter = ',', value_parser = parse_time)]
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use clap::Parser;
    use host::Load;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(subcommand)]
        bench: Bench,
    }

    fn host(words: &str) -> Result<HostArguments, String> {
        let line = format!("bench host {words}");
        let read = Line::try_parse_from(line.split_whitespace());
        match read.map_err(|error| error.to_string())?.bench {
            Bench::Host(arguments) => Ok(arguments),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn host_measures_everything_for_a_second_when_nothing_is_said() {
        let arguments = host("").expect("nothing is needed");
        assert!(arguments.policies.is_empty() && arguments.loads.is_empty());
        assert_eq!((arguments.pairs, arguments.programs), (4, false));
        assert_eq!(arguments.sample, Duration::from_secs(1));
        assert_eq!(arguments.discard, Duration::from_millis(100));
        let command = host("-- make -j8").expect("words").command;
        assert_eq!(command, ["make", "-j8"]);
    }

    #[test]
    fn loads_come_with_commas_or_one_by_one_and_in_their_order() {
        for words in ["--loads pipes,wakeups", "--loads pipes --loads wakeups"] {
            assert_eq!(
                host(words).expect("two").loads,
                [Load::Pipes, Load::Wakeups]
            );
        }
        let all = Load::ALL.map(Load::name).join(",");
        assert_eq!(
            host(&format!("--loads {all}")).expect("all").loads,
            Load::ALL
        );
    }

    #[test]
    fn a_policy_each_with_words_of_its_own() {
        let arguments = host("--policy loan,kernel-exit --policy yield-buddy").expect("two");
        let said: Vec<String> = arguments.policies.iter().map(ToString::to_string).collect();
        assert_eq!(said, ["loan,kernel-exit", "yield-buddy"]);
    }

    #[test]
    fn rivals_come_with_commas_or_one_by_one() {
        for words in [
            "--rival scx_lavd,scx_bpfland",
            "--rival scx_lavd --rival scx_bpfland",
        ] {
            let rivals = host(words).expect("two").rivals;
            assert_eq!(rivals, [Rival::Lavd, Rival::Bpfland]);
        }
    }

    #[test]
    fn times_and_numbers_at_their_ends() {
        for (words, pairs) in [("--pairs 1", 1), ("--pairs 10000", 10_000)] {
            assert_eq!(host(words).expect("in range").pairs, pairs);
        }
        let shortest = host("--sample 1ns --discard 0s").expect("allowed");
        assert_eq!(
            (shortest.sample, shortest.discard),
            (Duration::from_nanos(1), Duration::ZERO)
        );
    }

    #[test]
    fn what_cannot_be_is_refused_and_said() {
        for (words, says) in [
            ("--pairs 0", "0 is not in 1..=10000"),
            ("--pairs 10001", "10001 is not in 1..=10000"),
            ("--pairs some", "invalid digit"),
            ("--sample 0s", "lets nothing run"),
            ("--sample 1", "`1` has no unit"),
            ("--discard soon", "soon"),
            ("--loads pipe", "`pipe` is no load; there are wakeups, naps"),
            ("--rival lavd", "`lavd` is no rival; there are scx_bpfland"),
            ("--rival scx_lavd,", "`` is no rival"),
            ("--loads pipes,,calls", "`` is no load"),
            ("--policy lend", "there is no policy `lend`"),
            ("--policy", "a value is required"),
            ("pipes", "unexpected argument"),
            (
                "--loads pipes -- make",
                "cannot be used with '[COMMAND]...'",
            ),
            ("--sample 2s -- make", "cannot be used with '[COMMAND]...'"),
        ] {
            let said = host(words).expect_err(words);
            assert!(said.contains(says), "{words}: {said}");
        }
    }
}

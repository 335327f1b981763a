// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command line.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use clap::{Args, Parser, Subcommand, ValueEnum};
use unspin_scenario::{Overrides, Scenario};
use unspin_steering::Policies;

use crate::{failure::Failure, linux_arguments::LinuxArguments};

/// Spinning vCPUs and descheduled lock holders: see them, try remedies, fix them.
///
/// Exit status: 0 when the work was done, 1 when it failed, 2 for a wrong command line or scenario, 130 after Ctrl-C.
#[derive(Debug, Parser)]
#[command(name = "unspin", version, max_term_width = 100)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Say what this machine can do, and how to get what is missing.
    Doctor(DoctorArguments),
    /// Work with scenario files.
    #[command(subcommand)]
    Scenario(ScenarioVerb),
    /// Run VMs on this host's KVM.
    #[command(subcommand)]
    Vm(VmVerb),
    /// The emulated KVM host: a stock kernel in a machine with AMD SVM, on any x86-64 machine.
    #[command(subcommand)]
    Testbed(Testbed),
    /// Drive the locks directly.
    #[command(subcommand)]
    Bench(Bench),
    /// Run a scenario against the same work with nobody overcommitted, in pairs.
    Compare(CompareArguments),
    /// Put our scheduler and a policy in place of the host's own, until it ends.
    Steer(SteerArguments),
    /// What decides while `unspin steer` runs.
    #[command(subcommand)]
    Policy(PolicyVerb),
    /// Record what KVM and the scheduler do with every VM of this host.
    Record(RecordArguments),
    /// From a recording: where a guest's spinning should end, and what each choice costs.
    Threshold(ThresholdArguments),
    /// Say what every pause-loop exit of a recording was for, what became of it, and what it cost.
    Outcomes(OutcomesArguments),
    /// Say of a recording who lost CPU time to spinning, for whom, and who ran instead.
    Explain(ExplainArguments),
    /// Judge what `explain` says of a recording by the guests' own logs, which it never sees.
    Truth(TruthArguments),
    /// Show what overcommitted VMs lose, and what a policy gives back, in the testbed, for several shapes and locks.
    Demo(DemoArguments),
}

/// `unspin scenario ...`
#[derive(Debug, Subcommand)]
pub enum ScenarioVerb {
    /// Print the JSON Schema of a scenario.
    Schema,
    /// Read a scenario and print its canonical form, which every run can be repeated from.
    Check(CheckArguments),
}

/// `unspin vm ...`
#[derive(Debug, Subcommand)]
pub enum VmVerb {
    /// Run a scenario's VMs and print what each vCPU did.
    Run(VmRunArguments),
    /// Run unmodified Linux guests under the distribution's QEMU and print what they and the host say.
    Linux(LinuxArguments),
}

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
    Threads(ThreadsArguments),
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

/// `--json`, which every command with a table takes.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct Output {
    /// Print one JSON object on standard output: {"command", "commit", "machine", "rows": [...]}.
    #[arg(long)]
    pub json: bool,
}

/// `unspin doctor`
#[derive(Args, Debug)]
pub struct DoctorArguments {
    /// How to print.
    #[command(flatten)]
    pub output: Output,
}

/// Flags that override a scenario.
#[derive(Args, Clone, Debug, Default)]
pub struct OverrideArguments {
    /// Override the seed.
    #[arg(long)]
    pub seed: Option<u64>,
    /// Override the length, as in 2s or 250ms.
    #[arg(long, value_name = "TIME")]
    pub duration: Option<String>,
    /// Override any value, as in vm.vcpus=4 or vm.0.hold='{ exponential = "300 loops" }'. May be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
}

/// A scenario file and what overrides it.
#[derive(Args, Clone, Debug)]
pub struct ScenarioArguments {
    /// The scenario, in TOML.
    #[arg(value_name = "SCENARIO")]
    pub file: PathBuf,
    /// What overrides it.
    #[command(flatten)]
    pub overrides: OverrideArguments,
}

/// `unspin scenario check`
#[derive(Args, Debug)]
pub struct CheckArguments {
    /// What to read.
    #[command(flatten)]
    pub scenario: ScenarioArguments,
}

/// Whether to load the BPF programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Observe {
    /// When this host allows it; otherwise say why not and go on.
    Auto,
    /// Or fail.
    On,
    /// Never.
    Off,
}

/// `unspin vm run`
#[derive(Args, Debug)]
pub struct VmRunArguments {
    /// What to run.
    #[command(flatten)]
    pub scenario: ScenarioArguments,
    /// Write the event log (switches, pause-loop exits, directed yields) to this file.
    #[arg(long, value_name = "FILE")]
    pub events: Option<PathBuf>,
    /// Record the run into this new folder, as `unspin record` does.
    #[arg(long, value_name = "FOLDER")]
    pub record: Option<PathBuf>,
    /// Write the guests' own logs, the ground truth, to this file: `unspin truth` judges explanations by it.
    #[arg(long, value_name = "FILE")]
    pub guest_log: Option<PathBuf>,
    /// Whether to watch KVM and the scheduler with BPF programs.
    #[arg(long, value_enum, default_value = "auto")]
    pub observe: Observe,
    /// How to print.
    #[command(flatten)]
    pub output: Output,
}

/// Yes or no.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Switch {
    /// Yes.
    On,
    /// No.
    Off,
}

/// `unspin record`
#[derive(Args, Debug)]
pub struct RecordArguments {
    /// Folder for the recording: a new or an empty one.
    #[arg(value_name = "FOLDER")]
    pub folder: PathBuf,
    /// How long to record, as in 90s; until Ctrl-C, or until the command ends, when absent.
    #[arg(long, value_name = "TIME", value_parser = parse_limit)]
    pub duration: Option<Duration>,
    /// Whether to record inter-processor interrupts.
    #[arg(long, value_enum, default_value = "on")]
    pub ipi: Switch,
    /// Record every exit and entry of every vCPU, too: by far the most events.
    #[arg(long)]
    pub exits: bool,
    /// How to print the summary.
    #[command(flatten)]
    pub output: Output,
    /// A command to run meanwhile; its exit status is passed on. `unspin` is this binary.
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// `unspin threshold`
#[derive(Args, Debug)]
pub struct ThresholdArguments {
    /// A recording.
    #[arg(value_name = "FOLDER")]
    pub folder: PathBuf,
    /// Only this VM's waits, by its number; those of all VMs together when absent.
    #[arg(long, value_name = "NUMBER")]
    pub vm: Option<u32>,
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

/// `unspin compare`
#[derive(Args, Debug)]
pub struct CompareArguments {
    /// What to run.
    #[command(flatten)]
    pub scenario: ScenarioArguments,
    /// Pairs of runs; pair k runs from seed + k.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub pairs: u32,
    /// Whether to watch KVM and the scheduler with BPF programs.
    #[arg(long, value_enum, default_value = "auto")]
    pub observe: Observe,
    /// Also run with our scheduler: with every directed yield refused, and with this policy, as in loan,kernel-exit.
    #[arg(long, value_name = "POLICY", value_parser = crate::steer::parse_policies)]
    pub policy: Option<Policies>,
    /// How to print.
    #[command(flatten)]
    pub output: Output,
}

/// What pause-loop windows count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum WindowWord {
    /// PAUSEs (AMD).
    Pauses,
    /// TSC cycles (Intel).
    Cycles,
}

/// `unspin outcomes`
#[derive(Args, Debug)]
pub struct OutcomesArguments {
    /// Recordings (folders), event logs (files), or scenarios (.toml), which are run now; one for each workload.
    #[arg(required = true, value_name = "RECORDING|SCENARIO")]
    pub recordings: Vec<PathBuf>,
    /// What overrides scenarios.
    #[command(flatten)]
    pub overrides: OverrideArguments,
    /// The guests' symbols, System.map or /proc/kallsyms: they name the function that spun.
    #[arg(long, value_name = "FILE")]
    pub symbols: Option<PathBuf>,
    /// The guests are Linux: their interrupt vectors say which IPIs are waited for.
    #[arg(long)]
    pub linux: bool,
    /// What `vm run --json` printed of each recording, in the same order: adds the guests' own share of spinning. Scenarios
    /// that are run now tell it themselves.
    #[arg(long = "guest", value_name = "FILE")]
    pub guests: Vec<PathBuf>,
    /// What windows count, for event logs, which do not say it.
    #[arg(long, value_enum)]
    pub window_unit: Option<WindowWord>,
    /// Frequency of the TSC in kHz: turns windows of TSC cycles into time.
    #[arg(long, value_name = "KHZ", value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub tsc_khz: Option<u64>,
    /// How to print.
    #[command(flatten)]
    pub output: Output,
}

/// `unspin explain`
#[derive(Args, Debug)]
pub struct ExplainArguments {
    /// The recording (`unspin record`, `unspin vm run --record`), or an event log (`--events`).
    #[arg(value_name = "RECORDING")]
    pub recording: PathBuf,
    /// List the waits one by one that burnt at least so much CPU time.
    #[arg(long, value_name = "TIME", default_value = "100us", value_parser = parse_limit)]
    pub min_wait: Duration,
    /// How many of them at most, the longest first.
    #[arg(long, value_name = "NUMBER", default_value_t = 10)]
    pub waits: usize,
    /// Names for the guests' addresses: a Linux System.map, or /proc/kallsyms of a guest.
    #[arg(long, value_name = "FILE")]
    pub symbols: Option<PathBuf>,
    /// Draw the vCPUs' time line into this file.
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Where the drawing begins, since the first event.
    #[arg(long, value_name = "TIME", requires = "svg", value_parser = parse_limit)]
    pub svg_from: Option<Duration>,
    /// How much time it shows.
    #[arg(long, value_name = "TIME", requires = "svg", default_value = "2ms", value_parser = parse_limit)]
    pub svg_length: Duration,
    /// How to print.
    #[command(flatten)]
    pub output: Output,
}

/// `unspin truth`
#[derive(Args, Debug)]
pub struct TruthArguments {
    /// The recording, or an event log.
    #[arg(value_name = "RECORDING")]
    pub recording: PathBuf,
    /// What `vm run --guest-log` wrote in the same run.
    #[arg(long, value_name = "FILE")]
    pub guest_log: PathBuf,
    /// Leave the guests' hints out: host knowledge alone.
    #[arg(long)]
    pub no_hints: bool,
    /// How to print.
    #[command(flatten)]
    pub output: Output,
}

/// `unspin policy ...`
#[derive(Debug, Subcommand)]
pub enum PolicyVerb {
    /// Print the names of all policies.
    List,
    /// Change what the running `unspin steer` decides by, from the next decision on.
    Set(PolicySetArguments),
    /// Take the decisions of a log again, on this machine, and fail unless all are the same to the bit.
    Replay(PolicyReplayArguments),
}

/// `unspin policy set`
#[derive(Args, Debug)]
pub struct PolicySetArguments {
    /// none, or some of the others apart by commas.
    #[arg(value_name = "POLICY", value_parser = crate::steer::parse_policies)]
    pub policy: Policies,
}

/// `unspin policy replay`
#[derive(Args, Debug)]
pub struct PolicyReplayArguments {
    /// What `unspin steer --log-decisions` wrote.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

/// `unspin steer`
#[derive(Args, Debug)]
pub struct SteerArguments {
    /// What decides: none, or some of loan, loan-cpl, kernel-exit, directed-yield, apart by commas.
    #[arg(long, value_name = "POLICY", default_value = "none", value_parser = crate::steer::parse_policies)]
    pub policy: Policies,
    /// Let policies touch this process's vCPUs only. May be repeated, and go with --cgroup.
    #[arg(long = "vm", value_name = "PROCESS")]
    pub vms: Vec<u32>,
    /// Let policies touch the vCPUs in this cgroup and below only, as in /sys/fs/cgroup/machine.slice. May be repeated.
    #[arg(long = "cgroup", value_name = "FOLDER")]
    pub cgroups: Vec<PathBuf>,
    /// Detach after so long, as in 30s; until Ctrl-C when absent, or until COMMAND ends.
    #[arg(long, value_name = "TIME", value_parser = parse_limit)]
    pub duration: Option<Duration>,
    /// Write every decision with all that it followed from to this file; `unspin policy replay` takes them again.
    #[arg(long, value_name = "FILE")]
    pub log_decisions: Option<PathBuf>,
    /// How to print.
    #[command(flatten)]
    pub output: Output,
    /// Run this meanwhile, detach when it ends, and pass its exit status on.
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// `unspin demo`
#[derive(Args, Debug)]
pub struct DemoArguments {
    /// Pairs of runs of each row.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub pairs: u32,
    /// Run on this machine's own KVM instead of the testbed; asks first.
    #[arg(long)]
    pub on_this_host: bool,
    /// Do not ask, and run beside other VMs.
    #[arg(long)]
    pub yes: bool,
    /// How to print.
    #[command(flatten)]
    pub output: Output,
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

/// `unspin bench threads`
#[derive(Args, Debug)]
pub struct ThreadsArguments {
    /// The scenario, in TOML; a ticket lock held for 300 loops in 3,000 when there is none.
    #[arg(value_name = "SCENARIO")]
    pub file: Option<PathBuf>,
    /// What overrides it.
    #[command(flatten)]
    pub overrides: OverrideArguments,
    /// Locks to compare, apart by commas; the scenario's own when absent.
    #[arg(long = "lock", value_name = "LOCK", value_delimiter = ',')]
    pub locks: Vec<String>,
    /// Numbers of threads, apart by commas; the scenario's vCPUs when absent.
    #[arg(long, value_name = "NUMBER", value_delimiter = ',')]
    pub threads: Vec<u32>,
    /// How often each lock is run with each number of threads.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub repeat: u32,
    /// How to print.
    #[command(flatten)]
    pub output: Output,
}

impl OverrideArguments {
    /// The flags as overrides, in the order seed, duration, set.
    pub fn overrides(&self) -> Result<Overrides, Failure> {
        let mut overrides = Overrides::default();
        let seed = self.seed.map(|seed| format!("seed={seed}"));
        let duration = self
            .duration
            .as_ref()
            .map(|time| format!("duration={time}"));
        for given in seed.iter().chain(&duration).chain(&self.set) {
            overrides
                .set(given)
                .map_err(|error| Failure::Usage(error.to_string()))?;
        }
        Ok(overrides)
    }
}

impl OutcomesArguments {
    /// Those of its inputs that are scenarios, with the overrides applied.
    pub fn scenarios(&self) -> Result<Vec<Scenario>, Failure> {
        let files = self.recordings.iter().filter(|file| is_scenario(file));
        files
            .map(|file| Ok(Scenario::load(file, &self.overrides.overrides()?)?))
            .collect()
    }
}

/// Whether an input of `unspin outcomes` is to be run, not read.
pub fn is_scenario(file: &std::path::Path) -> bool {
    file.extension().is_some_and(|ending| ending == "toml")
}

impl ScenarioArguments {
    /// Reads the file and overrides it.
    pub fn load(&self) -> Result<Scenario, Failure> {
        Ok(Scenario::load(&self.file, &self.overrides.overrides()?)?)
    }
}

/// A time limit: above 0.
pub fn parse_limit(text: &str) -> Result<Duration, String> {
    match unspin_scenario::parse_duration(text)? {
        0 => Err("a limit of 0 lets nothing run".into()),
        ns => Ok(Duration::from_nanos(ns)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn a_testbed_command_keeps_its_own_flags() {
        let line = "unspin testbed run --cpus 1 -- unspin vm run s.toml --seed 7 --json";
        let arguments = Arguments::try_parse_from(line.split(' ')).expect("valid");
        let Command::Testbed(Testbed::Run(testbed)) = arguments.command else {
            panic!("another command")
        };
        assert_eq!(testbed.cpus, 1);
        assert_eq!(
            testbed.command.join(" ".as_ref()),
            "unspin vm run s.toml --seed 7 --json"
        );
    }

    #[test]
    fn limits() {
        assert_eq!(parse_limit("1.5s"), Ok(Duration::from_millis(1_500)));
        assert!(parse_limit("0s").is_err() && parse_limit("90").is_err());
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command line: every command, each with a room of its own: what it takes, what it runs, what it prints.

pub(crate) mod bench;
pub(crate) mod canary;
pub(crate) mod compare;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod explain;
pub(crate) mod ground_truth;
pub(crate) mod help;
pub(crate) mod lab;
pub(crate) mod outcomes;
pub(crate) mod paper;
pub(crate) mod policy;
pub(crate) mod preload;
pub(crate) mod record;
pub(crate) mod report;
pub(crate) mod scenario;
pub(crate) mod serve;
pub(crate) mod steer;
pub(crate) mod testbed;
pub(crate) mod threshold;
pub(crate) mod top;
pub(crate) mod tune;
pub(crate) mod vm;

use clap::{Parser, Subcommand};

use self::{
    bench::args::Bench, canary::args::CanaryArguments, compare::args::CompareArguments,
    completions::CompletionsArguments, config::args::ConfigVerb, demo::args::DemoArguments,
    doctor::DoctorArguments, explain::args::ExplainArguments, ground_truth::GroundTruthArguments,
    help::args::HelpArguments, lab::args::LabVerb, outcomes::args::OutcomesArguments,
    paper::args::PaperArguments, policy::args::PolicyVerb, preload::args::PreloadArguments,
    record::args::RecordArguments, report::args::ReportArguments, scenario::args::ScenarioVerb,
    serve::args::ServeArguments, steer::args::SteerArguments, testbed::args::Testbed,
    threshold::ThresholdArguments, top::args::TopArguments, tune::args::TuneArguments,
    vm::args::VmVerb,
};

/// Spinning vCPUs and descheduled lock holders: see them, try remedies, fix them.
///
/// Exit status: 0 when the work was done, 1 when it failed, 2 for a wrong command line or scenario, that of the program for `unspin preload`, 3 when the kernel took its own
/// scheduler back from `unspin steer`, 5 when `unspin canary` has found harm, 130 after Ctrl-C.
#[derive(Debug, Parser)]
#[command(
    name = "unspin",
    version,
    max_term_width = 100,
    disable_help_subcommand = true
)]
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
    /// The file that `unspin serve` and `unspin steer` read: check it, show what is in force.
    #[command(subcommand)]
    Config(ConfigVerb),
    /// Work with scenario files.
    #[command(subcommand)]
    Scenario(ScenarioVerb),
    /// Run VMs on this host's KVM.
    #[command(subcommand)]
    Vm(VmVerb),
    /// The emulated KVM host: a stock kernel in a machine with AMD SVM or Intel VMX, on any x86-64 machine.
    #[command(subcommand)]
    Testbed(Testbed),
    /// A simulated host of any size, in which every scheduler and policy runs on the same work, the same every time.
    #[command(subcommand)]
    Lab(LabVerb),
    /// Measure the locks, the lab's engine and the host's schedulers, each by itself.
    #[command(subcommand)]
    Bench(Bench),
    /// Compare policies on scenarios: with the host's own scheduler, and with the same work where nobody is overcommitted.
    Compare(CompareArguments),
    /// Put our scheduler and a policy in place of the host's own, until it ends.
    Steer(SteerArguments),
    /// Try a policy on the VMs of this host against the kernel's own scheduler, give the host back when it harms, and keep what is good.
    Canary(CanaryArguments),
    /// Leave the host's own scheduler, and give VMs' vCPUs slices under which they spin less, until it ends.
    Tune(TuneArguments),
    /// What decides while `unspin steer` runs.
    #[command(subcommand)]
    Policy(PolicyVerb),
    /// Run a program with libunspin's locks in place of those of its pthread functions.
    Preload(PreloadArguments),
    /// Record what KVM and the scheduler do with every VM of this host.
    Record(RecordArguments),
    /// Serve what every VM of this host runs, waits, halts and spins, as metrics, all the time.
    Serve(ServeArguments),
    /// Show VMs by the CPU time that they waste by spinning, live.
    Top(TopArguments),
    /// From a recording: where a guest's spinning should end, and what each choice costs.
    Threshold(ThresholdArguments),
    /// Say what every pause-loop exit of a recording was for, what became of it, and what it cost.
    Outcomes(OutcomesArguments),
    /// Say of a recording who lost CPU time to spinning, for whom, and who ran instead.
    Explain(ExplainArguments),
    /// Say of each VM of a recording what is the matter with it, in plain words, and write a page that shows why.
    Report(ReportArguments),
    /// Judge what `explain` says of a recording by the guests' own logs, which it never sees.
    GroundTruth(GroundTruthArguments),
    /// Say of each claim of five papers what was measured of it, whether it agrees, and why not.
    Paper(PaperArguments),
    /// Show what overcommitted VMs lose, and what a policy gives back, in the testbed, for several shapes and locks.
    Demo(DemoArguments),
    /// Explain a command; write man pages.
    Help(HelpArguments),
    /// Print what a shell needs to complete commands and options.
    Completions(CompletionsArguments),
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
        assert_eq!(testbed.cpus, Some(1));
        assert_eq!(
            testbed.command.join(" ".as_ref()),
            "unspin vm run s.toml --seed 7 --json"
        );
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin`: the one binary. It runs on a host, and in the testbed also as PID 1.

mod commands;
mod renamed;
mod terminal;

use std::process::ExitCode;

use clap::Parser;

use commands::{
    Arguments, Command,
    bench::{self, args::Bench},
    canary, compare, completions, config, demo, doctor, explain, ground_truth, help,
    lab::{self, args::LabVerb},
    outcomes, paper, policy, preload, record, report,
    scenario::{self, args::ScenarioVerb},
    serve, steer,
    testbed::{self, args::Testbed},
    threshold, top, tune,
    vm::{self, args::VmVerb},
};
use terminal::failure::Failure;

fn main() -> ExitCode {
    if is_init() {
        unspin_testbed::init_main();
    }
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => match renamed::explain(&error) {
            Some(why) => return Failure::Usage(why).report(),
            None => error.exit(),
        },
    };
    match run(arguments) {
        Ok(status) => status,
        Err(failure) => failure.report(),
    }
}

/// Whether the testbed's kernel has started this as its init.
fn is_init() -> bool {
    std::process::id() == 1
        && std::env::args_os()
            .next()
            .is_some_and(|name| name == "/init")
}

fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    let done = |()| ExitCode::SUCCESS;
    match arguments.command {
        Command::Doctor(arguments) => doctor::run(&arguments).map(done),
        Command::Config(verb) => config::run(&verb).map(done),
        Command::Scenario(ScenarioVerb::Schema(arguments)) => {
            scenario::schema(&arguments).map(done)
        }
        Command::Scenario(ScenarioVerb::Check(arguments)) => scenario::check(&arguments).map(done),
        Command::Vm(VmVerb::Run(arguments)) => vm::run(&arguments).map(done),
        Command::Vm(VmVerb::Linux(arguments)) => vm::linux::run(&arguments).map(done),
        Command::Vm(VmVerb::LinuxLocks(arguments)) => vm::linux::locks::run(&arguments).map(done),
        Command::Vm(VmVerb::LinuxPolicies(arguments)) => {
            vm::linux::policies::run(&arguments).map(done)
        }
        Command::Testbed(Testbed::Run(arguments)) => testbed::run(&arguments),
        Command::Testbed(Testbed::Boots(arguments)) => testbed::boots::run(&arguments).map(done),
        Command::Lab(verb) => run_lab(&verb).map(done),
        Command::Compare(arguments) => compare::run(&arguments).map(done),
        Command::Record(arguments) => record::run(&arguments),
        Command::Serve(arguments) => serve::run(&arguments),
        Command::Top(arguments) => top::run(&arguments),
        Command::Threshold(arguments) => threshold::run(&arguments).map(done),
        Command::Outcomes(arguments) => outcomes::run(&arguments).map(done),
        Command::Explain(arguments) => explain::run(&arguments).map(done),
        Command::Report(arguments) => report::run(&arguments).map(done),
        Command::GroundTruth(arguments) => ground_truth::run(&arguments).map(done),
        Command::Policy(verb) => policy::run(&verb).map(done),
        Command::Preload(arguments) => preload::run(&arguments),
        Command::Steer(arguments) => steer::run(&arguments),
        Command::Canary(arguments) => canary::run(&arguments),
        Command::Tune(arguments) => tune::run(&arguments),
        Command::Help(arguments) => help::run(&arguments).map(done),
        Command::Completions(arguments) => completions::run(&arguments).map(done),
        Command::Paper(arguments) => paper::run(&arguments).map(done),
        Command::Demo(arguments) => demo::run(&arguments).map(done),
        Command::Bench(Bench::Ecs(arguments)) => bench::ecs::run(&arguments).map(done),
        Command::Bench(Bench::Engine(arguments)) => bench::engine::run(&arguments).map(done),
        Command::Bench(Bench::Host(arguments)) => bench::host::run(&arguments).map(done),
        Command::Bench(Bench::Observing(arguments)) => bench::observing::run(&arguments).map(done),
        Command::Bench(Bench::Threads(arguments)) => bench::threads::run(&arguments).map(done),
        Command::Bench(Bench::Vm(arguments)) => bench::vm::run(&arguments).map(done),
    }
}

fn run_lab(verb: &LabVerb) -> Result<(), Failure> {
    match verb {
        LabVerb::Run(arguments) => lab::run(arguments),
        LabVerb::Sweep(arguments) => lab::sweep::run(arguments),
        LabVerb::Find(arguments) => lab::find::run(arguments),
        LabVerb::From(arguments) => lab::from::run(arguments),
        LabVerb::Calibrate(arguments) => lab::calibrate::run(arguments),
        LabVerb::Conform(arguments) => lab::conform::run(arguments),
        LabVerb::Compare(arguments) => lab::compare::run(arguments),
    }
}

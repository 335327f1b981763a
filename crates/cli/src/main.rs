// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin`: the one binary. It runs on a host, and in the testbed also as PID 1.

mod arguments;
mod bench_ecs;
mod bench_engine;
mod bench_engine_baselines;
mod bench_observing;
mod bench_threads;
mod bench_threads_plot;
mod bench_threads_run_states;
mod bench_vm;
mod bench_vm_figures;
mod bench_vm_tables;
mod compare;
mod compare_cells;
mod compare_details;
mod compare_file;
mod compare_full;
mod compare_lab;
mod compare_matrix;
mod compare_measure;
mod compare_order;
mod compare_pooled;
mod compare_row;
mod compare_steering;
mod compare_table;
mod compare_why;
mod compare_windows;
mod compare_words;
mod decision_log;
mod demo;
mod disclosure_choice;
mod doctor;
mod doctor_checks;
mod doctor_kernel;
mod doctor_tools;
mod event_file;
mod exit_cost_tables;
mod explain;
mod explain_tables;
mod explain_words;
mod failure;
mod ground_truth_check;
mod ground_truth_tables;
mod guest_log_file;
mod guest_tables;
mod host_columns;
mod interrupt;
mod lab;
mod lab_axis;
mod lab_calibrate;
mod lab_calibrate_figures;
mod lab_calibrate_guest;
mod lab_change;
mod lab_compare;
mod lab_conform;
mod lab_conform_file;
mod lab_from;
mod lab_from_seen;
mod lab_from_work;
mod lab_grid;
mod lab_observers;
mod lab_pool;
mod lab_record;
mod lab_run;
mod lab_sweep;
mod lab_sweep_folder;
mod lab_sweep_rows;
mod lab_table_file;
mod lab_tables;
mod linux_locks;
mod linux_policies;
mod linux_policies_measure;
mod linux_policies_row;
mod linux_run;
mod linux_tables;
mod observe;
mod other_vms;
mod outcome_tables;
mod outcomes;
mod outcomes_live;
mod output;
mod policy;
mod policy_choice;
mod progress;
mod pv_pages;
mod reason_tables;
mod record;
mod record_child;
mod record_guests;
mod record_stream;
mod record_tables;
mod recordings;
mod replay;
mod scenario_command;
mod shares;
mod steer;
mod steer_dry;
mod steer_wait;
mod steer_windows;
mod testbed_boots;
mod testbed_compare;
mod testbed_kvm;
mod testbed_policies;
mod testbed_run;
mod threshold;
mod threshold_tables;
mod timeline_svg;
mod vm_run;
mod vm_tables;
mod vm_waits;

use std::process::ExitCode;

use clap::Parser;

use arguments::{Arguments, Bench, Command, ScenarioVerb, Testbed, VmVerb};
use failure::Failure;

fn main() -> ExitCode {
    if is_init() {
        unspin_testbed::init_main();
    }
    match run(Arguments::parse()) {
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
        Command::Scenario(ScenarioVerb::Schema) => scenario_command::schema().map(done),
        Command::Scenario(ScenarioVerb::Check(arguments)) => {
            scenario_command::check(&arguments).map(done)
        }
        Command::Vm(VmVerb::Run(arguments)) => vm_run::run(&arguments).map(done),
        Command::Vm(VmVerb::Linux(arguments)) => linux_run::run(&arguments).map(done),
        Command::Vm(VmVerb::LinuxLocks(arguments)) => linux_locks::run(&arguments).map(done),
        Command::Vm(VmVerb::LinuxPolicies(arguments)) => linux_policies::run(&arguments).map(done),
        Command::Testbed(Testbed::Run(arguments)) => testbed_run::run(&arguments),
        Command::Testbed(Testbed::Boots(arguments)) => testbed_boots::run(&arguments).map(done),
        Command::Lab(verb) => lab::run(&verb).map(done),
        Command::Compare(arguments) => compare::run(&arguments).map(done),
        Command::Record(arguments) => record::run(&arguments),
        Command::Threshold(arguments) => threshold::run(&arguments).map(done),
        Command::Outcomes(arguments) => outcomes::run(&arguments).map(done),
        Command::Explain(arguments) => explain::run(&arguments).map(done),
        Command::GroundTruth(arguments) => ground_truth_check::run(&arguments).map(done),
        Command::Policy(verb) => policy::run(&verb).map(done),
        Command::Steer(arguments) => steer::run(&arguments),
        Command::Demo(arguments) => demo::run(&arguments).map(done),
        Command::Bench(Bench::Ecs(arguments)) => bench_ecs::run(&arguments).map(done),
        Command::Bench(Bench::Engine(arguments)) => bench_engine::run(&arguments).map(done),
        Command::Bench(Bench::Observing(arguments)) => bench_observing::run(&arguments).map(done),
        Command::Bench(Bench::Threads(arguments)) => bench_threads::run(&arguments).map(done),
        Command::Bench(Bench::Vm(arguments)) => bench_vm::run(&arguments).map(done),
    }
}

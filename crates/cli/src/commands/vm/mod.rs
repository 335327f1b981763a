// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin vm run`: a scenario's VMs on this host's KVM, watched, and what came of it; [`linux`], the same with Linux guests.

pub(crate) mod args;
pub(crate) mod linux;

use unspin_experiment::{
    vm_run::{EventFile, Run, Watch, execute, guest_statistics, write_guest_log},
    watch::Events,
};
use unspin_report::{Document, Machine, Table};
use unspin_vmm::PauseLoop;

use crate::{
    commands::vm::args::VmRunArguments,
    terminal::{failure::Failure, options::Observe, output, progress::Experiment, replay},
};

/// Runs the scenario and prints its tables.
pub fn run(arguments: &VmRunArguments) -> Result<(), Failure> {
    let scenario = arguments.scenario.load()?;
    let ground_truth = scenario.vms.iter().any(|vm| vm.log_records > 0);
    // Events are needed to write them, and to judge the guests' own log by them.
    let events = match (&arguments.events, ground_truth) {
        (Some(_), _) => Events::Required,
        (None, true) => Events::Wanted,
        (None, false) => Events::None,
    };
    let file = arguments
        .events
        .as_deref()
        .map(EventFile::create)
        .transpose()?;
    let machine = Machine::here(output::in_testbed()).to_string();
    let watch = match &arguments.record {
        Some(_) if arguments.observe == Observe::Off => {
            let message = "--record needs BPF programs, and --observe off forbids them";
            return Err(Failure::Usage(message.into()));
        }
        Some(folder) => {
            let keep = events != Events::None;
            Some(Watch::record(folder, &scenario, &machine, keep)?)
        }
        None => Watch::start(arguments.observe.into(), events)?,
    };
    let run = execute(scenario, watch, &Experiment::new(false).session()?)?;
    if let Some(folder) = &arguments.record {
        guest_statistics::write(folder, &run.report)?;
    }
    if let (Some(file), Some(metadata), Some(seen)) = (file, run.metadata(&machine), &run.seen) {
        file.finish(metadata, &seen.events)?;
    }
    if let Some(path) = &arguments.guest_log {
        write_guest_log(path, &run)?;
    }
    let mut document = output::document("vm run");
    tables(&mut document, &run);
    guest_tables(&mut document, &run);
    if ground_truth {
        stall_tables(&mut document, &run)?;
    }
    notes(&mut document, arguments, &run);
    output::print(&document, arguments.output)?;
    Ok(())
}

/// The run, each VM, each vCPU, and what they waited for.
fn tables(document: &mut Document, run: &Run) {
    document.note(summary(run));
    document.table(Table::of("", [run.run_row()]));
    document.table(Table::of("VMs", run.vm_rows()));
    document.table(Table::of("vCPUs", run.vcpu_rows()));
    document.note(
        "waiting: share of all time; spinning: share of CPU time.\n\
         Rates and shares: of the window. Counters: of the whole run.",
    );
    let waits = run.wait_rows();
    if !waits.is_empty() {
        document.table(Table::of("Waits", waits));
        document.note(
            "Waits: those that ended in the window, of acquisitions that found the lock taken and of shootdowns sent.\n\
             p95: the upper bound of a bucket by powers of two.",
        );
    }
}

/// What the guests say of themselves beyond that; each table only when some VM has something to say in it.
fn guest_tables(document: &mut Document, run: &Run) {
    let (preemptions, wakeups) = (run.preemption_rows(), run.wakeup_rows());
    let calls = run.call_rows();
    if !preemptions.is_empty() {
        let title = "Preemptions by critical section, as the guests know";
        document.table(Table::of(title, preemptions));
        document.note(
            "preemptions: each once, by precedence from above; applied: in every class that held.",
        );
    }
    if !wakeups.is_empty() {
        let title = "Blocked-waiter wake-ups (BWW): from the wake-up until the task runs";
        document.table(Table::of(title, wakeups));
    }
    if !calls.is_empty() {
        document.table(Table::of("What locks and tasks did", calls));
    }
}

/// Table 1, and the ground truth when the run was watched.
fn stall_tables(document: &mut Document, run: &Run) -> Result<(), Failure> {
    let (counted, truths) = run.stall_rows()?;
    let title = "VEE'13 Table 1, as the guest counts: waits of more than 2,048 spins, and whether anybody held the lock then";
    document.table(Table::of(title, counted));
    if !truths.is_empty() {
        let title = "Ground truth of the stalls in the log: the guest's waits joined with the host's switches";
        document.table(Table::of(title, truths));
    }
    Ok(())
}

/// The window in force and what was lost, for people.
fn summary(run: &Run) -> String {
    let report = &run.report;
    let window = PauseLoop::describe(report.pause_loop.as_ref());
    let seen = match &run.seen {
        Some(seen) => format!(
            "lost events {}, missed BPF runs {}, unobserved exits {}",
            seen.health.lost_events + seen.dropped_events,
            seen.health.recursion_misses(),
            seen.health.unobserved_exits
        ),
        None => "not observed".into(),
    };
    format!(
        "{}: {} VMs, {:.3} s measured; {window}; {seen}",
        run.scenario.name,
        report.vms.len(),
        report.window_ns as f64 / 1e9
    )
}

/// Watching is part of what is repeated: it changes the times.
fn observe_flag(observe: Observe) -> Vec<String> {
    let word = match observe {
        Observe::Auto => return Vec::new(),
        Observe::On => "on",
        Observe::Off => "off",
    };
    vec![format!("--observe {word}")]
}

/// Seed, hash and the command that repeats the run.
fn notes(document: &mut Document, arguments: &VmRunArguments, run: &Run) {
    document.note(format!(
        "\nscenario {}, seed {}, sha256 {}",
        run.scenario.name,
        run.scenario.seed,
        run.scenario.hash()
    ));
    document.note(format!(
        "repeat it byte for byte: {}",
        replay::command(
            "vm run",
            &arguments.scenario,
            &observe_flag(arguments.observe)
        )
    ));
}

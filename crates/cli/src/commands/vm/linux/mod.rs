// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin vm linux`: unmodified Linux guests under the distribution's QEMU, watched like any other VM.

pub(crate) mod args;
pub(crate) mod locks;
pub(crate) mod policies;

use unspin_experiment::linux_run::{self, LinuxRun};
use unspin_linux_guest::{Options, Programs};
use unspin_report::{Document, Table};
use unspin_vmm::PauseLoop;

use crate::{
    commands::vm::linux::args::LinuxArguments,
    terminal::{failure::Failure, interrupt, output, progress::Experiment},
};

/// Runs the guests and prints what they and the host say.
pub fn run(arguments: &LinuxArguments) -> Result<(), Failure> {
    let cache = unspin_testbed::cache_from_environment().unwrap_or_default();
    let mut programs = Programs::find(output::in_testbed(), &cache)?;
    if arguments.lock.is_some() {
        programs = programs.with_our_kernel()?;
    }
    let pause_loop = PauseLoop::of_this_host(&arguments.host())?;
    let (groups, loops) = arguments.size();
    let options = Options {
        programs,
        vms: arguments.vms,
        vcpus: arguments.vcpus,
        memory_mib: arguments.memory_mib(),
        load: arguments.load.load(),
        groups,
        loops,
        runs: arguments.runs,
        features: arguments.features,
        ours: arguments.ours(),
        counts: arguments.counts,
        kernel_arguments: arguments.kernel_arguments.clone(),
        symbols: arguments.symbols.is_some(),
        limit: arguments.limit,
        interrupt: interrupt::flag()?,
    };
    let progress = Experiment::new(false);
    let observe = arguments.observe.into();
    let run = linux_run::run(&options, pause_loop, observe, &progress.session()?)?;
    if let (Some(file), Some(symbols)) = (&arguments.symbols, &run.report.symbols) {
        std::fs::write(file, symbols).map_err(|error| {
            anyhow::Error::from(error).context(format!("writing {}", file.display()))
        })?;
    }
    let mut document = output::document("vm linux");
    add(&mut document, &run);
    output::print(&document, arguments.output)?;
    Ok(())
}

/// Adds all tables, and for people what ran under which window.
fn add(document: &mut Document, run: &LinuxRun) {
    document.note(summary(run));
    document.table(Table::of("", [run.run_row()]));
    document.table(Table::of("VMs", run.vm_rows()));
    document.table(Table::of("", run.load_run_rows()));
    // Without the host's counters it would have no row.
    if run.seen.is_some() {
        document.table(Table::of("vCPUs while the loads ran", run.vcpu_rows()));
    }
    document.note(
        "load: as the guest timed it; requests: transactions, allocations or answers; p99 and longest: of their latencies. RES, CAL, TLB: rescheduling, function-call and TLB shootdown interrupts that\n\
         the guest counted in its runs; stolen: vCPU time that it wanted and did not get. exits: of the window.",
    );
}

fn summary(run: &LinuxRun) -> String {
    let window = PauseLoop::describe(run.pause_loop.as_ref());
    let kernel = run.report.vms.first().and_then(|vm| vm.kernel.as_deref());
    let seen = match &run.seen {
        Some(seen) => format!(
            "missed BPF runs {}, unobserved exits {}",
            seen.health.recursion_misses(),
            seen.health.unobserved_exits
        ),
        None => "not observed".into(),
    };
    format!(
        "{} VMs, Linux {}, {}: {}; {window}; {seen}",
        run.report.vms.len(),
        kernel.unwrap_or("-"),
        run.features,
        run.report.command
    )
}

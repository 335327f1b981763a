// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin vm linux-locks`: VEE'13's cells with Linux guests, each lock's time beside that of the ticket lock.

use unspin_experiment::linux_run::locks::{Cell, measure, rows};
use unspin_linux_guest::{CountsModule, Load, Options, Programs};
use unspin_report::Table;
use unspin_vmm::PauseLoop;

use crate::{
    commands::vm::linux::args::LinuxLocksArguments,
    terminal::{failure::Failure, interrupt, output, progress::Experiment},
};

/// Runs every cell of every round and prints one table.
pub fn run(arguments: &LinuxLocksArguments) -> Result<(), Failure> {
    let cache = unspin_testbed::cache_from_environment().unwrap_or_default();
    let programs = Programs::find(output::in_testbed(), &cache)?;
    let pause_loop = PauseLoop::of_this_host(&arguments.host())?;
    let common = Options {
        programs,
        vms: 1,
        vcpus: arguments.vcpus,
        memory_mib: arguments.memory_mib,
        load: Load::Idle,
        groups: 1,
        loops: 1,
        runs: arguments.runs,
        features: arguments.features,
        ours: None,
        counts: CountsModule::Off,
        kernel_arguments: Vec::new(),
        symbols: false,
        limit: arguments.limit,
        interrupt: interrupt::flag()?,
    };
    let mut cells = cells(arguments);
    let progress = Experiment::new(false);
    measure(&mut cells, arguments.rounds, &common, &progress.session()?)?;
    let mut document = output::document("vm linux-locks");
    document.note(format!(
        "{} vCPUs in each VM, {}; {}; x ticket: the ticket lock's mean time through this one's; paper: VEE'13, section 6.2",
        arguments.vcpus,
        arguments.features,
        PauseLoop::describe(pause_loop.as_ref())
    ));
    document.table(Table::of("VEE'13's cells", rows(&cells)));
    output::print(&document, arguments.output)?;
    Ok(())
}

/// All cells, those that are compared next to one another.
fn cells(arguments: &LinuxLocksArguments) -> Vec<Cell> {
    let mut cells = Vec::new();
    for load in &arguments.loads {
        for &vms in &arguments.vms {
            let locks = arguments.locks.iter();
            cells.extend(locks.map(|&lock| Cell::new(load.load(), vms, lock)));
        }
    }
    cells
}

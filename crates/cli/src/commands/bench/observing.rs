// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin bench observing`: what observing costs on this kernel.

use unspin_experiment::observing::{Settings, measure};
use unspin_report::{Machine, Table};

use crate::{
    commands::bench::args::ObservingArguments,
    terminal::{failure::Failure, output, progress::Experiment},
};

/// Measures and prints the tables.
pub fn run(arguments: &ObservingArguments) -> Result<(), Failure> {
    let settings = Settings {
        rounds: arguments.rounds,
        rate: arguments.rate,
        switches: arguments.switches,
        seconds: arguments.seconds,
        folder: arguments.folder.as_deref(),
        machine: &Machine::here(output::in_testbed()).to_string(),
    };
    let measured = measure(&settings, &Experiment::new(false).session()?)?;
    let mut document = output::document("bench observing");
    document.table(Table::of("Beyond an empty program", measured.programs));
    document.table(Table::of("Synthetic events, default ring", measured.ring));
    document.table(Table::of("Flight recorder", [measured.flight]));
    output::print(&document, arguments.output)?;
    Ok(())
}

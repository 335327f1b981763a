// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin lab compare`: the scenario as it is (*stock*), each policy, and the same work where nobody is overcommitted
//! (*ideal*), from the same seeds.

use unspin_experiment::lab::{Cell, compare};
use unspin_report::Table;
use unspin_scenario::ScenarioText;

use crate::{
    commands::lab::args::LabCompareArguments,
    terminal::{failure::Failure, output, progress::Experiment},
};

/// Compares and prints the tables.
pub fn run(arguments: &LabCompareArguments) -> Result<(), Failure> {
    let given = &arguments.scenario;
    let text = ScenarioText::read(&given.file)?;
    let overrides = given.overrides.overrides()?;
    let cell = Cell::of(&text, &overrides, &arguments.policies, arguments.seeds)?;
    let progress = Experiment::new(false);
    let compared = compare(&cell, arguments.workers, &progress.session()?)?;
    let mut document = output::document("lab compare");
    document.table(Table::of("", compared.policy_rows()));
    document.table(Table::of("", compared.seed_rows()));
    for note in compared.notes(&cell) {
        document.note(note);
    }
    Ok(output::print(&document, arguments.output)?)
}

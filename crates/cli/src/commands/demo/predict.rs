// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin demo --predict`: what the lab says of the demo's table, in about a second; and beside the measured table, how far
//! that was off.

use unspin_experiment::{
    cells::{Cell, Finished},
    demo::{SEEDS, predict},
    prediction::{Compared, costs},
};
use unspin_report::{Document, Table};

use crate::{
    commands::{compare::prediction, demo::args::DemoArguments},
    terminal::{failure::Failure, output, progress::Experiment},
};

/// Prints the predicted table.
///
/// # Errors
/// Ctrl-C; standard output that cannot be written.
pub fn run(arguments: &DemoArguments) -> Result<(), Failure> {
    let rows = predict(arguments.pairs, &Experiment::new(false).session()?)?;
    let mut document = output::document("demo --predict");
    document.note("What the lab PREDICTS for the demo's table, with the testbed's costs; none of it was measured:");
    document.table(Table::of("", rows));
    Ok(output::print(&document, arguments.output)?)
}

/// Adds the lab's predictions beside what was measured in the testbed.
///
/// # Errors
/// Ctrl-C.
pub fn add(document: &mut Document, cells: &[Cell], finished: &[Finished]) -> Result<(), Failure> {
    let mut scenarios = Vec::new();
    for cell in cells {
        scenarios.push((cell.identity()?, cell.scenario()?, &cell.plan));
    }
    let mut compared = Vec::new();
    for one in finished {
        let of = scenarios
            .iter()
            .find(|(identity, ..)| *identity == one.cell);
        compared.extend(of.map(|(_, scenario, plan)| Compared {
            scenario,
            plan,
            rows: one.rows.iter().collect(),
        }));
    }
    prediction::add(document, &compared, &costs(None, true)?, SEEDS)
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin lab conform`: what the lab predicts beside what was measured, cell by cell, and whether it puts locks and
//! policies into the same order.

use unspin_experiment::conform::{self, Conformance, HIT_RATIO, ORDERED_RATIO};
use unspin_report::Table;

use crate::{
    commands::lab::args::LabConformArguments,
    terminal::{failure::Failure, output, progress::Experiment},
};

/// Predicts all cells and prints the tables.
pub fn run(arguments: &LabConformArguments) -> Result<(), Failure> {
    let Conformance { measured, cells } = conform::load(&arguments.file)?;
    let progress = Experiment::new(false);
    let (seeds, workers) = (arguments.seeds, arguments.workers);
    let all = conform::predict(cells, seeds, workers, &progress.session()?)?;
    let mut document = output::document("lab conform");
    document.table(Table::of("", conform::cell_rows(&all)));
    document.table(Table::of("", conform::order_rows(&all)));
    let hits = all.iter().filter(|one| one.hits()).count();
    document.note(format!("measured: {}", measured));
    document.note(format!(
        "{hits} of {} cells within {HIT_RATIO}; predicted: means of {} seeds",
        all.len(),
        arguments.seeds
    ));
    document.note(format!(
        "pairs: of figures of which the larger is at least {ORDERED_RATIO} times the smaller"
    ));
    Ok(output::print(&document, arguments.output)?)
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin lab sweep`: a grid of scenarios over all cores into one Parquet file.

use std::time::Instant;

use unspin_experiment::{
    in_python::on_cluster,
    sweep::{self, Grid},
};
use unspin_report::Table;
use unspin_scenario::ScenarioText;

use crate::{
    commands::lab::args::LabSweepArguments,
    terminal::{failure::Failure, output, progress::Experiment},
};

/// More cells than people want to read; JSON and the file have all of them.
const SHOWN_MAX: usize = 64;

/// Runs what is missing, puts all together and prints what was done.
pub fn run(arguments: &LabSweepArguments) -> Result<(), Failure> {
    let begin = Instant::now();
    let mut plain = arguments.scenario.overrides.clone();
    let set = std::mem::take(&mut plain.set);
    let text = ScenarioText::read(&arguments.scenario.file)?;
    let progress = Experiment::new(false);
    let session = progress.session()?;
    let (plain, seeds) = (plain.overrides()?, arguments.seeds);
    let mut document = output::document("lab sweep");
    if let Some(address) = &arguments.ray {
        let out = arguments.out.to_string_lossy();
        let swept = on_cluster(&text, &plain, &set, seeds, (address, &out), &session)?;
        document.table(Table::of("", [swept.sweep_row(begin.elapsed())]));
        swept
            .notes()
            .into_iter()
            .for_each(|note| document.note(note));
        return Ok(output::print(&document, arguments.output)?);
    }
    let grid = Grid::of_words(&text, &plain, &set, seeds, &session.interrupt)?;
    let workers = arguments.workers;
    let swept = sweep::run(&grid, &arguments.out, workers, &session)?;
    document.table(Table::of("", [swept.sweep_row(&grid, begin.elapsed())]));
    if arguments.output.json || grid.cells.len() <= SHOWN_MAX {
        document.table(Table::of("\nCells", swept.cell_rows(&grid)));
    }
    Ok(output::print(&document, arguments.output)?)
}

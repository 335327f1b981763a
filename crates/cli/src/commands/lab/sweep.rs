// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin lab sweep`: a grid of scenarios over all cores into one Parquet file.

use std::time::Instant;

use arrow_array::{RecordBatch, cast::AsArray, types::Int64Type};
use unspin_experiment::sweep::{self, Grid};
use unspin_report::{Cell, Column, Table, Unit};

use crate::{
    commands::lab::args::LabSweepArguments,
    terminal::{failure::Failure, output, progress::Experiment},
};

const SWEEP: &[Column] = &[
    Column::json_only("scenario", Unit::Text),
    Column::json_only("scenario_sha256", Unit::Text),
    Column::json_only("grid", Unit::Text),
    Column::new("cells", "cells", Unit::Count),
    Column::new("run", "run now", Unit::Count),
    Column::new("kept", "kept", Unit::Count),
    Column::new("rows", "rows", Unit::Count),
    Column::new("wall_ns", "took", Unit::Nanoseconds),
    Column::new("file", "file", Unit::Text),
];
const CELL: &[Column] = &[
    Column::new("cell", "cell", Unit::Count),
    Column::new("seed", "seed", Unit::Count),
    Column::new("set", "set", Unit::Text),
    Column::new("operations_per_second", "ops/s", Unit::Count),
    Column::new("pause_exits", "PLE exits", Unit::Count),
    Column::new("preemptions", "preempted", Unit::Count),
];
/// More cells than people want to read; JSON and the file have all of them.
const SHOWN_MAX: usize = 64;

/// Runs what is missing, puts all together and prints what was done.
pub fn run(arguments: &LabSweepArguments) -> Result<(), Failure> {
    let begin = Instant::now();
    let mut plain = arguments.scenario.overrides.clone();
    let set = std::mem::take(&mut plain.set);
    let (file, seeds) = (&arguments.scenario.file, arguments.seeds);
    let grid = Grid::load(file, &plain.overrides()?, &set, seeds)?;
    let progress = Experiment::new(false);
    let workers = arguments.workers;
    let swept = sweep::run(&grid, &arguments.out, workers, &progress.session()?)?;
    let mut cells = Table::new("cell", "\nCells", CELL);
    let show = arguments.output.json || grid.cells.len() <= SHOWN_MAX;
    if show {
        add_cells(&mut cells, &grid, &swept.rows);
    }
    let mut document = output::document("lab sweep");
    let mut table = Table::new("sweep", "", SWEEP);
    table.push(vec![
        grid.base.name.clone().into(),
        grid.base.hash().into(),
        grid.describe().into(),
        grid.cells.len().into(),
        swept.run.into(),
        (grid.cells.len() - swept.run).into(),
        swept.rows.num_rows().into(),
        (begin.elapsed().as_nanos() as f64).into(),
        swept.file.display().to_string().into(),
    ]);
    document.table(table);
    if show {
        document.table(cells);
    }
    Ok(output::print(&document, arguments.output)?)
}

/// A line for each cell: its VMs together.
fn add_cells(table: &mut Table, grid: &Grid, rows: &RecordBatch) {
    let column = |name: &str| {
        let found = rows.column_by_name(name);
        found.map_or(&[][..], |column| {
            column.as_primitive::<Int64Type>().values()
        })
    };
    let numbers = column("cell");
    let mut begin = 0;
    while begin < numbers.len() {
        let same = |number: &&i64| **number == numbers[begin];
        let end = begin + numbers[begin..].iter().take_while(same).count();
        let sum = |name| -> i64 { column(name)[begin..end].iter().sum() };
        let cell = usize::try_from(numbers[begin]).ok();
        let values = cell.and_then(|cell| grid.cells.get(cell));
        let window_ns = column("window_ns")[begin];
        let rate = (window_ns > 0).then(|| sum("operations") as f64 * 1e9 / window_ns as f64);
        table.push(vec![
            (numbers[begin] as u64).into(),
            (column("seed")[begin] as u64).into(),
            values.map(|cell| grid.name(&cell.values)).into(),
            rate.into(),
            Cell::from(sum("pause_exits") as u64),
            Cell::from(sum("preemptions") as u64),
        ]);
        begin = end;
    }
}

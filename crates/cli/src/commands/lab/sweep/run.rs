// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin lab sweep`: a grid of scenarios over all cores into one Parquet file; what a kill leaves is gone on with.
//!
//! Each cell becomes a file of its own, which has its name only when it is whole. When all are there, they are put together
//! in the order of the grid, and removed: so the bytes are the same with any number of workers and interruptions.

use std::time::Instant;

use arrow_array::{RecordBatch, cast::AsArray, types::Int64Type};
use unspin_lab::pool as lab_pool;
use unspin_report::{Cell, Column, Table, Unit};

use crate::{
    commands::lab::{
        args::LabSweepArguments,
        sweep::{
            folder::{Found, SweepFolder},
            grid::Grid,
            rows as lab_sweep_rows,
        },
    },
    terminal::{failure::Failure, interrupt, output, progress::Steps},
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
    let grid = Grid::load(&arguments.scenario, arguments.seeds)?;
    let mut folder = SweepFolder::open(&arguments.out, &grid)?;
    let missing = match folder.look(&grid)? {
        Found::Complete => Vec::new(),
        Found::Missing(missing) => missing,
    };
    simulate(
        &grid,
        &mut folder,
        &missing,
        lab_pool::workers(arguments.workers),
    )?;
    let mut cells = Table::new("cell", "\nCells", CELL);
    let show = arguments.output.json || grid.cells.len() <= SHOWN_MAX;
    let rows = folder.merge(&grid)?;
    if show {
        add_cells(&mut cells, &grid, &rows);
    }
    let mut document = output::document("lab sweep");
    let mut table = Table::new("sweep", "", SWEEP);
    table.push(vec![
        grid.base.name.clone().into(),
        grid.base.hash().into(),
        grid.describe().into(),
        grid.cells.len().into(),
        missing.len().into(),
        (grid.cells.len() - missing.len()).into(),
        rows.num_rows().into(),
        (begin.elapsed().as_nanos() as f64).into(),
        folder.merged().display().to_string().into(),
    ]);
    document.table(table);
    if show {
        document.table(cells);
    }
    Ok(output::print(&document, arguments.output)?)
}

fn simulate(
    grid: &Grid,
    folder: &mut SweepFolder,
    missing: &[usize],
    workers: usize,
) -> Result<(), Failure> {
    let kept = grid.cells.len() - missing.len();
    let steps = Steps::with_rest(missing.len(), &format!("sweeping ({kept} kept)"));
    let mut done = 0;
    lab_pool::each(
        missing,
        workers,
        &*interrupt::flag()?,
        |number| {
            let cell = &grid.cells[*number];
            let outcome = lab_pool::run_one(&cell.scenario)?;
            lab_sweep_rows::rows(grid, *number, cell, &outcome)
        },
        |place, rows| {
            folder.keep(grid, missing[place], rows)?;
            done += 1;
            steps.done(done);
            Ok(())
        },
    )
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

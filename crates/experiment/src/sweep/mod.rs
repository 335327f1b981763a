// SPDX-License-Identifier: MIT OR Apache-2.0
//! A grid of scenarios over all cores into one Parquet file (`unspin lab sweep`); what a kill leaves is gone on with.
//!
//! Each cell becomes a file of its own, which has its name only when it is whole. When all are there, they are put together
//! in the order of the grid, and removed: so the bytes are the same with any number of workers and interruptions.

mod axis;
mod folder;
mod grid;
mod printed;
mod rows;
mod table_file;

use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
pub use axis::Axis;
use folder::{Found, SweepFolder};
pub use grid::{Grid, GridCell};
pub use printed::{CellRow, SweepRow};
use unspin_lab::pool;

use crate::{Error, Session, Work};

/// A sweep that is complete.
pub struct Swept {
    /// Cells that were run now; the others were there.
    pub run: usize,
    /// A row for each VM of each cell, in the order of the grid; columns: see the file.
    pub rows: RecordBatch,
    /// The file of all cells.
    pub file: PathBuf,
}

/// Runs what is missing in the folder `out` with so many workers (as many as CPUs when absent), and puts all together.
///
/// # Errors
/// A folder of another sweep, damage, a cell that is stuck, the system, or an interrupt; finished cells stay.
pub fn run(
    grid: &Grid,
    out: &Path,
    workers: Option<u32>,
    session: &Session<'_>,
) -> Result<Swept, Error> {
    let mut folder = SweepFolder::open(out, grid)?;
    let missing = match folder.look(grid)? {
        Found::Complete => Vec::new(),
        Found::Missing(missing) => missing,
    };
    let kept = grid.cells.len() - missing.len();
    let (progress, work) = (session.progress, Work::EvenSteps(missing.len()));
    let interrupt = &session.interrupt;
    progress.begin(&format!("sweeping ({kept} kept)"), work);
    let mut done = 0;
    let finished = pool::each(
        &missing,
        pool::workers(workers),
        interrupt,
        |number| {
            let cell = &grid.cells[*number];
            let outcome = pool::run_one(&cell.scenario, interrupt)?;
            rows::rows(grid, *number, cell, &outcome)
        },
        |place, rows| {
            folder.keep(grid, missing[place], rows)?;
            done += 1;
            progress.done(done);
            Ok(())
        },
    );
    progress.end();
    finished?;
    Ok(Swept {
        run: missing.len(),
        rows: folder.merge(grid)?,
        file: folder.merged(),
    })
}

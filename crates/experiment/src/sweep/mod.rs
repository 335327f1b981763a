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
use arrow_select::concat::concat_batches;
pub use axis::{Axis, parse_axis};
use folder::{Found, SweepFolder};
pub(crate) use grid::axes_of;
pub use grid::{Grid, GridCell};
pub use printed::{CellRow, SweepRow, cell_rows};
use unspin_lab::pool;

use crate::{Error, Session, Work};

/// What a file of this grid's cells says of them, as pairs of a key and a value: two grids with the same pairs have the same cells.
pub fn identity(grid: &Grid) -> Vec<(String, String)> {
    folder::whole_metadata(grid)
}

/// Runs all cells that the grid has with so many workers (as many as CPUs when absent) and leaves no file: the rows of [`run`], in the same
/// order.
///
/// # Errors
/// A cell that is stuck, or an interrupt.
pub fn in_memory(
    grid: &Grid,
    workers: Option<u32>,
    session: &Session<'_>,
) -> Result<RecordBatch, Error> {
    let numbers: Vec<usize> = (0..grid.cells.len()).collect();
    let mut batches: Vec<Option<RecordBatch>> = vec![None; numbers.len()];
    each_cell(
        grid,
        &numbers,
        "sweeping",
        workers,
        session,
        |number, rows| {
            batches[number] = Some(rows);
            Ok(())
        },
    )?;
    let batches = batches.iter().flatten();
    Ok(concat_batches(&rows::columns(grid), batches).map_err(anyhow::Error::from)?)
}

/// A sweep that is complete.
pub struct Swept {
    /// Cells that were run now; the others were there.
    pub run: usize,
    /// A row for each VM of each cell, in the order of the grid; columns: see the file.
    pub rows: RecordBatch,
    /// The file of all cells.
    pub file: PathBuf,
}

/// Runs these cells of the grid; `keep` is called with each one's number and rows, as they are done.
fn each_cell(
    grid: &Grid,
    numbers: &[usize],
    what: &str,
    workers: Option<u32>,
    session: &Session<'_>,
    mut keep: impl FnMut(usize, RecordBatch) -> Result<(), Error>,
) -> Result<(), Error> {
    let (progress, interrupt) = (session.progress, &session.interrupt);
    progress.begin(what, Work::EvenSteps(numbers.len()));
    let schema = rows::columns(grid);
    let mut done = 0;
    let finished = pool::each(
        numbers,
        pool::workers(workers),
        interrupt,
        |number| {
            let cell = &grid.cells[*number];
            let outcome = pool::run_one(&cell.scenario, interrupt)?;
            rows::rows(&schema, grid.first + number, cell, &outcome)
        },
        |place, rows| {
            keep(numbers[place], rows)?;
            done += 1;
            progress.done(done);
            Ok(())
        },
    );
    progress.end();
    finished
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
    let what = format!("sweeping ({} kept)", grid.cells.len() - missing.len());
    each_cell(grid, &missing, &what, workers, session, |number, rows| {
        folder.keep(grid, number, rows)
    })?;
    Ok(Swept {
        run: missing.len(),
        rows: folder.merge(grid)?,
        file: folder.merged(),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use unspin_scenario::{Overrides, ScenarioText};

    use super::*;

    const TEXT: &str = "duration = \"4ms\"\n[[vm]]\ncount = 2\nvcpus = 2\nlock = \"ticket\"\nhold = { exponential = \"2us\" }\n";

    fn grid(set: &[&str], seeds: u32) -> Result<Grid, Error> {
        let text = ScenarioText::new(TEXT, "s.toml", "s");
        let set: Vec<String> = set.iter().map(|set| (*set).to_owned()).collect();
        Grid::of_words(
            &text,
            &Overrides::default(),
            &set,
            seeds,
            &AtomicBool::new(false),
        )
    }

    #[test]
    fn without_a_folder_the_rows_are_the_same() {
        let grid = grid(&["vm.vcpus=1..3", "seed=7"], 2).expect("a grid");
        let session = Session::quiet();
        let rows = in_memory(&grid, Some(3), &session).expect("it runs");
        assert_eq!(rows.num_rows(), 3 * 2 * 2);
        let folder = tempfile::tempdir().expect("a folder");
        let swept = run(&grid, folder.path(), Some(1), &session).expect("it runs");
        // What Parquet says of the schema beside is its own.
        assert_eq!(rows.columns(), swept.rows.columns());
        assert_eq!(rows.schema().fields(), swept.rows.schema().fields());
    }

    #[test]
    fn many_values_are_described_shortly_and_told_apart() {
        let short = grid(&["vm.vcpus=1..3"], 2).expect("a grid");
        assert_eq!(short.describe(), "vm.vcpus=1|2|3 seeds=2");
        let (text, stop) = (
            ScenarioText::new(TEXT, "s.toml", "s"),
            AtomicBool::new(false),
        );
        let long = |last: u32| {
            let axes = vec![parse_axis(&format!("seed=1..{last}")).expect("an axis")];
            Grid::part(&text, &Overrides::default(), axes, 1, 0..0, &stop).expect("a grid")
        };
        let (one, other) = (long(100_000), long(99_999));
        assert!(one.describe().len() < 1_000 && one.describe().starts_with("seed=1|2|3|"));
        assert_ne!(one.describe(), other.describe());
    }

    #[test]
    fn parts_put_together_are_the_whole() {
        let (text, stop) = (
            ScenarioText::new(TEXT, "s.toml", "s"),
            AtomicBool::new(false),
        );
        let plain = Overrides::default();
        let axes = vec![parse_axis("vm.vcpus=1..3").expect("an axis")];
        let part = |numbers| Grid::part(&text, &plain, axes.clone(), 2, numbers, &stop);
        let session = Session::quiet();
        let whole = grid(&["vm.vcpus=1..3"], 2).expect("a grid");
        let rows = in_memory(&whole, Some(1), &session).expect("it runs");
        // The second ends in the middle of a point's seeds.
        let parts = [0..1, 1..5, 5..6, 6..6].map(|numbers| part(numbers).expect("a part"));
        assert!(parts.iter().all(|part| identity(part) == identity(&whole)));
        assert!(parts.iter().all(|part| part.len_of_whole() == 6));
        let of_parts = parts.map(|part| in_memory(&part, Some(1), &session).expect("it runs"));
        let together = concat_batches(&rows.schema(), &of_parts).expect("the same columns");
        assert_eq!(together, rows);
        let refused = part(5..7).expect_err("there are six");
        assert!(refused.to_string().contains("has 6 cells"), "{refused}");
    }

    #[test]
    fn an_interrupt_ends_it() {
        let session = Session::quiet();
        session.interrupt.store(true, Ordering::Relaxed);
        let ended = in_memory(&grid(&[], 2).expect("a grid"), Some(1), &session);
        assert!(matches!(ended, Err(Error::Interrupted)), "{ended:?}");
        let (text, plain) = (ScenarioText::new(TEXT, "s.toml", "s"), Overrides::default());
        let ended = Grid::new(&text, &plain, Vec::new(), 1, false, &session.interrupt);
        assert!(matches!(ended, Err(Error::Interrupted)), "{ended:?}");
    }

    #[test]
    fn what_the_lab_lacks_is_named_by_its_key() {
        let refused = grid(&["lab.candidates=strict,strikt"], 1).expect_err("there is none");
        let text = refused.to_string();
        assert!(
            text.starts_with("cell lab.candidates=strikt: lab.candidates: there is no `strikt`"),
            "{text}"
        );
        assert!(
            matches!(&refused, Error::Lab { error, .. } if error.key() == "lab.candidates"),
            "{refused:?}"
        );
    }
}

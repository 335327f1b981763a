// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rows that are printed of a sweep: the sweep, and each of its cells, its VMs together.

use std::time::Duration;

use arrow_array::{RecordBatch, cast::AsArray, types::Int64Type};
use unspin_report::row;

use super::{Grid, Swept};

row! {
    "sweep", ["lab sweep"];
    /// A sweep as a whole.
    pub struct SweepRow {
        /// The scenario's name.
        scenario: String,
        /// SHA-256 of its canonical text.
        scenario_sha256: String,
        /// All axes with their values, and the number of seeds.
        grid: String,
        /// Cells.
        cells: usize = ("cells", Count),
        /// Of them, those that were run now.
        run: usize = ("run now", Count),
        /// Those that were there.
        kept: usize = ("kept", Count),
        /// Rows of the file: one for each VM of each cell.
        rows: usize = ("rows", Count),
        /// Time that it took; ns.
        wall_ns: f64 = ("took", Nanoseconds),
        /// The file, or a cluster's folder of files.
        file: String = ("file", Text),
    }
}

row! {
    "cell", ["lab sweep"];
    /// One cell of a sweep, its VMs together.
    pub struct CellRow {
        /// Its number in the grid.
        cell: u64 = ("cell", Count),
        /// Its seed.
        seed: u64 = ("seed", Count),
        /// What it sets: `key=value key=value`.
        set: Option<String> = ("set", Text),
        /// Iterations per second in the window.
        operations_per_second: Option<f64> = ("ops/s", Count),
        /// Pause-loop exits in the whole run.
        pause_exits: u64 = ("PLE exits", Count),
        /// Times a vCPU was taken off its pCPU while it wanted to go on.
        preemptions: u64 = ("preempted", Count),
    }
}

impl SweepRow {
    pub(crate) fn of(
        grid: &Grid,
        (run, kept, rows): (usize, usize, usize),
        wall: Duration,
        file: String,
    ) -> SweepRow {
        SweepRow {
            scenario: grid.base.name.clone(),
            scenario_sha256: grid.base.hash(),
            grid: grid.describe().to_owned(),
            cells: grid.len_of_whole(),
            run,
            kept,
            rows,
            wall_ns: wall.as_nanos() as f64,
            file,
        }
    }
}

impl Swept {
    /// The sweep as a whole, which took that long.
    pub fn sweep_row(&self, grid: &Grid, wall: Duration) -> SweepRow {
        let kept = grid.cells.len() - self.run;
        let file = self.file.display().to_string();
        SweepRow::of(grid, (self.run, kept, self.rows.num_rows()), wall, file)
    }

    /// A row for each cell.
    pub fn cell_rows(&self, grid: &Grid) -> Vec<CellRow> {
        cell_rows(grid, &self.rows)
    }
}

/// A row for each cell of these rows of a sweep.
pub fn cell_rows(grid: &Grid, of: &RecordBatch) -> Vec<CellRow> {
    let column = |name: &str| {
        let found = of.column_by_name(name);
        found.map_or(&[][..], |column| {
            column.as_primitive::<Int64Type>().values()
        })
    };
    let numbers = column("cell");
    let (mut rows, mut begin) = (Vec::new(), 0);
    while begin < numbers.len() {
        let same = |number: &&i64| **number == numbers[begin];
        let end = begin + numbers[begin..].iter().take_while(same).count();
        let sum = |name| -> i64 { column(name)[begin..end].iter().sum() };
        let cell = usize::try_from(numbers[begin]).ok();
        let values = cell.and_then(|cell| grid.cells.get(cell));
        let window_ns = column("window_ns")[begin];
        rows.push(CellRow {
            cell: numbers[begin] as u64,
            seed: column("seed")[begin] as u64,
            set: values.map(|cell| grid.name(&cell.values)),
            operations_per_second: (window_ns > 0)
                .then(|| sum("operations") as f64 * 1e9 / window_ns as f64),
            pause_exits: sum("pause_exits") as u64,
            preemptions: sum("preemptions") as u64,
        });
        begin = end;
    }
    rows
}

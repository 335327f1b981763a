// SPDX-License-Identifier: MIT OR Apache-2.0
//! A sweep on a Ray cluster (`unspin lab sweep --ray`), which Python's `unspin_lab` submits.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use unspin_scenario::{Overrides, ScenarioText};

use super::{Varied, call};
use crate::{
    Error, Session,
    sweep::{Grid, SweepRow, axes_of},
};

#[derive(Serialize)]
struct Arguments<'a> {
    seeds: u32,
    address: &'a str,
    out: &'a str,
}

/// What Python counted.
#[derive(Deserialize)]
struct Counted {
    folder: String,
    run: usize,
    kept: usize,
    rows: usize,
    left: Vec<String>,
}

/// A sweep of a cluster that is complete.
pub struct ClusterSwept {
    grid: Grid,
    counted: Counted,
}

impl ClusterSwept {
    /// The sweep as a whole, which took that long.
    pub fn sweep_row(&self, wall: Duration) -> SweepRow {
        let of = &self.counted;
        SweepRow::of(
            &self.grid,
            (of.run, of.kept, of.rows),
            wall,
            of.folder.clone(),
        )
    }

    /// What else there is to say: files that killed workers left half-written.
    pub fn notes(&self) -> Option<String> {
        let left = &self.counted.left;
        let what = "Killed workers left half-written files, which nothing reads";
        (!left.is_empty()).then(|| format!("{what}: {}", left.join(", ")))
    }
}

/// Runs what is missing in the folder or at the URL `out` on the cluster at that address; the grid as of [`Grid::of_words`].
///
/// # Errors
/// Those of the grid; no Python with `unspin_lab` of this build and Ray; no cluster, a folder of another sweep; a cell that is stuck or whose workers keep dying.
/// Files that are whole stay.
pub fn on_cluster(
    text: &ScenarioText,
    overrides: &Overrides,
    set: &[String],
    seeds: u32,
    (address, out): (&str, &str),
    session: &Session<'_>,
) -> Result<ClusterSwept, Error> {
    let (plain, axes) = axes_of(overrides, set)?;
    let grid = Grid::part(text, &plain, axes, seeds, 0..0, &session.interrupt)?;
    let varied = Varied::new(text, &plain, &grid.axes);
    let arguments = Arguments {
        seeds,
        address,
        out,
    };
    let work = ("sweeping on the cluster", grid.len_of_whole());
    let counted = call("sweep", &varied, arguments, work, session)?;
    Ok(ClusterSwept { grid, counted })
}

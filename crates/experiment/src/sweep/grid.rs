// SPDX-License-Identifier: MIT OR Apache-2.0
//! The grid of `unspin lab sweep`: `--set key=a..b[..step]` and `--set key=x,y,z`, every value with every other.

use std::sync::atomic::{AtomicBool, Ordering};

use unspin_lab::Lab;
use unspin_scenario::{Overrides, Scenario, ScenarioText, limits::SEED_MAX};

use super::axis::{Axis, parse_axis};
use crate::Error;

/// Most cells of a grid: their files have six digits.
const CELLS_MAX: usize = 1_000_000;

/// A cell: one run.
#[derive(Clone, Debug)]
pub struct GridCell {
    /// One value for each axis.
    pub values: Vec<String>,
    /// With these values in it, and its seed.
    pub scenario: Scenario,
}

/// All cells, checked.
#[derive(Clone, Debug)]
pub struct Grid {
    /// The scenario without the axes.
    pub base: Scenario,
    /// In the order of the command line; the last one changes fastest but for the seeds.
    pub axes: Vec<Axis>,
    /// Seeds of each point.
    pub seeds: u32,
    /// In order.
    pub cells: Vec<GridCell>,
}

impl Grid {
    /// The grid of `lab sweep`: `overrides` hold for all cells, `set` are `--set`'s words, of which those with several values are
    /// axes. Its cells are kept. `interrupt`: see [`Grid::new`].
    ///
    /// # Errors
    /// A range that cannot be understood, and those of [`Grid::new`].
    pub fn of_words(
        text: &ScenarioText,
        overrides: &Overrides,
        set: &[String],
        seeds: u32,
        interrupt: &AtomicBool,
    ) -> Result<Grid, Error> {
        let mut plain = overrides.clone();
        let mut axes: Vec<Axis> = Vec::new();
        for given in set {
            let refused = |why: String| Error::Usage(format!("--set {given}: {why}"));
            let axis = parse_axis(given).map_err(refused)?;
            if axes.iter().any(|other| other.key == axis.key) {
                return Err(refused("this key has values already".to_owned()));
            }
            match &axis.values[..] {
                [_] => plain
                    .set(given)
                    .map_err(|error| Error::Usage(error.to_string()))?,
                _ => axes.push(axis),
            }
        }
        Grid::new(text, &plain, axes, seeds, true, interrupt)
    }

    /// Every value of each axis with every value of the others, each from so many seeds; every cell is checked. `kept`: whether
    /// cells are kept in a folder, so that somebody may go on with them later. `interrupt`: set from anywhere, ends it early.
    ///
    /// # Errors
    /// A cell that cannot run, too many cells, a user policy where cells are kept, an interrupt: nothing has run.
    pub fn new(
        text: &ScenarioText,
        plain: &Overrides,
        axes: Vec<Axis>,
        seeds: u32,
        kept: bool,
        interrupt: &AtomicBool,
    ) -> Result<Grid, Error> {
        let base = text.scenario(plain)?;
        if kept {
            refuse_user_policy(&base)?;
        }
        Lab::new(&base).map_err(|error| Error::Lab {
            of: text.file().to_owned(),
            error,
        })?;
        let points = axes.iter().try_fold(1usize, |product, axis| {
            product.checked_mul(axis.values.len())
        });
        let cells = points.and_then(|points| points.checked_mul(seeds as usize));
        let Some(points) = points.filter(|_| cells.is_some_and(|cells| cells <= CELLS_MAX)) else {
            return Err(Error::Usage(format!(
                "the grid has more than {CELLS_MAX} cells; take fewer values or seeds"
            )));
        };
        let mut grid = Grid {
            base,
            axes,
            seeds,
            cells: Vec::new(),
        };
        for point in 0..points {
            if interrupt.load(Ordering::Relaxed) {
                return Err(Error::Interrupted);
            }
            grid.add_point(text, plain, point, kept)?;
        }
        Ok(grid)
    }

    /// The cells of one point, one for each seed.
    fn add_point(
        &mut self,
        text: &ScenarioText,
        plain: &Overrides,
        point: usize,
        kept: bool,
    ) -> Result<(), Error> {
        let mut rest = point;
        let mut values: Vec<String> = Vec::new();
        for axis in self.axes.iter().rev() {
            values.push(axis.values[rest % axis.values.len()].clone());
            rest /= axis.values.len();
        }
        values.reverse();
        let mut overrides = plain.clone();
        for (axis, value) in self.axes.iter().zip(&values) {
            let set = format!("{}={value}", axis.key);
            overrides
                .set(&set)
                .map_err(|error| Error::Usage(error.to_string()))?;
        }
        let scenario = text.scenario(&overrides)?;
        if kept {
            refuse_user_policy(&scenario)?;
        }
        Lab::new(&scenario).map_err(|error| Error::Lab {
            of: format!("cell {}", self.name(&values)),
            error,
        })?;
        if scenario.seed > SEED_MAX - u64::from(self.seeds) {
            let (seeds, seed) = (self.seeds, scenario.seed);
            return Err(Error::Usage(format!(
                "there are no {seeds} seeds from {seed} on"
            )));
        }
        for seed in 0..u64::from(self.seeds) {
            let mut scenario = scenario.clone();
            scenario.seed += seed;
            let values = values.clone();
            self.cells.push(GridCell { values, scenario });
        }
        Ok(())
    }

    /// `key=value key=value`.
    pub fn name(&self, values: &[String]) -> String {
        let pairs = self.axes.iter().zip(values);
        let words: Vec<String> = pairs
            .map(|(axis, value)| format!("{}={value}", axis.key))
            .collect();
        words.join(" ")
    }

    /// All axes and the number of seeds, in one line.
    pub fn describe(&self) -> String {
        let mut words: Vec<String> = self
            .axes
            .iter()
            .map(|axis| format!("{}={}", axis.key, axis.values.join("|")))
            .collect();
        words.push(format!("seeds={}", self.seeds));
        words.join(" ")
    }
}

/// A file may say something else when the sweep is gone on with.
fn refuse_user_policy(scenario: &Scenario) -> Result<(), Error> {
    let policy = scenario.lab.as_ref().and_then(|lab| lab.policy.as_deref());
    let own = policy.is_some_and(|policy| policy.split(',').any(|word| word.ends_with(".c")));
    match own {
        false => Ok(()),
        true => Err(Error::Usage(
            "a sweep may be gone on with later, when a file with a user policy says something else: `lab compare` \
             takes such files"
                .to_owned(),
        )),
    }
}

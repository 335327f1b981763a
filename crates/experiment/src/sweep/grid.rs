// SPDX-License-Identifier: MIT OR Apache-2.0
//! The grid of `unspin lab sweep`: `--set key=a..b[..step]` and `--set key=x,y,z`, every value with every other.

use std::{
    ops::Range,
    sync::atomic::{AtomicBool, Ordering},
};

use sha2::{Digest as _, Sha256};
use unspin_lab::Lab;
use unspin_scenario::{Overrides, Scenario, ScenarioText, limits::SEED_MAX};

use super::axis::{Axis, parse_axis};
use crate::Error;

/// Most cells of a grid on one machine: their files have six digits.
const CELLS_MAX: usize = 1_000_000;
/// Most cells of a grid of which parts are run ([`Grid::part`]): the names of their files have nine digits.
const PARTED_CELLS_MAX: usize = 1_000_000_000;

/// Most bytes of [`Grid::describe`], which stands in each file: an axis may have 100,000 values.
const DESCRIBED_MAX_BYTES: usize = 4_096;

/// A cell: one run.
#[derive(Clone, Debug)]
pub struct GridCell {
    /// One value for each axis.
    pub values: Vec<String>,
    /// With these values in it, and its seed.
    pub scenario: Scenario,
}

/// All cells, or those of a part, checked.
#[derive(Clone, Debug)]
pub struct Grid {
    /// The scenario without the axes.
    pub base: Scenario,
    /// In the order of the command line; the last one changes fastest but for the seeds.
    pub axes: Vec<Axis>,
    /// Seeds of each point.
    pub seeds: u32,
    /// The number of the first of `cells`: 0, but for a part.
    pub first: usize,
    /// In order.
    pub cells: Vec<GridCell>,
    described: String,
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
        let (plain, axes) = axes_of(overrides, set)?;
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
        let cells = cells_of(&axes, seeds, CELLS_MAX)?;
        let mut grid = Grid::without_cells(text, plain, axes, seeds, kept)?;
        grid.add_cells(text, plain, 0..cells, kept, interrupt)?;
        Ok(grid)
    }

    /// The same cells, of which only those with these numbers are there and were checked, for whoever runs a grid in parts. They are
    /// kept. An empty range is for what they have in common.
    ///
    /// # Errors
    /// As of [`Grid::new`], and numbers that the grid does not have.
    pub fn part(
        text: &ScenarioText,
        plain: &Overrides,
        axes: Vec<Axis>,
        seeds: u32,
        numbers: Range<usize>,
        interrupt: &AtomicBool,
    ) -> Result<Grid, Error> {
        let cells = cells_of(&axes, seeds, PARTED_CELLS_MAX)?;
        if numbers.end > cells {
            let Range { start, end } = numbers;
            return Err(Error::Usage(format!(
                "the grid has {cells} cells, not those from {start} to {end}"
            )));
        }
        let mut grid = Grid::without_cells(text, plain, axes, seeds, true)?;
        grid.first = numbers.start;
        grid.add_cells(text, plain, numbers, true, interrupt)?;
        Ok(grid)
    }

    /// How many cells the whole grid has.
    pub fn len_of_whole(&self) -> usize {
        let points = self.axes.iter().map(|axis| axis.values.len());
        points.product::<usize>() * self.seeds as usize
    }

    fn without_cells(
        text: &ScenarioText,
        plain: &Overrides,
        axes: Vec<Axis>,
        seeds: u32,
        kept: bool,
    ) -> Result<Grid, Error> {
        let base = text.scenario(plain)?;
        if kept {
            refuse_user_policy(&base)?;
        }
        Lab::new(&base).map_err(|error| Error::Lab {
            of: text.file().to_owned(),
            error,
        })?;
        Ok(Grid {
            described: described(&axes, seeds),
            base,
            axes,
            seeds,
            first: 0,
            cells: Vec::new(),
        })
    }

    /// The cells with these numbers.
    fn add_cells(
        &mut self,
        text: &ScenarioText,
        plain: &Overrides,
        numbers: Range<usize>,
        kept: bool,
        interrupt: &AtomicBool,
    ) -> Result<(), Error> {
        let seeds = self.seeds as usize;
        for point in numbers.start / seeds..numbers.end.div_ceil(seeds) {
            if interrupt.load(Ordering::Relaxed) {
                return Err(Error::Interrupted);
            }
            self.add_point(text, plain, point, &numbers, kept)?;
        }
        Ok(())
    }

    /// The cells of one point, one for each seed, but for those without one of these numbers.
    fn add_point(
        &mut self,
        text: &ScenarioText,
        plain: &Overrides,
        point: usize,
        numbers: &Range<usize>,
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
            if !numbers.contains(&(point * self.seeds as usize + seed as usize)) {
                continue;
            }
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

    /// All axes and the number of seeds, in one line; of a long one its beginning and its SHA-256, which tell it from any other.
    pub fn describe(&self) -> &str {
        &self.described
    }
}

/// `--set`'s words: those with one value are overrides, those with several axes.
pub(crate) fn axes_of(
    overrides: &Overrides,
    set: &[String],
) -> Result<(Overrides, Vec<Axis>), Error> {
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
    Ok((plain, axes))
}

/// See [`Grid::describe`].
fn described(axes: &[Axis], seeds: u32) -> String {
    let of_axes = axes.iter();
    let mut words: Vec<String> = of_axes
        .map(|axis| format!("{}={}", axis.key, axis.values.join("|")))
        .collect();
    words.push(format!("seeds={seeds}"));
    let whole = words.join(" ");
    if whole.len() <= DESCRIBED_MAX_BYTES {
        return whole;
    }
    let begin: String = whole.chars().take(DESCRIBED_MAX_BYTES / 8).collect();
    let hash = Sha256::digest(whole.as_bytes());
    format!("{begin}... ({} bytes, SHA-256 {hash:x})", whole.len())
}

/// How many cells every value of each axis with every value of the others makes; at least 1.
fn cells_of(axes: &[Axis], seeds: u32, most: usize) -> Result<usize, Error> {
    let mut factors = axes.iter().map(|axis| axis.values.len());
    let points = factors.try_fold(1usize, usize::checked_mul);
    let cells = points.and_then(|points| points.checked_mul(seeds as usize));
    cells.filter(|cells| *cells <= most).ok_or_else(|| {
        Error::Usage(format!(
            "the grid has more than {most} cells; take fewer values or seeds"
        ))
    })
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

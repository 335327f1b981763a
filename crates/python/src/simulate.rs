// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs, comparisons and sweeps, as `unspin lab run`, `compare` and `sweep` do them.

use std::path::PathBuf;

use pyo3::prelude::*;
use unspin_experiment::{
    lab::{self, Cell},
    lab_run::{self, Keep},
    sweep as sweeps,
    sweep::{Axis, Grid, parse_axis},
};

use crate::{
    error::usage,
    session::work,
    source::{Source, overrides},
    table::Table,
};

/// Tables by name.
type Tables = Vec<(&'static str, Table)>;

/// One run: the canonical scenario, and its tables.
#[pyfunction]
pub fn run(
    py: Python<'_>,
    source: &Source,
    settings: Vec<String>,
    trace: Option<PathBuf>,
    record: Option<PathBuf>,
) -> PyResult<(String, Tables)> {
    let overrides = overrides(&settings)?;
    let keep = match (&trace, &record) {
        (Some(_), Some(_)) => return Err(usage("trace and record exclude each other")),
        (Some(file), None) => Keep::Trace(file),
        (None, Some(folder)) => Keep::Recording(folder),
        (None, None) => Keep::Nothing,
    };
    let (scenario, lab, ran) = work(py, source.file(), None, |session| {
        let (scenario, lab) = source.load(&overrides)?;
        let ran = lab_run::run(&scenario, &lab, keep, session)?;
        Ok((scenario, lab, ran))
    })?;
    let tables = vec![
        ("run", Table::of([ran.run_row(&scenario, &lab)])?),
        ("events", Table::of(ran.event_rows())?),
        ("vms", Table::of(ran.vm_rows(&scenario))?),
        ("vcpus", Table::of(ran.vcpu_rows())?),
        ("cpus", Table::of(ran.cpu_rows())?),
    ];
    Ok((scenario.to_toml(), tables))
}

/// A comparison: its tables, and sentences about them.
#[pyfunction]
pub fn compare(
    py: Python<'_>,
    source: &Source,
    settings: Vec<String>,
    policies: Vec<String>,
    seeds: u32,
    workers: Option<u32>,
    progress: Option<Py<PyAny>>,
) -> PyResult<(Tables, Vec<String>)> {
    let overrides = overrides(&settings)?;
    let (cell, compared) = work(py, source.file(), progress.as_ref(), |session| {
        let cell = Cell::of(&source.text, &overrides, &policies, seeds)?;
        let compared = lab::compare(&cell, workers, session)?;
        Ok((cell, compared))
    })?;
    let tables = vec![
        ("policies", Table::of(compared.policy_rows())?),
        ("samples", Table::of(compared.seed_rows())?),
    ];
    Ok((tables, compared.notes(&cell)))
}

/// One axis of a sweep: a key with its values, each as a setting has it; or with one text that stands for several, as `lab sweep
/// --set` takes it.
#[derive(FromPyObject)]
pub enum Words {
    Several(String, Vec<String>),
    Range(String, String),
}

impl Words {
    fn axis(self) -> PyResult<Axis> {
        let (key, axis) = match self {
            Words::Several(key, values) => {
                let axis = Axis::new(&key, values);
                (key, axis)
            }
            Words::Range(key, text) => {
                let axis = parse_axis(&format!("{key}={text}"));
                (key, axis)
            }
        };
        let axis = axis.map_err(|error| usage(&format!("grid, {key}: {error}")))?;
        // An unknown key is refused here, by its name.
        overrides(&[format!("{key}={}", axis.values[0])])?;
        Ok(axis)
    }
}

/// Several values, or one text that stands for several.
#[derive(FromPyObject)]
pub enum Values {
    Several(Vec<String>),
    Range(String),
}

/// The values of a key, checked, of a list or of one text as `lab sweep --set` takes it.
#[pyfunction]
pub fn axis_values(key: String, values: Values) -> PyResult<Vec<String>> {
    let words = match values {
        Values::Several(values) => Words::Several(key, values),
        Values::Range(text) => Words::Range(key, text),
    };
    Ok(words.axis()?.values)
}

/// The axes, each checked.
fn axes_of(axes: Vec<Words>) -> PyResult<Vec<Axis>> {
    axes.into_iter().map(Words::axis).collect()
}

/// How many cells a sweep has that is run in parts, and what the files of its parts say of it: pairs of a key and a value.
#[pyfunction]
pub fn sweep_plan(
    py: Python<'_>,
    source: &Source,
    settings: Vec<String>,
    axes: Vec<Words>,
    seeds: u32,
) -> PyResult<(usize, Vec<(String, String)>)> {
    let (plain, axes) = (overrides(&settings)?, axes_of(axes)?);
    work(py, source.file(), None, |session| {
        let stop = &session.interrupt;
        let grid = Grid::part(&source.text, &plain, axes, seeds, 0..0, stop)?;
        Ok((grid.len_of_whole(), sweeps::identity(&grid)))
    })
}

/// The rows of those of its cells that have the numbers from `first` to before `end`, run one after another.
#[pyfunction]
pub fn sweep_part(
    py: Python<'_>,
    source: &Source,
    settings: Vec<String>,
    axes: Vec<Words>,
    seeds: u32,
    first: usize,
    end: usize,
) -> PyResult<Table> {
    let (plain, axes) = (overrides(&settings)?, axes_of(axes)?);
    let rows = work(py, source.file(), None, |session| {
        let stop = &session.interrupt;
        let grid = Grid::part(&source.text, &plain, axes, seeds, first..end, stop)?;
        sweeps::in_memory(&grid, Some(1), session)
    })?;
    Ok(Table::of_batch(rows))
}

/// The file of a sweep, how many of its cells were run now, and how many were there.
type Kept = (PathBuf, usize, usize);

/// A sweep: its tables; and its file, how many cells were run now and how many were there, if its rows are kept in the folder
/// `out`.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "keywords of a Python function")]
pub fn sweep(
    py: Python<'_>,
    source: &Source,
    settings: Vec<String>,
    axes: Vec<Words>,
    seeds: u32,
    workers: Option<u32>,
    out: Option<PathBuf>,
    progress: Option<Py<PyAny>>,
) -> PyResult<(Tables, Option<Kept>)> {
    let plain = overrides(&settings)?;
    let axes = axes_of(axes)?;
    let swept = work(py, source.file(), progress.as_ref(), |session| {
        let stop = &session.interrupt;
        let grid = Grid::new(&source.text, &plain, axes, seeds, out.is_some(), stop)?;
        let (rows, kept) = match &out {
            None => (sweeps::in_memory(&grid, workers, session)?, None),
            Some(out) => {
                let swept = sweeps::run(&grid, out, workers, session)?;
                let kept = grid.cells.len() - swept.run;
                (swept.rows, Some((swept.file, swept.run, kept)))
            }
        };
        Ok((sweeps::cell_rows(&grid, &rows), rows, kept))
    });
    let (cells, rows, kept) = swept?;
    let tables = vec![
        ("rows", Table::of_batch(rows)),
        ("cells", Table::of(cells)?),
    ];
    Ok((tables, kept))
}

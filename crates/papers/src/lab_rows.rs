// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the lab measured for the papers: `benchmarks/papers-lab/rows.jsonl`, a row for each group of VMs of each column of each
//! run, with a value for each seed.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};

use crate::{
    claim::Unit,
    code_hash::code_hash,
    measured::{Bounded, Measured, mean, mean_of, ratio},
    runs::Run,
    source::{LabSource, Pairs},
};

/// Where they are, from the top of the tree.
pub const FILE: &str = "benchmarks/papers-lab/rows.jsonl";

/// A row.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct LabRow {
    /// The run.
    pub run: String,
    /// The column.
    pub column: String,
    /// Which `[[vm]]` of the scenario, from 0.
    pub group: usize,
    /// [`Run::settings_hash`] of the column.
    pub settings_sha256: String,
    /// Of the code that it ran.
    pub code_hash: String,
    /// The seeds.
    pub seeds: Vec<u64>,
    /// A value for each seed, by what is measured; null where a run has no such value.
    pub measures: BTreeMap<String, Vec<Option<f64>>>,
}

impl LabRow {
    /// The mean of a measure over the seeds; none where a seed has no such value.
    pub fn mean(&self, measure: &str) -> Option<f64> {
        let values: Option<Vec<f64>> = self.measures.get(measure)?.iter().copied().collect();
        Some(mean(&values?)?.0)
    }
}

/// Why a column is to be run again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Age {
    /// It was measured with this scenario and this code.
    Fresh,
    /// The scenario, or the number of seeds, is another one now.
    OtherScenario,
    /// The lab, a policy or a lock is another one now.
    OtherCode,
    /// It never ran.
    Missing,
}

/// All rows.
#[derive(Debug)]
pub struct LabRows {
    path: PathBuf,
    rows: BTreeMap<(String, String, usize), LabRow>,
    code_hash: String,
}

impl LabRows {
    /// Reads them; none where there is no file.
    ///
    /// # Errors
    /// A file that cannot be read, a row that is none, sources that cannot be read.
    pub fn read(root: &Path) -> anyhow::Result<LabRows> {
        let path = root.join(FILE);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error).with_context(|| format!("cannot read {FILE}")),
        };
        let mut rows = BTreeMap::new();
        for (number, line) in text.lines().enumerate() {
            let row: LabRow =
                serde_json::from_str(line).with_context(|| format!("{FILE}:{}", number + 1))?;
            rows.insert((row.run.clone(), row.column.clone(), row.group), row);
        }
        Ok(LabRows {
            path,
            rows,
            code_hash: code_hash(root)?,
        })
    }

    /// Of the code that runs now.
    pub fn code_hash(&self) -> &str {
        &self.code_hash
    }

    /// Whether a column of a run is to be run again.
    ///
    /// # Errors
    /// As [`Run::scenario`].
    pub fn age(&self, root: &Path, run: &Run, column: &str) -> anyhow::Result<Age> {
        let scenario = run.scenario(root, column)?;
        let groups = 0..scenario.vms.len();
        let rows: Option<Vec<&LabRow>> = groups
            .map(|group| self.get(&run.name, column, group))
            .collect();
        let Some(rows) = rows else {
            return Ok(Age::Missing);
        };
        let hash = run.settings_hash(root, column)?;
        let same = |row: &&LabRow| {
            row.settings_sha256 == hash
                && row.seeds.len() == run.seeds as usize
                && (!run.outcomes || row.measures.contains_key(OUTCOMES[0]))
        };
        Ok(if !rows.iter().all(same) {
            Age::OtherScenario
        } else if rows.iter().any(|row| row.code_hash != self.code_hash) {
            Age::OtherCode
        } else {
            Age::Fresh
        })
    }

    /// Puts the rows of a column in the place of those before, and writes the file: whatever ends this later, they stay.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn put(&mut self, rows: impl IntoIterator<Item = LabRow>) -> anyhow::Result<()> {
        for row in rows {
            self.rows
                .insert((row.run.clone(), row.column.clone(), row.group), row);
        }
        self.write()
    }

    /// Leaves out rows of runs and columns that are no more.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn keep(&mut self, is_there: impl Fn(&str, &str) -> bool) -> anyhow::Result<()> {
        let before = self.rows.len();
        self.rows
            .retain(|(run, column, _), _| is_there(run, column));
        match self.rows.len() == before {
            true => Ok(()),
            false => self.write(),
        }
    }

    fn write(&self) -> anyhow::Result<()> {
        let mut text = String::new();
        for row in self.rows.values() {
            text.push_str(&serde_json::to_string(row)?);
            text.push('\n');
        }
        let context = || format!("cannot write {}", self.path.display());
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder).with_context(context)?;
        }
        let beside = self.path.with_extension("new");
        fs::write(&beside, text).with_context(context)?;
        fs::rename(&beside, &self.path).with_context(context)
    }

    /// A row.
    pub fn get(&self, run: &str, column: &str, group: usize) -> Option<&LabRow> {
        self.rows.get(&(run.to_owned(), column.to_owned(), group))
    }

    /// Its line in the file as it is written, from 1; 0 of a row that is not there.
    pub fn line(&self, run: &str, column: &str, group: usize) -> usize {
        let key = (run.to_owned(), column.to_owned(), group);
        let place = self.rows.keys().position(|known| *known == key);
        place.map_or(0, |place| place + 1)
    }

    /// Every run and column that has rows.
    pub fn columns(&self) -> impl Iterator<Item = (&str, &str)> {
        let keys = self.rows.keys();
        keys.map(|(run, column, _)| (run.as_str(), column.as_str()))
    }

    /// What is measured of a column, by seed; none where it was not run, and where a seed has no such value.
    ///
    /// # Errors
    /// A measure that rows do not have.
    fn samples(
        &self,
        run: &str,
        column: &str,
        source: &LabSource,
    ) -> anyhow::Result<Option<Vec<f64>>> {
        let Some(row) = self.get(run, column, source.group) else {
            return Ok(None);
        };
        match row.measures.get(&source.measure) {
            Some(values) => Ok(values.iter().copied().collect()),
            None => {
                let known: Vec<&str> = row.measures.keys().map(String::as_str).collect();
                bail!(
                    "{run}: no measure {:?}; there are {}",
                    source.measure,
                    known.join(", ")
                )
            }
        }
    }

    /// The figure of a source; none where a run of it was never run.
    ///
    /// # Errors
    /// A source that asks for what rows do not have.
    pub fn figure(&self, source: &LabSource, unit: Unit) -> anyhow::Result<Option<Measured>> {
        let mut values = Vec::new();
        let mut interval = None;
        let mut pairs = u32::MAX;
        for column in &source.columns {
            let mut figures = Vec::new();
            for run in &source.runs {
                let Some((figure, seeds)) = self.one(run, column, source)? else {
                    return Ok(None);
                };
                figures.push(figure);
                pairs = pairs.min(seeds as u32);
            }
            let Some((value, of)) = mean_of(&figures) else {
                return Ok(None);
            };
            let percent = source.over.is_some() && unit == Unit::ChangePercent;
            let change = |value: f64| match percent {
                true => 100.0 * (value - 1.0),
                false => value,
            };
            values.push(change(value));
            interval = of.map(|(low, high)| (change(low), change(high)));
        }
        Ok(Some(Measured {
            interval: interval.filter(|_| values.len() == 1),
            values,
            pairs: Pairs {
                pairs,
                shortfall: false,
            },
            stale: String::new(),
        }))
    }

    /// The figure of one run and column, and of how many seeds it is.
    fn one(
        &self,
        run: &str,
        column: &str,
        source: &LabSource,
    ) -> anyhow::Result<Option<(Bounded, usize)>> {
        let Some(samples) = self.samples(run, column, source)? else {
            return Ok(None);
        };
        let figure = match &source.over {
            None => mean(&samples),
            Some(over) => match self.samples(run, over, source)? {
                None => return Ok(None),
                Some(over) => ratio(&samples, &over),
            },
        };
        Ok(figure.map(|figure| (figure, samples.len())))
    }
}

/// Measures that only runs with `outcomes` have.
pub const OUTCOMES: [&str; 5] = [
    "mismatch_percent",
    "lost_opportunity_percent",
    "overboost_percent",
    "success_percent",
    "in_long_runs_percent",
];

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the figure beside a paper's number comes from, or why there is none.

use anyhow::{bail, ensure};
use serde::Deserialize;
use serde_json::{Map, Value};

/// Where a claim is tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum World {
    /// The simulated host.
    Lab,
    /// Guests under real KVM.
    Kvm,
    /// Threads of one process, without VMs.
    Threads,
}

impl World {
    /// In the order of the columns.
    pub const ALL: [World; 3] = [World::Lab, World::Kvm, World::Threads];

    /// As files and options spell it.
    pub fn name(self) -> &'static str {
        match self {
            World::Lab => "lab",
            World::Kvm => "kvm",
            World::Threads => "threads",
        }
    }
}

/// How many pairs, or seeds, or runs, a figure is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pairs {
    /// The number.
    pub pairs: u32,
    /// Whether it is known to be too small ([`PAIRS_LEAST`]): printed beside the figure.
    pub shortfall: bool,
}

/// Pairs or seeds below which a figure is a shortfall.
pub const PAIRS_LEAST: u32 = 5;

/// A figure of the lab.
#[derive(Clone, Debug, PartialEq)]
pub struct LabSource {
    /// Names of [`crate::runs::Run`]s; of several, the mean of their figures counts.
    pub runs: Vec<String>,
    /// The column; several, in ascending order, for a claim of order.
    pub columns: Vec<String>,
    /// The column that it is divided by, seed by seed.
    pub over: Option<String>,
    /// What is measured: a key of [`crate::lab_rows::LabRow::measures`].
    pub measure: String,
    /// Of the VMs of which `[[vm]]` of the scenario, from 0.
    pub group: usize,
}

/// A figure of a measurement of `benchmarks/`.
#[derive(Clone, Debug, PartialEq)]
pub struct BenchmarkSource {
    /// Its folder.
    pub benchmark: String,
    /// Keys and values of the rows that have it: one row, or several in ascending order for a claim of order.
    pub rows: Vec<Map<String, Value>>,
    /// Which claim of benchmark.toml has it, from 1, for a measurement without rows.
    pub claim: Option<usize>,
    /// The key of the cell.
    pub key: String,
    /// Which part of the cell, where it has several, from 0.
    pub part: usize,
    /// The row that it is divided by.
    pub over: Option<Map<String, Value>>,
    /// Whether the cell is a ratio, where the claim is of a change in percent.
    pub cell_is_ratio: bool,
    /// Whether the cell is to be divided by instead: times, where the claim is of rates.
    pub inverse: bool,
    /// How many pairs it is of.
    pub pairs: Pairs,
}

/// Where a figure comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// Runs of the lab.
    Lab(LabSource),
    /// A measurement of `benchmarks/`.
    Benchmark(BenchmarkSource),
    /// Tests that fail when the rule does not hold: `path::function`.
    Rule(Vec<String>),
    /// Nobody has measured it; why, and the command that would.
    Missing {
        /// Why.
        reason: String,
        /// A command line, or nothing.
        command: String,
    },
    /// It cannot be had here; why.
    Cannot {
        /// Why.
        reason: String,
    },
}

impl Source {
    /// Whether the lab runs for it.
    pub fn is_run(&self) -> bool {
        matches!(self, Source::Lab(_))
    }
}

/// A source for each world.
#[derive(Clone, Debug, PartialEq)]
pub struct Sources([Source; World::ALL.len()]);

impl Sources {
    /// In the order of [`World::ALL`].
    pub fn new(each: [Source; World::ALL.len()]) -> Sources {
        Sources(each)
    }

    /// Of one world.
    pub fn of(&self, world: World) -> &Source {
        &self.0[world as usize]
    }
}

/// A source as a file of claims has it: one of `run` or `runs`, `benchmark`, `rule`, `missing` and `cannot`, and what belongs to it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct SourceText {
    run: Option<String>,
    runs: Option<Vec<String>>,
    column: Option<String>,
    columns: Option<Vec<String>>,
    measure: Option<String>,
    group: Option<usize>,
    over: Option<toml::Value>,
    benchmark: Option<String>,
    row: Option<toml::Table>,
    rows: Option<Vec<toml::Table>>,
    claim: Option<usize>,
    key: Option<String>,
    part: Option<usize>,
    cell_is_ratio: bool,
    inverse: bool,
    pairs: Option<u32>,
    shortfall: Option<u32>,
    rule: Option<Vec<String>>,
    missing: Option<String>,
    command: Option<String>,
    cannot: Option<String>,
}

impl SourceText {
    /// Checks that it is one source, whole.
    pub(crate) fn source(&self) -> anyhow::Result<Source> {
        let kinds = [
            self.run.is_some() || self.runs.is_some(),
            self.benchmark.is_some(),
            self.rule.is_some(),
            self.missing.is_some(),
            self.cannot.is_some(),
        ];
        ensure!(
            kinds.into_iter().filter(|given| *given).count() == 1,
            "a source is one of run (or runs), benchmark, rule, missing and cannot"
        );
        let has_reason = |reason: &String| !reason.trim().is_empty();
        if let Some(reason) = &self.cannot {
            ensure!(has_reason(reason), "cannot: say why");
            return Ok(Source::Cannot {
                reason: reason.clone(),
            });
        }
        if let Some(reason) = &self.missing {
            ensure!(has_reason(reason), "missing: say why");
            return Ok(Source::Missing {
                reason: reason.clone(),
                command: self.command.clone().unwrap_or_default(),
            });
        }
        if let Some(tests) = &self.rule {
            ensure!(!tests.is_empty(), "rule: name its tests");
            return Ok(Source::Rule(tests.clone()));
        }
        match &self.benchmark {
            Some(benchmark) => self.benchmark(benchmark),
            None => self.lab(),
        }
    }

    fn lab(&self) -> anyhow::Result<Source> {
        let runs = match (&self.run, &self.runs) {
            (Some(run), None) => vec![run.clone()],
            (None, Some(runs)) if !runs.is_empty() => runs.clone(),
            _ => bail!("either run or runs, which names one at least"),
        };
        let columns = match (&self.column, &self.columns) {
            (Some(column), None) => vec![column.clone()],
            (None, Some(columns)) if columns.len() > 1 => columns.clone(),
            _ => bail!("either column or columns, of which there are two at least"),
        };
        let over = match &self.over {
            None => None,
            Some(toml::Value::String(column)) => Some(column.clone()),
            Some(_) => bail!("over: the name of a column"),
        };
        let Some(measure) = self.measure.clone() else {
            bail!("say the measure")
        };
        Ok(Source::Lab(LabSource {
            runs,
            columns,
            over,
            measure,
            group: self.group.unwrap_or(0),
        }))
    }

    fn benchmark(&self, benchmark: &str) -> anyhow::Result<Source> {
        let pairs = match (self.pairs, self.shortfall) {
            (Some(pairs), None) if pairs >= PAIRS_LEAST => Pairs {
                pairs,
                shortfall: false,
            },
            (None, Some(pairs)) if (1..PAIRS_LEAST).contains(&pairs) => Pairs {
                pairs,
                shortfall: true,
            },
            _ => bail!(
                "say either pairs, {PAIRS_LEAST} or more, or shortfall: how many fewer there were, 1 at least"
            ),
        };
        let rows = match (&self.row, &self.rows, self.claim) {
            (Some(row), None, None) => vec![json(row)?],
            (None, Some(rows), None) if rows.len() > 1 => {
                rows.iter().map(json).collect::<anyhow::Result<_>>()?
            }
            (None, None, Some(1..)) => Vec::new(),
            _ => bail!("one of row, rows (two at least) and claim (from 1)"),
        };
        let over = match &self.over {
            None => None,
            Some(toml::Value::Table(row)) => Some(json(row)?),
            Some(_) => bail!("over: keys and values of a row"),
        };
        ensure!(
            self.claim.is_some() || self.key.is_some(),
            "say the key of the cell"
        );
        Ok(Source::Benchmark(BenchmarkSource {
            benchmark: benchmark.to_owned(),
            rows,
            claim: self.claim,
            key: self.key.clone().unwrap_or_default(),
            part: self.part.unwrap_or(0),
            over,
            cell_is_ratio: self.cell_is_ratio,
            inverse: self.inverse,
            pairs,
        }))
    }
}

/// A table of TOML as JSON rows have it.
pub(crate) fn json(row: &toml::Table) -> anyhow::Result<Map<String, Value>> {
    match serde_json::to_value(row)? {
        Value::Object(map) => Ok(map),
        _ => bail!("keys and values of a row"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> anyhow::Result<Source> {
        toml::from_str::<SourceText>(text)?.source()
    }

    #[test]
    fn every_kind_is_read() {
        let lab = source("run = \"r\"\ncolumn = \"c\"\nover = \"d\"\nmeasure = \"m\"").unwrap();
        assert!(lab.is_run());
        let Source::Lab(lab) = lab else { panic!() };
        assert_eq!((lab.over.as_deref(), lab.group), (Some("d"), 0));
        let Source::Benchmark(of) =
            source("benchmark = \"b\"\nrow = { vms = 2 }\nkey = \"k\"\nshortfall = 4").unwrap()
        else {
            panic!()
        };
        assert_eq!((of.pairs.pairs, of.pairs.shortfall), (4, true));
        assert!(matches!(source("rule = [\"a::b\"]"), Ok(Source::Rule(_))));
        assert!(matches!(
            source("missing = \"nobody did\""),
            Ok(Source::Missing { .. })
        ));
        assert!(matches!(
            source("cannot = \"no such machine\""),
            Ok(Source::Cannot { .. })
        ));
    }

    #[test]
    fn what_is_none_or_half_is_refused() {
        for text in [
            "",
            "missing = \" \"",
            "cannot = \"\"",
            "rule = []",
            "missing = \"a\"\ncannot = \"b\"",
            "run = \"r\"\ncolumn = \"c\"",
            "run = \"r\"\nmeasure = \"m\"",
            "run = \"r\"\ncolumns = [\"c\"]\nmeasure = \"m\"",
            "benchmark = \"b\"\nrow = {}\nkey = \"k\"",
            "benchmark = \"b\"\nrow = {}\nkey = \"k\"\npairs = 4",
            "benchmark = \"b\"\nrow = {}\nkey = \"k\"\nshortfall = 5",
            "benchmark = \"b\"\nrow = {}\nkey = \"k\"\nshortfall = 0",
            "benchmark = \"b\"\nrow = {}\npairs = 9",
            "colour = 1",
        ] {
            assert!(source(text).is_err(), "{text}");
        }
    }
}

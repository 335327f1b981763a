// SPDX-License-Identifier: MIT OR Apache-2.0
//! Figures that are in `benchmarks/`: a row is found by some of its keys and values, and one of its cells is read.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::{Context, bail, ensure};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::{
    cell::{self, Cell},
    claim::Unit,
    measured::Measured,
    source::BenchmarkSource,
};

/// Where they are.
const FOLDER: &str = "benchmarks";

/// Keys under which a row says how many pairs, or runs, it is of.
const PAIRS: [&str; 2] = ["pairs", "runs"];

/// What makes a folder a measurement.
const HEAD_FILE: &str = "benchmark.toml";

/// What is read of benchmark.toml.
#[derive(Debug, Deserialize)]
struct Head {
    command: String,
    #[serde(default)]
    machine: String,
    #[serde(default)]
    date: String,
    #[serde(default)]
    commit: String,
    #[serde(default, rename = "claim")]
    claims: Vec<HeadClaim>,
}

#[derive(Debug, Deserialize)]
struct HeadClaim {
    figure: String,
}

/// A measurement.
#[derive(Debug)]
pub struct Benchmark {
    /// The command that repeats it.
    pub command: String,
    /// What it ran on; it begins with `lab` when that is the lab.
    pub machine: String,
    /// The day.
    pub date: String,
    /// The commit that was measured; empty: several, or not noted.
    pub commit: String,
    claims: Vec<String>,
    rows: Vec<Map<String, Value>>,
}

/// All that a file of claims names.
#[derive(Debug, Default)]
pub struct Benchmarks(BTreeMap<String, Benchmark>);

impl Benchmarks {
    /// Reads every measurement of the tree.
    ///
    /// # Errors
    /// One that cannot be read.
    pub fn read(root: &Path) -> anyhow::Result<Benchmarks> {
        let mut all = BTreeMap::new();
        let folders = fs::read_dir(root.join(FOLDER)).with_context(|| format!("no {FOLDER}/"))?;
        for folder in folders {
            let folder = folder?.path();
            if folder.join(HEAD_FILE).is_file() {
                let name = folder.file_name().unwrap_or_default().to_string_lossy();
                let benchmark =
                    Benchmark::read(&folder).with_context(|| format!("{FOLDER}/{name}"))?;
                all.insert(name.into_owned(), benchmark);
            }
        }
        Ok(Benchmarks(all))
    }

    /// All of them, with their names, in order.
    pub fn all(&self) -> impl Iterator<Item = (&str, &Benchmark)> {
        let all = self.0.iter();
        all.map(|(name, benchmark)| (name.as_str(), benchmark))
    }

    /// The measurement of that name.
    pub fn get(&self, name: &str) -> Option<&Benchmark> {
        self.0.get(name)
    }

    /// The figure of a source, in the unit of the claim.
    ///
    /// # Errors
    /// No such measurement, row or cell.
    pub fn figure(&self, source: &BenchmarkSource, unit: Unit) -> anyhow::Result<Measured> {
        let name = &source.benchmark;
        let Some(benchmark) = self.get(name) else {
            bail!("there is no {FOLDER}/{name}")
        };
        let cells = benchmark
            .cells(source)
            .with_context(|| format!("{FOLDER}/{name}"))?;
        let cells: Vec<Cell> = cells
            .into_iter()
            .map(|cell| convert(cell, source, unit))
            .collect();
        let interval = match cells[..] {
            [cell] => cell.interval,
            _ => None,
        };
        Ok(Measured {
            values: cells.iter().map(|cell| cell.value).collect(),
            interval,
            pairs: source.pairs,
            stale: String::new(),
        })
    }
}

/// Ratios as changes in percent, where the claim is of these.
fn convert(cell: Cell, source: &BenchmarkSource, unit: Unit) -> Cell {
    if unit != Unit::ChangePercent || !(source.cell_is_ratio || source.over.is_some()) {
        return cell;
    }
    let change = |ratio: f64| 100.0 * (ratio - 1.0);
    Cell {
        value: change(cell.value),
        interval: cell.interval.map(|(low, high)| (change(low), change(high))),
    }
}

impl Benchmark {
    fn read(folder: &Path) -> anyhow::Result<Benchmark> {
        let text = fs::read_to_string(folder.join(HEAD_FILE)).context(HEAD_FILE)?;
        let head: Head = toml::from_str(&text)?;
        let rows = fs::read_to_string(folder.join("rows.jsonl")).unwrap_or_default();
        let rows = rows.lines().map(serde_json::from_str);
        Ok(Benchmark {
            command: head.command,
            machine: head.machine,
            date: head.date,
            commit: head.commit,
            claims: head.claims.into_iter().map(|claim| claim.figure).collect(),
            rows: rows.collect::<Result<_, _>>().context("rows.jsonl")?,
        })
    }

    /// Its rows.
    pub fn rows(&self) -> &[Map<String, Value>] {
        &self.rows
    }

    fn cells(&self, source: &BenchmarkSource) -> anyhow::Result<Vec<Cell>> {
        if let Some(number) = source.claim {
            let Some(figure) = self.claims.get(number - 1) else {
                bail!("it has {} claims", self.claims.len())
            };
            return Ok(vec![cell::read(
                &Value::from(figure.as_str()),
                source.part,
            )?]);
        }
        let over = source.over.as_ref();
        let over = over.map(|row| self.cell(row, source)).transpose()?;
        let each = source.rows.iter().map(|row| {
            let cell = self.cell(row, source)?;
            let cell = match over {
                None => cell,
                Some(over) => divided(cell, over)?,
            };
            match source.inverse {
                false => Ok(cell),
                true => divided(
                    Cell {
                        value: 1.0,
                        interval: Some((1.0, 1.0)),
                    },
                    cell,
                ),
            }
        });
        each.collect()
    }

    /// The cell `key` of the one row that has these keys and values.
    fn cell(&self, wanted: &Map<String, Value>, source: &BenchmarkSource) -> anyhow::Result<Cell> {
        let (key, part, pairs) = (source.key.as_str(), source.part, source.pairs);
        let found: Vec<_> = self
            .rows
            .iter()
            .filter(|row| has_all(row, wanted))
            .collect();
        let wanted = Value::Object(wanted.clone());
        ensure!(
            found.len() == 1,
            "{} rows have {wanted}: one must",
            found.len()
        );
        // What a row says of its pairs itself holds, whatever the claims say.
        if let Some(own) = own_pairs(found[0]).filter(|own| *own != u64::from(pairs.pairs)) {
            bail!(
                "the row {wanted} is of {own} pairs, the claim says {}",
                pairs.pairs
            )
        }
        let Some(cell) = found[0].get(key) else {
            bail!("the row {wanted} has no {key:?}")
        };
        cell::read(cell, part).with_context(|| format!("{key:?} of the row {wanted}"))
    }
}

/// How many pairs, or runs, a row says that it is of.
pub(crate) fn own_pairs(row: &Map<String, Value>) -> Option<u64> {
    PAIRS.iter().find_map(|key| row.get(*key)?.as_u64())
}

/// Whether a row has all these keys and values.
pub(crate) fn has_all(row: &Map<String, Value>, wanted: &Map<String, Value>) -> bool {
    wanted
        .iter()
        .all(|(key, value)| row.get(key).is_some_and(|given| same(given, value)))
}

/// Numbers of JSON are the same with and without a fraction of nothing.
fn same(a: &Value, b: &Value) -> bool {
    match (a.as_f64(), b.as_f64()) {
        (Some(a), Some(b)) => a == b,
        _ => a == b,
    }
}

/// One figure divided by another; the interval is the widest that theirs allow.
pub(crate) fn divided(cell: Cell, over: Cell) -> anyhow::Result<Cell> {
    ensure!(over.value > 0.0, "it would be divided by {}", over.value);
    let interval = match (cell.interval, over.interval) {
        (Some((low, high)), Some((least, most))) if least > 0.0 => Some((low / most, high / least)),
        _ => None,
    };
    Ok(Cell {
        value: cell.value / over.value,
        interval,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::{Source, SourceText};

    fn tree() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let of = folder.path().join(FOLDER).join("b");
        fs::create_dir_all(&of).unwrap();
        let head =
            "title = \"t\"\ncommand = \"true\"\n[[claim]]\ntext = \"a\"\nfigure = \"3 of 4\"\n";
        fs::write(of.join("benchmark.toml"), head).unwrap();
        let rows = "{\"lock\":\"a\",\"vms\":2,\"time\":\"20 ms (10 to 40)\"}\n\
                    {\"lock\":\"b\",\"vms\":2,\"time\":\"10 ms (5 to 10)\"}\n\
                    {\"lock\":\"b\",\"vms\":3,\"time\":\"-\"}\n\
                    {\"lock\":\"d\",\"runs\":3,\"time\":\"7 ms\"}\n";
        fs::write(of.join("rows.jsonl"), rows).unwrap();
        folder
    }

    fn figure(text: &str, unit: Unit) -> anyhow::Result<Measured> {
        let tree = tree();
        let source = toml::from_str::<SourceText>(text)?.source()?;
        let Source::Benchmark(source) = source else {
            panic!("a benchmark")
        };
        Benchmarks::read(tree.path())?.figure(&source, unit)
    }

    #[test]
    fn a_row_is_found_by_its_keys() {
        let of = "benchmark = \"b\"\npairs = 5\nkey = \"time\"\nrow = { lock = \"a\" }";
        let plain = figure(of, Unit::Nanoseconds).unwrap();
        assert_eq!(
            (plain.value(), plain.interval),
            (Some(2e7), Some((1e7, 4e7)))
        );
        let over = format!("{of}\nover = {{ lock = \"b\", vms = 2 }}");
        let ratio = figure(&over, Unit::Ratio).unwrap();
        assert_eq!(
            (ratio.value(), ratio.interval),
            (Some(2.0), Some((1.0, 8.0)))
        );
        let change = figure(&over, Unit::ChangePercent).unwrap();
        assert_eq!(
            (change.value(), change.interval),
            (Some(100.0), Some((0.0, 700.0)))
        );
        let inverse = figure(&format!("{over}\ninverse = true"), Unit::Ratio).unwrap();
        assert_eq!(inverse.interval, Some((0.125, 1.0)));
        let claim = figure(
            "benchmark = \"b\"\nclaim = 1\nkey = \"\"\npairs = 5",
            Unit::Percent,
        );
        assert_eq!(claim.unwrap().value(), Some(75.0));
    }

    #[test]
    fn several_rows_are_an_order() {
        let of = "benchmark = \"b\"\npairs = 5\nkey = \"time\"\nrows = [{ lock = \"b\", vms = 2 }, { lock = \"a\" }]";
        let order = figure(of, Unit::Nanoseconds).unwrap();
        assert_eq!((order.values, order.interval), (vec![1e7, 2e7], None));
    }

    #[test]
    fn no_row_and_two_rows_are_told() {
        for (row, why) in [
            ("{ lock = \"c\" }", "0 rows have"),
            ("{ lock = \"b\" }", "2 rows have"),
            ("{ lock = \"b\", vms = 3 }", "no number"),
            ("{ lock = \"d\" }", "is of 3 pairs, the claim says 5"),
        ] {
            let of = format!("benchmark = \"b\"\npairs = 5\nkey = \"time\"\nrow = {row}");
            let error = figure(&of, Unit::Ratio).expect_err(row);
            assert!(format!("{error:#}").contains(why), "{error:#}");
        }
        let none = "benchmark = \"c\"\npairs = 5\nkey = \"time\"\nrow = { lock = \"a\" }";
        assert!(figure(none, Unit::Ratio).is_err());
    }
}

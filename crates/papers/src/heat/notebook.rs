// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tables that were taken over from a notebook: papers/heat-map.toml says which cells are ratios of which remedy.

use std::collections::BTreeMap;

use anyhow::{Context, bail, ensure};
use serde_json::{Map, Value};

use super::{Entry, Origin, Place, entry::overcommit, text::TableText};
use crate::{
    benchmark::{Benchmark, Benchmarks, divided, has_all},
    cell::{self, Cell},
    source::json,
};

/// All figures of a table.
///
/// # Errors
/// No such measurement, no such rows, a cell that is no figure.
pub(super) fn entries(benchmarks: &Benchmarks, table: &TableText) -> anyhow::Result<Vec<Entry>> {
    let benchmark = benchmarks
        .get(&table.benchmark)
        .context("there is no such measurement")?;
    let wanted = json(&table.rows)?;
    let mut entries = Vec::new();
    for (place, row) in benchmark.rows().iter().enumerate() {
        if has_all(row, &wanted) {
            let context = || format!("line {}", place + 1);
            entries.extend(of_row(benchmark, table, place, row).with_context(context)?);
        }
    }
    ensure!(!entries.is_empty(), "no row has {}", Value::Object(wanted));
    Ok(entries)
}

fn of_row(
    benchmark: &Benchmark,
    table: &TableText,
    place: usize,
    row: &Map<String, Value>,
) -> anyhow::Result<Vec<Entry>> {
    let words = words(table, row)?;
    let mut entries = Vec::new();
    for (key, shape, remedy) in figures(table, &words)? {
        if table.skip.contains(&remedy) {
            continue;
        }
        // A remedy that this row was not measured with has no cell.
        let Some(value) = row.get(&key).filter(|value| **value != "-") else {
            continue;
        };
        let figure = cell::read(value, 0).with_context(|| key.clone())?;
        let figure = match &table.over {
            None => figure,
            Some(over) => divided(figure, over_cell(benchmark, &json(over)?, &key)?)?,
        };
        let name = table.names.get(&remedy).unwrap_or(&remedy);
        entries.push(Entry {
            place: Place {
                part: table.part,
                load: filled(&table.load, &words)?,
                overcommit: overcommit(&shape, table.cpus),
                shape,
                setting: filled(&table.setting, &words)?,
            },
            remedy: name.clone(),
            baseline: table.baseline.clone(),
            ratio: figure.value,
            interval: figure.interval,
            interval_is: table.interval_is.clone(),
            pairs: match &table.pairs_key {
                Some(key) => row.get(key).and_then(Value::as_u64),
                None => table.pairs,
            },
            origin: Origin {
                benchmark: table.benchmark.clone(),
                line: place + 1,
                commit: commit(benchmark, table, &words)?,
                date: benchmark.date.clone(),
            },
            stale: String::new(),
        });
    }
    Ok(entries)
}

/// The row's cells as texts, and the words of the one that is split.
fn words(table: &TableText, row: &Map<String, Value>) -> anyhow::Result<BTreeMap<String, String>> {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let mut words: BTreeMap<String, String> = row
        .iter()
        .map(|(key, value)| (key.clone(), text(value)))
        .collect();
    if let Some(split) = &table.split {
        let whole = words.get(&split.key).cloned().unwrap_or_default();
        let pieces: Vec<&str> = whole
            .split([',', ' ', '(', ')'])
            .filter(|piece| !piece.is_empty())
            .collect();
        ensure!(
            pieces.len() == split.into.len(),
            "{whole:?} has {} words, not {}",
            pieces.len(),
            split.into.len()
        );
        let pieces = pieces.into_iter().map(str::to_owned);
        words.extend(split.into.iter().cloned().zip(pieces));
    }
    Ok(words)
}

/// Of each figure of a row: its key, its shape, its remedy.
fn figures(
    table: &TableText,
    words: &BTreeMap<String, String>,
) -> anyhow::Result<Vec<(String, String, String)>> {
    let shape = filled(&table.shape, words)?;
    let shape = match table.shapes.get(&shape) {
        Some(named) => named.clone(),
        None => shape,
    };
    let figures = match (&table.remedy, &table.ratio) {
        (Some(remedy), Some(key)) => vec![(key.clone(), shape, filled(remedy, words)?)],
        (Some(remedy), None) if table.shape.is_empty() => {
            let remedy = filled(remedy, words)?;
            let shapes = table.shapes.iter();
            shapes
                .map(|(key, shape)| (key.clone(), shape.clone(), remedy.clone()))
                .collect()
        }
        (None, None) => table
            .remedies
            .iter()
            .map(|(key, remedy)| (key.clone(), shape.clone(), remedy.clone()))
            .collect(),
        _ => bail!("either remedy and ratio, or remedy and shapes, or remedies"),
    };
    Ok(figures)
}

fn over_cell(
    benchmark: &Benchmark,
    wanted: &Map<String, Value>,
    key: &str,
) -> anyhow::Result<Cell> {
    let rows: Vec<_> = benchmark
        .rows()
        .iter()
        .filter(|row| has_all(row, wanted))
        .collect();
    let [row] = rows[..] else {
        bail!("over: {} rows, one must be", rows.len())
    };
    cell::read(row.get(key).context("over: no such key")?, 0)
}

fn commit(
    benchmark: &Benchmark,
    table: &TableText,
    words: &BTreeMap<String, String>,
) -> anyhow::Result<String> {
    let Some(key) = &table.commit else {
        return Ok(benchmark.commit.clone());
    };
    let key = filled(key, words)?;
    let commit = table.commits.get(&key);
    Ok(commit.with_context(|| format!("no commit {key}"))?.clone())
}

/// A text with the row's words in place of `{key}`.
fn filled(text: &str, words: &BTreeMap<String, String>) -> anyhow::Result<String> {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        let (key, behind) = after
            .split_once('}')
            .with_context(|| format!("{text:?}: no closing bracket"))?;
        let word = words.get(key);
        filled += before;
        filled += word.with_context(|| format!("{text:?}: the row has no {key}"))?;
        rest = behind;
    }
    Ok(filled + rest)
}

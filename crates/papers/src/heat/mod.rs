// SPDX-License-Identifier: MIT OR Apache-2.0
//! The heat map: every remedy under every load, as far as the tree has figures. A cell is one measurement of `benchmarks/`; what was
//! never measured has none. Ratios are to the baseline of the same measurement, so figures of two worlds are never compared.

mod compared;
mod entry;
mod lab;
mod notebook;
pub mod rows;
mod text;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use anyhow::Context;

pub use entry::{Entry, Origin, Part, Place};

use crate::papers::Papers;

/// Which rows that do not say so themselves are cells of it.
const FILE: &str = "papers/heat-map.toml";

/// All measurements of remedies.
#[derive(Debug)]
pub struct HeatMap {
    entries: Vec<Entry>,
}

/// The measurements of a part, as a map: a row for each load, a column for each remedy.
#[derive(Debug)]
pub struct PartMap<'a> {
    /// Which part.
    pub part: Part,
    /// Its remedies; those that were measured under most loads first.
    pub remedies: Vec<&'a str>,
    /// Its rows, in the order of [`Place`].
    pub rows: Vec<MapRow<'a>>,
}

/// A load of the map.
#[derive(Debug)]
pub struct MapRow<'a> {
    /// The load, how much is overcommitted, and how.
    pub place: &'a Place,
    /// For each remedy its newest measurement: its place among [`HeatMap::entries`]. None: never measured.
    pub cells: Vec<Option<usize>>,
    /// The one with the largest ratio, by place among `cells`.
    pub best: usize,
}

impl Papers {
    /// Reads all measurements of remedies.
    ///
    /// # Errors
    /// papers/heat-map.toml asks for what is not in `benchmarks/`, or a row there is not what it should be.
    pub fn heat_map(&self) -> anyhow::Result<HeatMap> {
        let text = fs::read_to_string(self.root.join(FILE))
            .with_context(|| format!("cannot read {FILE}"))?;
        let text: text::HeatText = toml::from_str(&text).context(FILE)?;
        let mut entries = compared::entries(&self.benchmarks)?;
        for runs in &text.labs {
            entries.extend(lab::entries(self, runs).with_context(|| format!("{FILE}, lab"))?);
        }
        for table in &text.tables {
            let why = || format!("{FILE}, {}", table.benchmark);
            entries.extend(notebook::entries(&self.benchmarks, table).with_context(why)?);
        }
        Ok(HeatMap::new(entries))
    }
}

impl HeatMap {
    fn new(mut entries: Vec<Entry>) -> HeatMap {
        entries.sort_by(Entry::order);
        HeatMap { entries }
    }

    /// All of them: by part, load, remedy; of one cell the oldest first.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// As maps, without parts that nobody measured.
    pub fn parts(&self) -> Vec<PartMap<'_>> {
        let all = Part::ALL.iter().map(|part| self.part(*part));
        all.filter(|map| !map.rows.is_empty()).collect()
    }

    fn part(&self, part: Part) -> PartMap<'_> {
        let mut cells: BTreeMap<&Place, BTreeMap<&str, usize>> = BTreeMap::new();
        for (number, entry) in self.entries.iter().enumerate() {
            if entry.place.part == part {
                // Of one cell the newest is last.
                let row = cells.entry(&entry.place).or_default();
                row.insert(&entry.remedy, number);
            }
        }
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for remedy in cells.values().flat_map(BTreeMap::keys) {
            *counts.entry(remedy).or_default() += 1;
        }
        let mut remedies: Vec<&str> = counts.keys().copied().collect();
        remedies.sort_by_key(|remedy| std::cmp::Reverse(counts[remedy]));
        let rows = cells.into_iter().map(|(place, of)| {
            let cells: Vec<Option<usize>> = remedies
                .iter()
                .map(|remedy| of.get(remedy).copied())
                .collect();
            MapRow {
                place,
                best: self.best(&cells),
                cells,
            }
        });
        PartMap {
            part,
            rows: rows.collect(),
            remedies,
        }
    }

    /// The place of the largest ratio; of equals the first.
    fn best(&self, cells: &[Option<usize>]) -> usize {
        let ratio = |cell: &Option<usize>| cell.map(|number| self.entries[number].ratio);
        let mut best = 0;
        for place in 0..cells.len() {
            if ratio(&cells[place]) > ratio(&cells[best]) {
                best = place;
            }
        }
        best
    }

    /// Numbers of the entries that are the newest of their cells, and of those that are the best of their rows.
    pub fn shown(&self) -> (BTreeSet<usize>, BTreeSet<usize>) {
        let (mut shown, mut best) = (BTreeSet::new(), BTreeSet::new());
        for row in self.parts().iter().flat_map(|part| &part.rows) {
            shown.extend(row.cells.iter().flatten());
            best.extend(row.cells[row.best]);
        }
        (shown, best)
    }
}

#[cfg(test)]
mod tests;

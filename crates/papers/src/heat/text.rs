// SPDX-License-Identifier: MIT OR Apache-2.0
//! papers/heat-map.toml as it is written.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::Part;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HeatText {
    #[serde(rename = "lab")]
    pub labs: Vec<LabText>,
    #[serde(rename = "table")]
    pub tables: Vec<TableText>,
}

/// Columns of a paper's runs in the lab that are remedies, and the one that they are compared with.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LabText {
    pub paper: String,
    pub baseline: String,
    /// `{load}`: the run's name without the paper and the number of VMs.
    pub load: String,
    /// Columns, and what they are called.
    pub remedies: BTreeMap<String, String>,
}

/// A table of the notebook.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TableText {
    pub benchmark: String,
    /// Keys and values of the rows that count.
    pub rows: toml::Table,
    pub part: Part,
    pub load: String,
    /// A text with the shape in it; where there are `shapes`, a key of them.
    #[serde(default)]
    pub shape: String,
    /// Shapes by a cell's value, or, without `shape`, by the keys of the cells that have the figures.
    #[serde(default)]
    pub shapes: BTreeMap<String, String>,
    pub cpus: u32,
    pub setting: String,
    pub baseline: String,
    pub pairs: Option<u64>,
    /// The key of the cell that says how many.
    pub pairs_key: Option<String>,
    #[serde(default = "interval_is")]
    pub interval_is: String,
    /// The remedy of a row with one figure.
    pub remedy: Option<String>,
    /// The key of its figure.
    pub ratio: Option<String>,
    /// The keys of the figures of a row with several, and what remedies they are of.
    #[serde(default)]
    pub remedies: BTreeMap<String, String>,
    /// The row that a figure is divided by.
    pub over: Option<toml::Table>,
    /// A cell with several words in it, and the keys that they get.
    pub split: Option<SplitText>,
    /// Remedies that are none: baselines, and what else stands there.
    #[serde(default)]
    pub skip: Vec<String>,
    /// Other names for remedies.
    #[serde(default)]
    pub names: BTreeMap<String, String>,
    /// A key of `commits`.
    pub commit: Option<String>,
    /// Commits that rows were measured at.
    #[serde(default)]
    pub commits: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SplitText {
    pub key: String,
    pub into: Vec<String>,
}

fn interval_is() -> String {
    INTERVAL_95.to_owned()
}

/// What the interval of a row that says nothing else is.
pub(super) const INTERVAL_95: &str = "95 %";

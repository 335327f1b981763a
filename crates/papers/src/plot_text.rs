// SPDX-License-Identifier: MIT OR Apache-2.0
//! A paper's figure as its file of claims has it: where each of its bars or points comes from, or why it cannot be drawn.

use anyhow::{Context, ensure};
use serde::Deserialize;

use crate::{claim::Unit, source::LabSource};

/// How a figure is drawn.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// A bar for each series in each group.
    #[default]
    Bars,
    /// A bar for each group, of the series on one another.
    Stacked,
    /// A line for each series over the groups.
    Lines,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PlotText {
    /// Its number in the paper.
    pub number: u32,
    pub title: String,
    /// Why there is none here.
    pub cannot: Option<String>,
    /// What is different from the paper's.
    #[serde(default)]
    pub note: String,
    #[serde(default)]
    pub form: Form,
    /// Whether its axis goes by powers.
    #[serde(default)]
    pub log: bool,
    #[serde(default, rename = "panel")]
    pub panels: Vec<PartText>,
    /// What stands along the axis.
    #[serde(default, rename = "group")]
    pub groups: Vec<PartText>,
    /// What has a colour each.
    #[serde(default)]
    pub series: Vec<PartText>,
}

/// What a panel, a group or a series adds to where a figure comes from; of a key that several have, the series' counts, then the
/// group's.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct PartText {
    pub label: String,
    pub unit: Option<Unit>,
    pub run: Option<String>,
    pub column: Option<String>,
    pub over: Option<String>,
    pub measure: Option<String>,
    /// Of the VMs of which `[[vm]]` of the scenario, from 0.
    pub vm: Option<usize>,
    pub kvm: Option<KvmText>,
}

/// What it adds to where KVM's figure comes from: as a claim's source, with rows joined.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct KvmText {
    /// Empty: none, whatever the panel says.
    pub benchmark: Option<String>,
    pub row: toml::Table,
    pub key: Option<String>,
    pub part: Option<usize>,
    /// The row that it is divided by; what it does not say is as in `row`.
    pub over: Option<toml::Table>,
    pub inverse: Option<bool>,
    /// How many pairs or runs it is of, where the row does not say.
    pub pairs: Option<u32>,
}

impl PlotText {
    /// What is wrong with it by itself.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        let parts = [&self.panels, &self.groups, &self.series];
        match &self.cannot {
            Some(reason) => {
                ensure!(!reason.trim().is_empty(), "cannot: say why");
                let empty = parts.iter().all(|parts| parts.is_empty());
                ensure!(empty, "it cannot be drawn, and has parts");
            }
            None => {
                let whole = parts.iter().all(|parts| !parts.is_empty());
                ensure!(whole, "either cannot, or panel, group and series");
                for panel in &self.panels {
                    panel.unit.context("a panel needs a unit")?;
                }
            }
        }
        Ok(())
    }
}

impl PartText {
    /// What the three say together.
    pub(crate) fn joined(panel: &PartText, group: &PartText, series: &PartText) -> PartText {
        let parts = [series, group, panel];
        let text =
            |of: fn(&PartText) -> &Option<String>| parts.iter().find_map(|part| of(part).clone());
        let kvm = parts.iter().filter_map(|part| part.kvm.as_ref());
        PartText {
            label: String::new(),
            unit: panel.unit,
            run: text(|part| &part.run),
            column: text(|part| &part.column),
            over: text(|part| &part.over),
            measure: text(|part| &part.measure),
            vm: parts.iter().find_map(|part| part.vm),
            kvm: kvm.cloned().reduce(KvmText::with),
        }
    }

    /// Where the lab's figure comes from; none where the parts do not say a whole source.
    pub(crate) fn lab(&self) -> Option<LabSource> {
        Some(LabSource {
            runs: vec![self.run.clone()?],
            columns: vec![self.column.clone()?],
            over: self.over.clone(),
            measure: self.measure.clone()?,
            group: self.vm.unwrap_or(0),
        })
    }
}

impl KvmText {
    /// This, and what only the other says.
    fn with(self, other: KvmText) -> KvmText {
        let mut row = other.row;
        row.extend(self.row);
        KvmText {
            benchmark: self.benchmark.or(other.benchmark),
            row,
            key: self.key.or(other.key),
            part: self.part.or(other.part),
            over: self.over.or(other.over),
            inverse: self.inverse.or(other.inverse),
            pairs: self.pairs.or(other.pairs),
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rows that are printed of a comparison in the lab, and what is said of them.

use schemars::JsonSchema;
use serde::Serialize;
use unspin_report::{Column, Unit, row};
use unspin_scenario::limits::VCPUS_MAX;

use super::{Cell, Compared, Figures, SampleRow};
use crate::Row;

/// One column, over all seeds: stock, a policy, or the ideal. What needs a null or our scheduler on a host is null here.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct PolicyRow(Row<Figures>);

/// What people see of it.
const COLUMNS: &[Column] = &[
    Column::new("policy", "policy", Unit::Text),
    Column::new("seeds", "seeds", Unit::Count),
    Column::new("operations_per_second", "ops/s", Unit::Count),
    Column::new("deviation_per_second", "deviation", Unit::Count),
    Column::new("throughput_ratio_to_stock", "to stock", Unit::Ratio),
    Column::new("throughput_ratio_to_stock_low", "95 % from", Unit::Ratio),
    Column::new("throughput_ratio_to_stock_high", "to", Unit::Ratio),
    Column::new("verdict", "is", Unit::Text),
    Column::new("gap_closed", "gap closed", Unit::Ratio),
    Column::new("gap_closed_low", "95 % from", Unit::Ratio),
    Column::new("gap_closed_high", "to", Unit::Ratio),
    Column::new("harm", "harm", Unit::Text),
    Column::new("worst_vm_ratio", "worst VM", Unit::Ratio),
    Column::new("lab_error", "lab off by", Unit::Ratio),
    Column::new("lab_error_most", "at most", Unit::Ratio),
];

row!(PolicyRow, "policy", &["lab compare"], COLUMNS);

/// One seed of one column.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct SeedRow(SampleRow);

row!(SeedRow, "sample", &["lab compare"], &[]);

impl Compared {
    /// A row for each column.
    pub fn policy_rows(&self) -> impl Iterator<Item = PolicyRow> {
        self.rows.iter().cloned().map(PolicyRow)
    }

    /// A row for each seed of each column.
    pub fn seed_rows(&self) -> impl Iterator<Item = SeedRow> {
        self.samples.iter().cloned().map(SeedRow)
    }

    /// What is known of the lab's error, in sentences.
    fn errors(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let cells = self.rows.iter().filter_map(|row| row.world.lab_error_cells);
        if let (Some(least), Some(most)) = (cells.clone().min(), cells.max()) {
            let many = match least == most {
                true => format!("{most}"),
                false => format!("{least} to {most}"),
            };
            notes.push(format!(
                "lab off by: predicted by measured ratio to stock, or the reverse; median and largest of {many} measured cells \
                 like this one (benchmarks/lab-conformance)"
            ));
        }
        for row in &self.rows {
            if let (Some(policy), Some(why)) = (&row.policy, &row.world.lab_error_unknown) {
                notes.push(format!(
                    "how far the lab is off is not known for {policy}: {why}"
                ));
            }
        }
        notes
    }

    /// What the columns are, in sentences.
    pub fn notes(&self, cell: &Cell) -> Vec<String> {
        let mut notes = Vec::new();
        if cell.ideal.is_none() {
            notes.push(format!(
                "no ideal: a VM has at most {VCPUS_MAX} vCPUs, and the host has {} pCPUs",
                cell.cpus
            ));
        }
        let stock = &cell.stock;
        let lab = stock.lab.clone().unwrap_or_default();
        let scheduler = lab
            .scheduler
            .as_deref()
            .unwrap_or(unspin_lab::DEFAULT_SCHEDULER);
        let last = stock.seed + u64::from(cell.seeds).saturating_sub(1);
        notes.push(format!(
            "stock is {} as it is, under {scheduler}; seeds {} to {last}, the same for all; ratios pair by pair",
            stock.name, stock.seed
        ));
        notes.extend(self.errors());
        if self.draws_nothing {
            notes.push(
                "every seed gave the same: this scenario draws nothing, so its intervals say nothing; draw its times, as in \
                 hold = { exponential = \"1us\" }"
                    .to_owned(),
            );
        }
        notes
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! A paper's table as its file of claims has it.

use serde::Deserialize;

use crate::lab_rows::LabRow;

/// A table as a file of claims has it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TableText {
    /// Its number in the paper, or its place among tables without numbers.
    pub number: u32,
    pub title: String,
    pub form: Form,
    #[serde(rename = "row")]
    pub rows: Vec<RowText>,
}

/// What its columns are.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Form {
    /// VEE'13's Table 1: acquisitions, stalls, and of whom.
    Stalls,
    /// Friebel's: wall clock, guest time, spinning.
    Times,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RowText {
    pub label: String,
    /// The paper's cells, from the left.
    pub paper: Vec<CellText>,
    pub run: String,
    pub column: String,
}

/// A cell: a number, or "-" where the paper has none.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum CellText {
    Number(f64),
    Dash(Dash),
}

/// Where the paper has nothing.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) enum Dash {
    /// In the paper's own form.
    #[serde(rename = "-")]
    Nothing,
}

impl RowText {
    /// The paper's cell, or the mean of the lab's measure.
    pub fn cell(&self, place: usize, lab: Option<&LabRow>, measure: &str) -> Option<f64> {
        match lab {
            Some(lab) => lab.mean(measure),
            None => match self.paper.get(place)? {
                CellText::Number(number) => Some(*number),
                CellText::Dash(Dash::Nothing) => None,
            },
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! A paper's figure as a table: a line for each number, drawn as a bar.

use unspin_report::{Table, row};

use super::{Mark, MarkSource, Panel, Plot};
use crate::{claim::Unit, source::PAIRS_LEAST};

row! {
    "plot", ["paper"];
    /// A number of a paper's figure: the paper's own, the lab's or KVM's.
    pub struct PlotRow {
        /// Which part of the figure: what its axis counts.
        pub panel: String,
        /// Its place along the axis.
        pub group: String = ("", Text),
        /// What has a colour there.
        pub series: String = ("", Text),
        /// `paper`, `lab` or `kvm`.
        pub source: &'static str = ("of", Text),
        /// What the number counts: `ratio`, `change_percent`, `percent`, `per_second`, `nanoseconds`, `count`.
        pub unit: &'static str,
        /// The number; null where the paper gives bounds alone.
        pub value: Option<f64>,
        /// Lower bound of its interval; of the paper's number, of what it says.
        pub value_low: Option<f64>,
        /// Upper bound.
        pub value_high: Option<f64>,
        /// The number and its interval, as people see them; `n=2`: of so few pairs; `*`: the lab has changed since.
        pub text: String = ("value (95 %)", Text),
        /// Seeds or pairs; null of a paper's number and where the data does not say.
        pub pairs: Option<u32>,
        /// Whether the lab, a policy or a lock has changed since.
        pub is_stale: bool,
        /// The number over the largest of the panel, 0 to 1.
        pub of_largest: Option<f64> = ("", Bar),
    }
}

impl Plot {
    /// A table for each panel.
    pub fn tables(&self) -> Vec<Table> {
        let tables = self.panels.iter().enumerate().map(|(place, panel)| {
            let title = match place {
                0 => format!(
                    "{}, figure {}: {}\n{}",
                    self.paper, self.number, self.title, panel.title
                ),
                _ => panel.title.clone(),
            };
            Table::of(title, panel.rows())
        });
        tables.collect()
    }
}

impl Panel {
    /// A row for each number, in the order of groups, series and who says it.
    pub fn rows(&self) -> Vec<PlotRow> {
        let values = self.marks.iter().filter_map(|mark| mark.value);
        let largest = values.fold(0.0, f64::max);
        let rows = self.marks.iter().map(|mark| PlotRow {
            panel: self.title.clone(),
            group: self.groups[mark.group].clone(),
            series: self.series[mark.series].clone(),
            source: mark.source.name(),
            unit: self.unit.name(),
            value: mark.value,
            value_low: mark.low,
            value_high: mark.high,
            text: mark.text(self.unit),
            pairs: mark.count,
            is_stale: mark.is_stale,
            of_largest: mark
                .value
                .filter(|_| largest > 0.0)
                .map(|value| (value / largest).max(0.0)),
        });
        rows.collect()
    }
}

impl Mark {
    /// As people see it.
    pub fn text(&self, unit: Unit) -> String {
        let show = |value: f64| unit.text(value);
        let bounds = (self.low.map(show), self.high.map(show));
        let mut text = match (self.value, bounds) {
            (Some(value), _) if self.source == MarkSource::Paper => show(value),
            (Some(value), (Some(low), Some(high))) => format!("{} ({low} to {high})", show(value)),
            (Some(value), _) => show(value),
            (None, (Some(low), Some(high))) => format!("{low} to {high}"),
            (None, (Some(low), None)) => format!("at least {low}"),
            (None, (None, Some(high))) => format!("at most {high}"),
            (None, (None, None)) => String::new(),
        };
        if let Some(count) = self.count.filter(|count| *count < PAIRS_LEAST) {
            text.push_str(&format!(" n={count}"));
        }
        if self.is_stale {
            text.push('*');
        }
        text
    }
}

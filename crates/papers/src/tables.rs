// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tables of the papers in their own form: the paper's row, and below it the lab's.

use anyhow::{Context, bail, ensure};
use unspin_report::{Table, row};

use crate::{
    lab_rows::LabRow,
    papers::Papers,
    table_text::{Form, RowText, TableText},
};

row! {
    "stalls", ["paper"];
    /// A row of VEE'13's Table 1: the paper's, or the lab's mean over the seeds.
    pub struct StallsRow {
        /// The load, and on how many VMs.
        load: String = ("", Text),
        /// `paper` or `lab`.
        source: &'static str = ("of", Text),
        /// Acquisitions of locks, N.
        acquisitions: Option<f64> = ("N", Count),
        /// Waits of more than 2,048 spins, for a preempted holder or for a preempted waiter.
        stalls: Option<f64> = ("Nh + Nw", Count),
        /// Of these, those in which nobody held the lock.
        next_waiter_stalls: Option<f64> = ("Nw", Count),
        /// The same in percent of all stalls.
        next_waiter_percent: Option<f64> = ("Nw / (Nh + Nw) %", Percent),
        /// Stalls per million acquisitions: the runs are not of one length.
        stalls_per_million: Option<f64> = ("per 10^6 of N", Ratio),
    }
}

row! {
    "times", ["paper"];
    /// A row of Friebel's tables: the paper's, or the lab's mean over the seeds, whose build is smaller.
    pub struct TimesRow {
        /// The configuration.
        configuration: String = ("", Text),
        /// `paper` or `lab`.
        source: &'static str = ("of", Text),
        /// Time until the build has ended; s.
        wall_clock_seconds: Option<f64> = ("wall clock [s]", Ratio),
        /// CPU time of all vCPUs; s.
        guest_time_seconds: Option<f64> = ("guest time [s]", Ratio),
        /// Of it in waiting loops; s.
        spinning_seconds: Option<f64> = ("spinning [s]", Ratio),
        /// The same in percent of guest time.
        spinning_percent: Option<f64> = ("spinning [%]", Percent),
    }
}

impl Papers {
    /// The paper's table of that number, beside the lab's.
    ///
    /// # Errors
    /// A paper without such a table; the message lists those that it has.
    pub fn table(&self, paper: &str, number: u32) -> anyhow::Result<Table> {
        let of = self.papers.iter().find(|one| one.key == paper);
        let of = of.with_context(|| format!("there is no paper {paper:?}"))?;
        let Some(table) = of.tables.iter().find(|table| table.number == number) else {
            let known = of.tables.iter();
            let known: Vec<String> = known.map(|table| table.number.to_string()).collect();
            match known[..] {
                [] => bail!("{paper} has no table here"),
                _ => bail!(
                    "{paper} has no table {number} here; there are {}",
                    known.join(", ")
                ),
            }
        };
        let title = format!("{}, table {number}: {}", of.title, table.title);
        Ok(match table.form {
            Form::Stalls => Table::of(title, self.each(table, stalls)?),
            Form::Times => Table::of(title, self.each(table, times)?),
        })
    }

    /// Runs and columns that tables show.
    pub(crate) fn table_columns(&self) -> impl Iterator<Item = (&str, &str)> {
        let tables = self.papers.iter().flat_map(|paper| &paper.tables);
        let rows = tables.flat_map(|table| &table.rows);
        rows.map(|row| (row.run.as_str(), row.column.as_str()))
    }

    /// The paper's row and the lab's, of each row.
    fn each<R>(
        &self,
        table: &TableText,
        of: fn(&RowText, Option<&LabRow>) -> R,
    ) -> anyhow::Result<Vec<R>> {
        let mut rows = Vec::new();
        for row in &table.rows {
            rows.push(of(row, None));
            let run = self.run(&row.run)?;
            ensure!(
                run.columns.contains_key(&row.column),
                "the run {} has no column {}",
                row.run,
                row.column
            );
            if let Some(lab) = self.lab.get(&row.run, &row.column, 0) {
                rows.push(of(row, Some(lab)));
            }
        }
        Ok(rows)
    }
}

fn source(lab: Option<&LabRow>) -> &'static str {
    if lab.is_some() { "lab" } else { "paper" }
}

fn stalls(row: &RowText, lab: Option<&LabRow>) -> StallsRow {
    let cell = |place: usize, measure: &str| row.cell(place, lab, measure);
    let (acquisitions, stalls) = (cell(0, "acquisitions"), cell(1, "stalls"));
    StallsRow {
        load: row.label.clone(),
        source: source(lab),
        acquisitions,
        stalls,
        next_waiter_stalls: cell(2, "next_waiter_stalls"),
        next_waiter_percent: cell(3, "next_waiter_percent"),
        stalls_per_million: stalls.zip(acquisitions).map(|(of, all)| of * 1e6 / all),
    }
}

fn times(row: &RowText, lab: Option<&LabRow>) -> TimesRow {
    let seconds = |place: usize, measure: &str| {
        let value = row.cell(place, lab, measure);
        value.map(|value| if lab.is_some() { value / 1e9 } else { value })
    };
    TimesRow {
        configuration: row.label.clone(),
        source: source(lab),
        wall_clock_seconds: seconds(0, "elapsed_ns"),
        guest_time_seconds: seconds(1, "guest_time_ns"),
        spinning_seconds: seconds(2, "spinning_ns"),
        spinning_percent: row.cell(3, lab, "spinning_percent"),
    }
}

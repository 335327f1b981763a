// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin lab compare`: the scenario as it is (*stock*), each policy, and the same work where nobody is overcommitted
//! (*ideal*), from the same seeds.

use unspin_experiment::{
    Row,
    lab::{self, Cell, Compared, Policy, compare, ideal_of_host},
};
use unspin_lab::{Lab, change::Change};
use unspin_report::{Column, Document, Table, Unit};
use unspin_scenario::limits::{SEED_MAX, VCPUS_MAX};

use crate::{
    commands::lab::{args::LabCompareArguments, load},
    terminal::{
        failure::Failure,
        options::ScenarioArguments,
        output::{self, rows},
        progress::Experiment,
    },
};

/// What people see of a row.
const ROWS: &[Column] = &[
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
];

rows!(
    /// One column, over all seeds: stock, a policy, or the ideal. What needs a null or our scheduler on a host is null here.
    PolicyRow(Row<lab::Figures>), "policy", &["lab compare"], ROWS;
    /// One seed of one column.
    SampleRow(lab::SampleRow), "sample", &["lab compare"], &[];
);

/// Compares and prints the tables.
pub fn run(arguments: &LabCompareArguments) -> Result<(), Failure> {
    let cell = cell(arguments)?;
    let progress = Experiment::new(false);
    let compared = compare(&cell, arguments.workers, &progress.session()?)?;
    let mut document = output::document("lab compare");
    let rows = compared.rows.iter().cloned().map(PolicyRow);
    document.table(Table::of("", rows));
    let samples = compared.samples.iter().cloned().map(SampleRow);
    document.table(Table::of("", samples));
    say_what(&mut document, &cell, &compared);
    Ok(output::print(&document, arguments.output)?)
}

/// Stock, the policies, ideal; all checked.
fn cell(arguments: &LabCompareArguments) -> Result<Cell, Failure> {
    let (stock, lab) = load(&arguments.scenario)?;
    if stock.seed > SEED_MAX - u64::from(arguments.seeds) {
        let (seed, seeds) = (stock.seed, arguments.seeds);
        return Err(Failure::Usage(format!(
            "there are no {seeds} seeds from {seed} on"
        )));
    }
    let policies = arguments.policies.iter();
    let policies = policies.map(|words| policy(arguments, words));
    let cpus = lab.host().topology.cpus();
    Ok(Cell {
        policies: policies.collect::<Result<_, _>>()?,
        ideal: ideal_of_host(&stock, cpus),
        seeds: arguments.seeds,
        cpus,
        stock,
    })
}

/// The scenario with that change.
fn policy(arguments: &LabCompareArguments, words: &str) -> Result<Policy, Failure> {
    let refused =
        |error: &dyn std::fmt::Display| Failure::Usage(format!("--policy {words}: {error}"));
    let change = Change::parse(words).map_err(|error| refused(&error))?;
    let mut given: ScenarioArguments = arguments.scenario.clone();
    given.overrides.set.extend(change.set.iter().cloned());
    let scenario = given.load()?;
    Lab::new(&scenario).map_err(|error| refused(&error))?;
    Ok(Policy {
        name: words.to_owned(),
        set: change.set.join(" "),
        scenario,
    })
}

/// What the columns are.
fn say_what(document: &mut Document, cell: &Cell, compared: &Compared) {
    if cell.ideal.is_none() {
        document.note(format!(
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
    document.note(format!(
        "stock is {} as it is, under {scheduler}; seeds {} to {last}, the same for all; ratios pair by pair",
        stock.name, stock.seed
    ));
    if compared.draws_nothing {
        document.note(
            "every seed gave the same: this scenario draws nothing, so its intervals say nothing; draw its times, as in \
             hold = { exponential = \"1us\" }",
        );
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin lab conform`: what the lab predicts beside what was measured, cell by cell, and whether it puts locks and
//! policies into the same order.

use unspin_experiment::conform::{self, Conformance, HIT_RATIO, ORDERED_RATIO, Predicted};
use unspin_report::{Cell, Column, Table, Unit};

use crate::{
    commands::lab::args::LabConformArguments,
    terminal::{failure::Failure, output, progress::Experiment},
};

const CELLS: &[Column] = &[
    Column::new("group", "", Unit::Text),
    Column::new("lock", "lock", Unit::Text),
    Column::new("policy", "policy", Unit::Text),
    Column::new("measured_per_second", "measured ops/s", Unit::Count),
    Column::new("predicted_per_second", "predicted", Unit::Count),
    Column::new("predicted_least_per_second", "least", Unit::Count),
    Column::new("predicted_most_per_second", "most", Unit::Count),
    Column::new("ratio", "ratio", Unit::Ratio),
    Column::new("hit", "within 1.5", Unit::Text),
];
const ORDERS: &[Column] = &[
    Column::new("group", "", Unit::Text),
    Column::new("of", "of", Unit::Text),
    Column::new("pairs", "pairs", Unit::Count),
    Column::new("agree", "in the same order", Unit::Count),
    Column::new("others", "not", Unit::Text),
];

/// Predicts all cells and prints the tables.
pub fn run(arguments: &LabConformArguments) -> Result<(), Failure> {
    let Conformance { measured, cells } = conform::load(&arguments.file)?;
    let progress = Experiment::new(false);
    let (seeds, workers) = (arguments.seeds, arguments.workers);
    let all = conform::predict(cells, seeds, workers, &progress.session()?)?;
    let mut document = output::document("lab conform");
    document.table(cells_of(&all));
    document.table(orders(&all));
    let hits = all.iter().filter(|one| one.hits()).count();
    document.note(format!("measured: {}", measured));
    document.note(format!(
        "{hits} of {} cells within {HIT_RATIO}; predicted: means of {} seeds",
        all.len(),
        arguments.seeds
    ));
    document.note(format!(
        "pairs: of figures of which the larger is at least {ORDERED_RATIO} times the smaller"
    ));
    Ok(output::print(&document, arguments.output)?)
}

fn cells_of(all: &[Predicted]) -> Table {
    let mut table = Table::new("cell", "", CELLS);
    for one in all {
        let least = one.seeds.iter().copied().fold(f64::INFINITY, f64::min);
        let most = one.seeds.iter().copied().fold(0.0, f64::max);
        table.push(vec![
            one.cell.group.clone().into(),
            one.cell.lock.clone().into(),
            one.cell.policy.clone().into(),
            Cell::Real(one.cell.per_second),
            Cell::Real(one.mean()),
            Cell::Real(least),
            Cell::Real(most),
            Cell::Real(one.ratio()),
            if one.hits() { "yes" } else { "no" }.into(),
        ]);
    }
    table
}

fn orders(all: &[Predicted]) -> Table {
    let mut table = Table::new("order", "", ORDERS);
    for order in conform::orders(all) {
        table.push(vec![
            order.group.into(),
            order.of.into(),
            Cell::Integer(order.pairs),
            Cell::Integer(order.pairs - order.others.len() as u64),
            order.others.join("; ").into(),
        ]);
    }
    table
}

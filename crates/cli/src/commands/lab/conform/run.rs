// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin lab conform`: what the lab predicts beside what was measured, cell by cell, and whether it puts locks and
//! policies into the same order.

use unspin_lab::pool as lab_pool;
use unspin_report::{Cell, Column, Table, Unit};
use unspin_scenario::{Scenario, limits::SEED_MAX};

use crate::{
    commands::lab::{
        args::LabConformArguments,
        conform::measured_file::{self as lab_conform_file, Measured},
    },
    terminal::{failure::Failure, interrupt, output, progress::Steps},
};

/// A prediction hits within this ratio, either way.
const HIT_RATIO: f64 = 1.5;
/// Two measured figures have an order when the larger is so many times the smaller; below that, seeds decide.
const ORDERED_RATIO: f64 = 1.1;

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

/// A cell and what the seeds came to, operations per second.
struct Predicted {
    cell: Measured,
    seeds: Vec<f64>,
}

impl Predicted {
    fn mean(&self) -> f64 {
        self.seeds.iter().sum::<f64>() / self.seeds.len() as f64
    }

    fn ratio(&self) -> f64 {
        self.mean() / self.cell.per_second
    }

    fn hits(&self) -> bool {
        (1.0 / HIT_RATIO..=HIT_RATIO).contains(&self.ratio())
    }
}

/// Predicts all cells and prints the tables.
pub fn run(arguments: &LabConformArguments) -> Result<(), Failure> {
    let read = lab_conform_file::load(&arguments.file)?;
    let seeds = u64::from(arguments.seeds);
    let mut jobs: Vec<(usize, Scenario)> = Vec::new();
    for (place, cell) in read.cells.iter().enumerate() {
        if cell.scenario.seed > SEED_MAX - seeds {
            return Err(Failure::Usage(format!(
                "there are no {seeds} seeds from {} on",
                cell.scenario.seed
            )));
        }
        for seed in 0..seeds {
            let mut scenario = cell.scenario.clone();
            scenario.seed += seed;
            jobs.push((place, scenario));
        }
    }
    let mut results = vec![f64::NAN; jobs.len()];
    let steps = Steps::with_rest(jobs.len(), "predicting");
    let mut finished = 0;
    lab_pool::each(
        &jobs,
        lab_pool::workers(arguments.workers),
        &*interrupt::flag()?,
        |(_, scenario)| {
            let outcome = lab_pool::run_one(scenario)?;
            Ok::<_, Failure>(outcome.operations(None) as f64 * 1e9 / outcome.window_ns as f64)
        },
        |place, per_second| {
            results[place] = per_second;
            finished += 1;
            steps.done(finished);
            Ok(())
        },
    )?;
    drop(steps);
    let mut all: Vec<Predicted> = read
        .cells
        .into_iter()
        .map(|cell| Predicted {
            cell,
            seeds: Vec::new(),
        })
        .collect();
    for ((place, _), per_second) in jobs.iter().zip(results) {
        all[*place].seeds.push(per_second);
    }
    let mut document = output::document("lab conform");
    document.table(cells(&all));
    document.table(orders(&all));
    let hits = all.iter().filter(|one| one.hits()).count();
    document.note(format!("measured: {}", read.measured));
    document.note(format!(
        "{hits} of {} cells within {HIT_RATIO}; predicted: means of {seeds} seeds",
        all.len()
    ));
    document.note(format!(
        "pairs: of figures of which the larger is at least {ORDERED_RATIO} times the smaller"
    ));
    Ok(output::print(&document, arguments.output)?)
}

fn cells(all: &[Predicted]) -> Table {
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
    let mut groups: Vec<&str> = all.iter().map(|one| one.cell.group.as_str()).collect();
    groups.dedup();
    for group in groups {
        let cells: Vec<&Predicted> = all.iter().filter(|one| one.cell.group == group).collect();
        for (of, same) in [
            (
                "locks",
                (|one, other| one.cell.policy == other.cell.policy)
                    as fn(&Predicted, &Predicted) -> bool,
            ),
            ("policies", |one, other| one.cell.lock == other.cell.lock),
        ] {
            let (pairs, others) = order(&cells, same);
            if pairs > 0 {
                table.push(vec![
                    group.into(),
                    of.into(),
                    Cell::Integer(pairs),
                    Cell::Integer(pairs - others.len() as u64),
                    others.join("; ").into(),
                ]);
            }
        }
    }
    table
}

/// How many pairs of cells that belong together have an order, and those that the lab puts into another.
fn order(cells: &[&Predicted], same: fn(&Predicted, &Predicted) -> bool) -> (u64, Vec<String>) {
    let (mut pairs, mut others) = (0, Vec::new());
    for (place, one) in cells.iter().enumerate() {
        for other in cells[place + 1..].iter().filter(|other| same(one, other)) {
            let (low, high) = match one.cell.per_second < other.cell.per_second {
                true => (one, other),
                false => (other, one),
            };
            if high.cell.per_second < low.cell.per_second * ORDERED_RATIO {
                continue;
            }
            pairs += 1;
            if high.mean() <= low.mean() {
                let name = |one: &Predicted| format!("{} {}", one.cell.lock, one.cell.policy);
                others.push(format!("{} above {}", name(high), name(low)));
            }
        }
    }
    (pairs, others)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn predicted(lock: &str, policy: &str, measured: f64, seeds: &[f64]) -> Predicted {
        let text = "iterations = 1\n[[vm]]\nvcpus = 1\nlock = \"ticket\"\nhold = \"1us\"\n";
        let cell = Measured {
            group: "g".into(),
            lock: lock.into(),
            policy: policy.into(),
            per_second: measured,
            scenario: Scenario::parse(text, "s").expect("valid"),
        };
        Predicted {
            cell,
            seeds: seeds.to_vec(),
        }
    }

    #[test]
    fn what_hits_and_what_is_in_order() {
        let stock = predicted("ticket", "stock", 100.0, &[140.0, 160.0]);
        let loan = predicted("ticket", "loan", 1_000.0, &[600.0]);
        let near = predicted("ticket", "near", 105.0, &[1.0]);
        let other = predicted("mcs", "stock", 50.0, &[151.0]);
        assert!(stock.hits() && !loan.hits());
        let cells = [&stock, &loan, &near, &other];
        let (pairs, others) = order(&cells, |one, other| one.cell.lock == other.cell.lock);
        // stock and near have no order; loan is above both.
        assert_eq!((pairs, others.len()), (2, 0));
        let (pairs, others) = order(&cells, |one, other| one.cell.policy == other.cell.policy);
        assert_eq!(
            (pairs, others),
            (1, vec!["ticket stock above mcs stock".to_owned()])
        );
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the lab predicts beside what was measured, cell by cell, and whether it puts locks and policies into the same order
//! (`unspin lab conform`).

mod measured_file;
mod rows;

pub use measured_file::{Conformance, Measured, load};
pub use rows::{CellRow, OrderRow, cell_rows, order_rows};
use unspin_lab::pool;
use unspin_scenario::{Scenario, limits::SEED_MAX};

use crate::{Error, Session, Work};

/// A prediction hits within this ratio, either way.
pub const HIT_RATIO: f64 = 1.5;
/// Two measured figures have an order when the larger is so many times the smaller; below that, seeds decide.
pub const ORDERED_RATIO: f64 = 1.1;

/// A cell and what the seeds came to, operations per second.
pub struct Predicted {
    /// What was measured.
    pub cell: Measured,
    /// What the lab came to, seed by seed.
    pub seeds: Vec<f64>,
}

impl Predicted {
    /// Of all seeds.
    pub fn mean(&self) -> f64 {
        self.seeds.iter().sum::<f64>() / self.seeds.len() as f64
    }

    /// Predicted by measured.
    pub fn ratio(&self) -> f64 {
        self.mean() / self.cell.per_second
    }

    /// Whether it is within [`HIT_RATIO`].
    pub fn hits(&self) -> bool {
        (1.0 / HIT_RATIO..=HIT_RATIO).contains(&self.ratio())
    }
}

/// Runs every cell with so many seeds, from its scenario's on, on so many workers (as many as CPUs when absent).
///
/// # Errors
/// Seeds that are not there, a cell that cannot run, an interrupt.
pub fn predict(
    cells: Vec<Measured>,
    seeds: u32,
    workers: Option<u32>,
    session: &Session<'_>,
) -> Result<Vec<Predicted>, Error> {
    let seeds = u64::from(seeds);
    let mut jobs: Vec<(usize, Scenario)> = Vec::new();
    for (place, cell) in cells.iter().enumerate() {
        if cell.scenario.seed > SEED_MAX - seeds {
            return Err(Error::Usage(format!(
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
    let mut finished = 0;
    let progress = session.progress;
    progress.begin("predicting", Work::EvenSteps(jobs.len()));
    let interrupt = &session.interrupt;
    let ended = pool::each(
        &jobs,
        pool::workers(workers),
        interrupt,
        |(_, scenario)| {
            let outcome = pool::run_one(scenario, interrupt)?;
            Ok::<_, Error>(outcome.operations(None) as f64 * 1e9 / outcome.window_ns as f64)
        },
        |place, per_second| {
            results[place] = per_second;
            finished += 1;
            progress.done(finished);
            Ok(())
        },
    );
    progress.end();
    ended?;
    let mut all: Vec<Predicted> = cells
        .into_iter()
        .map(|cell| Predicted {
            cell,
            seeds: Vec::new(),
        })
        .collect();
    for ((place, _), per_second) in jobs.iter().zip(results) {
        all[*place].seeds.push(per_second);
    }
    Ok(all)
}

/// How cells of a group that differ in one thing alone are put into order.
pub struct Order {
    /// The group.
    pub group: String,
    /// What they differ in: "locks" or "policies".
    pub of: &'static str,
    /// Pairs that have an order.
    pub pairs: u64,
    /// Those that the lab puts into another, in words.
    pub others: Vec<String>,
}

/// Of each group, its locks and its policies; those of which no pair has an order are left out.
pub fn orders(all: &[Predicted]) -> Vec<Order> {
    let mut orders = Vec::new();
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
                orders.push(Order {
                    group: group.to_owned(),
                    of,
                    pairs,
                    others,
                });
            }
        }
    }
    orders
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
            pcpus: 2,
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

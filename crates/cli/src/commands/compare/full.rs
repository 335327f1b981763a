// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin compare --full`: every cell of the matrix that has not been measured yet, then all of them together.

use std::time::{Duration, Instant};

use unspin_experiment::{
    matrix::{Common, Matrix},
    prediction,
};
use unspin_report::{Document, Machine};

use crate::{
    commands::compare::{args::CompareArguments, costs, tables as compare_table},
    terminal::{
        failure::{Failure, abort},
        output,
        progress::Experiment,
    },
};

/// Length of a sample when nothing else is said.
const SAMPLE: Duration = Duration::from_millis(500);

/// Measures what is missing and prints everything.
pub fn run(arguments: &CompareArguments) -> Result<(), Failure> {
    let begin = Instant::now();
    let common = Common {
        pairs: arguments.pairs,
        sample: arguments.sample.unwrap_or(SAMPLE),
        discard: arguments.discard,
        observe: arguments.observe.into(),
    };
    let here = arguments.on_this_host;
    let costs = costs(arguments, !here)?;
    let mut matrix = Matrix::open(common, here, &arguments.out, arguments.keep)?;
    if matrix.others() > 0 {
        eprintln!(
            "unspin compare: {} of the cells in {} were measured by another binary and stay as they are",
            matrix.others(),
            arguments.out.display()
        );
    }
    let missing = matrix.missing();
    eprintln!(
        "unspin compare: {} cells, {} of them measured before",
        matrix.cells(),
        matrix.cells() - missing
    );
    let mut progress = Progress::new(begin, missing);
    let shown = Experiment::new(false);
    let machine = Machine::here(output::in_testbed()).to_string();
    matrix.measure(&machine, &shown.session()?, abort, |cell| {
        progress.say(cell);
    })?;
    print(arguments, &matrix, costs.as_deref())
}

fn print(
    arguments: &CompareArguments,
    matrix: &Matrix,
    costs: Option<&[String]>,
) -> Result<(), Failure> {
    let rows = matrix.rows();
    let samples = matrix.finished().flat_map(|one| one.samples.clone());
    let vms = matrix.finished().flat_map(|one| one.vms.clone());
    let first = matrix.finished().next();
    let mut document = Document::new("compare", first.map_or("", |first| &first.machine));
    compare_table::add(&mut document, &rows);
    compare_table::add_vms(&mut document, &vms.collect::<Vec<_>>());
    compare_table::add_samples(&mut document, &samples.collect::<Vec<_>>());
    compare_table::add_pooled(&mut document, &rows);
    if let Some(costs) = costs {
        predict(&mut document, matrix, costs, arguments.prediction.lab_seeds)?;
    }
    Ok(output::print(&document, arguments.output)?)
}

/// What the lab says of every cell that has been measured.
fn predict(
    document: &mut Document,
    matrix: &Matrix,
    costs: &[String],
    seeds: u32,
) -> Result<(), Failure> {
    let mut measured = Vec::new();
    for (cell, finished) in matrix.measured() {
        measured.push((cell.scenario()?, &cell.plan, finished));
    }
    let cells = measured.iter();
    let cells = cells.map(|(scenario, plan, finished)| prediction::Compared {
        scenario,
        plan,
        rows: finished.rows.iter().collect(),
    });
    compare_table::add_predictions(document, &cells.collect::<Vec<_>>(), costs, seeds)
}

/// A line for each cell, with what is left, for whoever runs this for an hour without a terminal.
struct Progress {
    begin: Instant,
    total: usize,
    done: usize,
}

impl Progress {
    fn new(begin: Instant, total: usize) -> Progress {
        Progress {
            begin,
            total,
            done: 0,
        }
    }

    fn say(&mut self, cell: &str) {
        self.done += 1;
        let spent = self.begin.elapsed();
        eprintln!(
            "unspin compare: {} of {} after {} s, about {} s to go: {cell}",
            self.done,
            self.total,
            spent.as_secs(),
            left(spent, self.done, self.total).as_secs()
        );
    }
}

/// What the rest takes if it goes on as before; cells that take longest come first, so it is rather less.
fn left(spent: Duration, done: usize, total: usize) -> Duration {
    spent.mul_f64((total - done) as f64 / done.max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_follows_from_what_was_done() {
        let second = Duration::from_secs(1);
        assert_eq!(left(10 * second, 2, 6), 20 * second);
        assert_eq!(left(10 * second, 6, 6), Duration::ZERO);
    }
}

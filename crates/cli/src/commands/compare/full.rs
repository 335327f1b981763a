// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin compare --full`: every cell of the matrix that has not been measured yet, then all of them together.

use std::time::{Duration, Instant};

use unspin_experiment::{
    Row, TableFile,
    cells::{Cell, Finished, in_testbeds},
    kvm::Figures,
    matrix::{Common, cells},
    prediction,
};
use unspin_report::{Document, Machine};

use crate::{
    commands::compare::{
        args::CompareArguments, costs, prediction as compare_lab, tables as compare_table,
    },
    terminal::{
        failure::{Failure, abort},
        output,
        progress::Experiment,
    },
};

/// Length of a sample when nothing else is said.
const SAMPLE: Duration = Duration::from_millis(500);

/// A cell and its name in the file.
struct Named {
    name: String,
    cell: Cell,
}

/// Measures what is missing and prints everything.
pub fn run(arguments: &CompareArguments) -> Result<(), Failure> {
    let begin = Instant::now();
    let common = Common {
        pairs: arguments.pairs,
        sample: arguments.sample.unwrap_or(SAMPLE),
        discard: arguments.discard,
        observe: arguments.observe.into(),
    };
    let costs = costs(arguments, !arguments.on_this_host)?;
    let all = named(common, arguments.on_this_host)?;
    let mut file = TableFile::open(&arguments.out, arguments.keep)?;
    if file.others() > 0 {
        eprintln!(
            "unspin compare: {} of the cells in {} were measured by another binary and stay as they are",
            file.others(),
            arguments.out.display()
        );
    }
    let missing: Vec<&Named> = all
        .iter()
        .filter(|named| file.finished(&named.name).is_none())
        .collect();
    eprintln!(
        "unspin compare: {} cells, {} of them measured before",
        all.len(),
        all.len() - missing.len()
    );
    let mut progress = Progress::new(begin, missing.len());
    let shown = Experiment::new(false);
    let session = shown.session()?;
    if arguments.on_this_host {
        let machine = Machine::here(output::in_testbed()).to_string();
        for named in &missing {
            let finished = named.cell.on_this_host(&machine, &session)?;
            file.add(Finished {
                cell: named.name.clone(),
                ..finished
            })?;
            progress.say(&named.cell.name());
        }
    } else {
        let cells: Vec<&Cell> = missing.iter().map(|named| &named.cell).collect();
        in_testbeds(&cells, "comparing", &session, abort, |finished| {
            let of = missing.iter().find(|named| named.name == finished.cell);
            file.add(finished)?;
            progress.say(&of.map_or(String::new(), |named| named.cell.name()));
            Ok(())
        })?;
    }
    print(arguments, &all, &file, costs.as_deref())
}

fn named(common: Common, on_this_host: bool) -> Result<Vec<Named>, Failure> {
    cells(common, on_this_host)
        .into_iter()
        .map(|cell| {
            let place = if on_this_host { "host" } else { "testbed" };
            let name = match on_this_host {
                true => format!("{place} {}", cell.identity()?),
                false => cell.identity()?,
            };
            Ok(Named { name, cell })
        })
        .collect()
}

fn print(
    arguments: &CompareArguments,
    all: &[Named],
    file: &TableFile,
    costs: Option<&[String]>,
) -> Result<(), Failure> {
    let finished: Vec<&Finished> = all
        .iter()
        .filter_map(|named| file.finished(&named.name))
        .collect();
    let machine = finished.first().map_or("", |first| first.machine.as_str());
    let mut rows: Vec<_> = finished.iter().flat_map(|one| one.rows.clone()).collect();
    rows.sort_by(|a, b| {
        let key = |row: &Row<Figures>| {
            (
                row.world.pv_page,
                row.world.ple_window,
                row.shape.clone(),
                row.world.lock.clone(),
            )
        };
        key(b).0.cmp(&key(a).0).then_with(|| key(a).cmp(&key(b)))
    });
    let samples = finished.iter().flat_map(|one| one.samples.clone());
    let samples: Vec<_> = samples.collect();
    let vms: Vec<_> = finished.iter().flat_map(|one| one.vms.clone()).collect();
    let mut document = Document::new("compare", machine);
    compare_table::add(&mut document, &rows);
    compare_table::add_vms(&mut document, &vms);
    compare_table::add_samples(&mut document, &samples);
    compare_table::add_pooled(&mut document, &rows);
    if let Some(costs) = costs {
        predict(
            &mut document,
            all,
            file,
            costs,
            arguments.prediction.lab_seeds,
        )?;
    }
    Ok(output::print(&document, arguments.output)?)
}

/// What the lab says of every cell that has been measured.
fn predict(
    document: &mut Document,
    all: &[Named],
    file: &TableFile,
    costs: &[String],
    seeds: u32,
) -> Result<(), Failure> {
    let scenarios: Vec<_> = all
        .iter()
        .map(|named| named.cell.scenario())
        .collect::<Result<_, _>>()?;
    let cells = all.iter().zip(&scenarios).filter_map(|(named, scenario)| {
        Some(prediction::Compared {
            scenario,
            plan: &named.cell.plan,
            rows: file.finished(&named.name)?.rows.iter().collect(),
        })
    });
    compare_lab::add(document, &cells.collect::<Vec<_>>(), costs, seeds)
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

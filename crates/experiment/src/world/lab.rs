// SPDX-License-Identifier: MIT OR Apache-2.0
//! The lab: every sample is a run of its own from its pair's seed, so all of them run beside one another, in any order.

mod cell;
mod known_error;
mod printed;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use unspin_lab::{Outcome, pool};
use unspin_report::{GapClosed, Harm, Summary};
use unspin_scenario::Scenario;

use crate::{
    Error, Row, Session,
    estimate::{Estimate, ratio},
    progress::Work,
    row,
    sample::{Sample as _, Samples},
    steps::{Column, Columns, Step, Unsteered, steps},
    world::{Taken, World, run},
};
pub use cell::{Cell, Policy, ideal_of_host};
use known_error::known_error;
pub use printed::{PolicyRow, SeedRow};

/// What one seed came to.
#[derive(Clone, Debug)]
pub struct Sample {
    /// The seed.
    pub seed: u64,
    /// Acquisitions per second of all VMs; not finite where no time passed.
    pub per_second: f64,
    /// Of each VM.
    pub each_vm: Vec<f64>,
    /// Length of the window.
    pub window_ns: u64,
    /// Events of the run.
    pub events: u64,
}

impl crate::Sample for Sample {
    fn per_second(&self) -> f64 {
        self.per_second
    }
}

/// What a row says of the lab beside what rows of all worlds say: stock and ideal are rows of their own here. The fields are
/// keys of the JSON rows.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub struct Figures {
    /// How its scenario differs from stock's, as `--set` takes it.
    pub set: String,
    /// The scenario's name.
    pub scenario: String,
    /// Of its canonical text.
    pub scenario_sha256: String,
    /// Of stock's.
    pub stock_sha256: String,
    /// Seeds.
    pub seeds: u64,
    /// Acquisitions per second of all VMs together, mean over the seeds.
    pub operations_per_second: Option<f64>,
    /// Standard deviation between seeds.
    pub deviation_per_second: Option<f64>,
    /// The least ratio to stock of a VM, each a geometric mean over the seeds; none where some VM did nothing.
    pub worst_vm_ratio: Option<f64>,
    /// By how much the lab's ratio to stock was off in measured cells like this one, either way: the median; 1 is right.
    #[serde(default)]
    pub lab_error: Option<f64>,
    /// The largest of them.
    #[serde(default)]
    pub lab_error_most: Option<f64>,
    /// How many there are.
    #[serde(default)]
    pub lab_error_cells: Option<u64>,
    /// Why it is not known: what no measured cell has.
    #[serde(default)]
    pub lab_error_unknown: Option<String>,
}

/// One seed of one column. The fields are the keys of the JSON rows.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub struct SampleRow {
    /// `stock`, `ideal` or the policy.
    pub policy: String,
    /// The seed.
    pub seed: u64,
    /// Acquisitions per second of all VMs; none where no time passed.
    pub operations_per_second: Option<f64>,
    /// Length of the window.
    pub window_ns: u64,
    /// Events of the run.
    pub events: u64,
}

/// What came of a cell.
#[derive(Clone, Debug)]
pub struct Compared {
    /// Stock, the policies, and the ideal.
    pub rows: Vec<Row<Figures>>,
    /// Every sample, in the same order.
    pub samples: Vec<SampleRow>,
    /// Whether every seed gave the same: a scenario that draws nothing has intervals that say nothing.
    pub draws_nothing: bool,
}

/// Runs all columns from all seeds with so many workers (`None`: one for each CPU). The same on every machine.
///
/// # Errors
/// A scenario that the lab cannot run, a model that makes no progress, or an interrupt.
pub fn compare(cell: &Cell, workers: Option<u32>, session: &Session) -> Result<Compared, Error> {
    let columns = Columns {
        ideal: cell.ideal.is_some(),
        // It would be the same, to the digit.
        null: false,
        policies: cell.policies.len(),
        unsteered: Unsteered::ALL,
        rivals: 0,
        steer: false,
    };
    let mut world = Lab {
        cell,
        workers: pool::workers(workers),
        session,
        jobs: Vec::new(),
    };
    let samples = run(&mut world, &steps(cell.seeds as usize, columns))?;
    Ok(compared(cell, &samples))
}

struct Lab<'a> {
    cell: &'a Cell,
    workers: usize,
    session: &'a Session<'a>,
    /// What is to be run.
    jobs: Vec<(Column, usize)>,
}

impl World for Lab<'_> {
    type Sample = Sample;

    /// Nothing goes on between samples: who schedules is part of a column's scenario.
    fn change(&mut self, _: Step) -> Result<(), Error> {
        Ok(())
    }

    fn measure(&mut self, column: Column, pair: usize) -> Result<Taken<Sample>, Error> {
        self.jobs.push((column, pair));
        Ok(Taken::Later)
    }

    fn finish(&mut self, samples: &mut Samples<Sample>) -> Result<(), Error> {
        let progress = self.session.progress;
        progress.begin("comparing", Work::EvenSteps(self.jobs.len()));
        let (cell, interrupt) = (self.cell, &self.session.interrupt);
        let mut finished = 0;
        let ended = pool::each(
            &self.jobs,
            self.workers,
            interrupt,
            |&(column, pair)| {
                let mut scenario = cell.scenario(column).clone();
                scenario.seed += pair as u64;
                Ok::<_, Error>(sample(&scenario, &pool::run_one(&scenario, interrupt)?))
            },
            |job, sample| {
                samples.taken.insert(self.jobs[job], sample);
                finished += 1;
                progress.done(finished);
                Ok(())
            },
        );
        progress.end();
        ended
    }
}

impl Cell {
    /// What runs in a column.
    fn scenario(&self, column: Column) -> &Scenario {
        match column {
            Column::Ideal => self.ideal.as_ref().expect("only then there is the column"),
            Column::Policy(at) => &self.policies[at].scenario,
            Column::Rival(_) | Column::Lock(_) => unreachable!("the lab has policies alone"),
            Column::Stock | Column::StockAgain | Column::RefuseYields => &self.stock,
        }
    }

    fn name(&self, column: Column) -> &str {
        match column {
            Column::Ideal => "ideal",
            Column::Policy(at) => &self.policies[at].name,
            Column::Rival(_) | Column::Lock(_) => unreachable!("the lab has policies alone"),
            Column::Stock | Column::StockAgain | Column::RefuseYields => "stock",
        }
    }

    /// In the order of the rows.
    fn columns(&self) -> Vec<Column> {
        let mut columns = vec![Column::Stock];
        columns.extend((0..self.policies.len()).map(Column::Policy));
        columns.extend(self.ideal.as_ref().map(|_| Column::Ideal));
        columns
    }
}

fn sample(scenario: &Scenario, outcome: &Outcome) -> Sample {
    let per_second = |operations: u64| match outcome.window_ns {
        0 => f64::NAN,
        ns => operations as f64 * 1e9 / ns as f64,
    };
    let vms: u32 = scenario.vms.iter().map(|vm| vm.count).sum();
    Sample {
        seed: scenario.seed,
        per_second: per_second(outcome.operations(None)),
        each_vm: (0..vms)
            .map(|vm| per_second(outcome.operations(Some(vm))))
            .collect(),
        window_ns: outcome.window_ns,
        events: outcome.trace_events,
    }
}

fn compared(cell: &Cell, samples: &Samples<Sample>) -> Compared {
    let columns = cell.columns();
    let rates = samples.rates(Column::Stock);
    let of_column = columns.iter().flat_map(|&column| {
        let of = samples.of(column).into_iter();
        of.map(move |sample| SampleRow {
            policy: cell.name(column).to_owned(),
            seed: sample.seed,
            operations_per_second: Some(sample.per_second()).filter(|rate| rate.is_finite()),
            window_ns: sample.window_ns,
            events: sample.events,
        })
    });
    Compared {
        samples: of_column.collect(),
        draws_nothing: rates.len() > 1 && rates.iter().all(|rate| *rate == rates[0]),
        rows: columns
            .iter()
            .map(|&column| row(cell, samples, column))
            .collect(),
    }
}

/// The row of a column.
fn row(cell: &Cell, samples: &Samples<Sample>, column: Column) -> Row<Figures> {
    let (rates, stock) = (samples.rates(column), samples.rates(Column::Stock));
    let is_policy = matches!(column, Column::Policy(_));
    let summary = Summary::of(&rates);
    let to_stock = (column != Column::Stock)
        .then(|| ratio(&rates, &stock))
        .flatten();
    let gap = match is_policy {
        true => GapClosed::of(&samples.rates(Column::Ideal), &stock, &rates),
        false => None,
    };
    let harm = to_stock.as_ref().filter(|_| is_policy);
    let scenario = cell.scenario(column);
    let known = is_policy.then(|| known_error(&cell.stock, cell.cpus, cell.name(column)));
    let error = known.as_ref().and_then(|known| known.as_ref().ok());
    let vcpus: u32 = scenario.vms.iter().map(|vm| vm.count * vm.vcpus).sum();
    Row {
        shape: row::shape(scenario),
        overcommit: Some(f64::from(vcpus) / f64::from(cell.cpus)),
        policy: Some(cell.name(column).to_owned()),
        to_ideal: None,
        null: None,
        refuse_yields: None,
        to_stock: to_stock.as_ref().map(Estimate::of_ratio),
        gap_closed: gap.as_ref().map(Estimate::of_gap),
        harm: harm.map(|ratio| Harm::of(ratio, Harm::CELL).name().to_owned()),
        pairs: rates.len() as u64,
        unusable_pairs: to_stock.map(|ratio| ratio.unusable_pairs as u64),
        world: Figures {
            set: match column {
                Column::Policy(at) => cell.policies[at].set.clone(),
                _ => String::new(),
            },
            scenario: scenario.name.clone(),
            scenario_sha256: scenario.hash(),
            stock_sha256: cell.stock.hash(),
            seeds: rates.len() as u64,
            operations_per_second: summary.map(|summary| summary.mean),
            deviation_per_second: summary.map(|summary| summary.deviation),
            worst_vm_ratio: match is_policy {
                true => worst_vm(&samples.of(Column::Stock), &samples.of(column)),
                false => None,
            },
            lab_error: error.map(|error| error.median_factor),
            lab_error_most: error.map(|error| error.largest_factor),
            lab_error_cells: error.map(|error| error.cells as u64),
            lab_error_unknown: known.and_then(Result::err),
        },
    }
}

/// The least ratio to stock of a VM; none where some VM did nothing.
fn worst_vm(stock: &[&Sample], policy: &[&Sample]) -> Option<f64> {
    let of = |samples: &[&Sample], vm: usize| -> Vec<f64> {
        let each = samples.iter();
        each.filter_map(|sample| sample.each_vm.get(vm).copied())
            .collect()
    };
    let vms = stock.first()?.each_vm.len();
    let ratios = (0..vms).map(|vm| {
        let compared = ratio(&of(policy, vm), &of(stock, vm))?;
        (compared.unusable_pairs == 0).then_some(compared.ratio)
    });
    let ratios: Option<Vec<f64>> = ratios.collect();
    ratios?.into_iter().reduce(f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;

    const TEXT: &str = "duration = \"10ms\"\nwarm_up = \"2ms\"\nseed = 5\n[host]\ncpus = 2\n[[vm]]\ncount = 2\nvcpus = 2\n\
                        lock = \"ticket\"\nhold = { exponential = \"2us\" }\nuser_work = { exponential = \"9us\" }\n";

    fn cell(seeds: u32) -> Cell {
        let stock = Scenario::parse(TEXT, "s.toml").expect("a scenario");
        let mut other = stock.clone();
        other.vms[0].pv_page = true;
        Cell {
            ideal: ideal_of_host(&stock, 2),
            cpus: 2,
            policies: vec![
                Policy {
                    name: "same".into(),
                    set: String::new(),
                    scenario: stock.clone(),
                },
                Policy {
                    name: "other".into(),
                    set: "vm.pv_page=true".into(),
                    scenario: other,
                },
            ],
            stock,
            seeds,
        }
    }

    #[test]
    fn a_policy_that_changes_nothing_is_stock_from_every_seed() {
        let compared = compare(&cell(3), None, &Session::quiet()).expect("it runs");
        let names: Vec<_> = compared
            .rows
            .iter()
            .map(|row| row.policy.as_deref())
            .collect();
        assert_eq!(
            names,
            [Some("stock"), Some("same"), Some("other"), Some("ideal")]
        );
        let [stock, same, other, ideal] = &compared.rows[..] else {
            panic!("{names:?}")
        };
        assert!(stock.to_stock.is_none() && stock.unusable_pairs.is_none());
        let to_stock = same.to_stock.expect("compared");
        assert_eq!(
            (to_stock.value, to_stock.verdict),
            (1.0, Verdict::NotResolved)
        );
        assert_eq!(same.world.worst_vm_ratio, Some(1.0));
        assert_eq!(same.harm.as_deref(), Some("no harm"));
        assert_eq!(
            same.world.operations_per_second,
            stock.world.operations_per_second
        );
        assert_eq!(other.world.set, "vm.pv_page=true");
        assert!(ideal.to_stock.is_some() && ideal.harm.is_none() && ideal.gap_closed.is_none());
        assert_eq!((stock.overcommit, ideal.overcommit), (Some(2.0), Some(1.0)));
        let seeds: Vec<_> = compared.samples.iter().map(|it| it.seed).collect();
        assert_eq!(seeds, [5, 6, 7, 5, 6, 7, 5, 6, 7, 5, 6, 7]);
        assert!(!compared.draws_nothing);
    }

    #[test]
    fn any_number_of_workers_gives_the_same() {
        let samples = |workers| {
            let compared = compare(&cell(2), Some(workers), &Session::quiet()).expect("it runs");
            serde_json::to_string(&compared.samples).expect("JSON")
        };
        assert_eq!(samples(1), samples(5));
    }

    #[test]
    fn a_host_larger_than_any_vm_has_no_ideal() {
        let stock = Scenario::parse(TEXT, "s.toml").expect("a scenario");
        assert!(ideal_of_host(&stock, unspin_scenario::limits::VCPUS_MAX + 1).is_none());
        let alone = ideal_of_host(&stock, 1).expect("it fits");
        assert_eq!((alone.vms[0].count, alone.vms[0].vcpus), (1, 1));
        let mut cell = cell(1);
        cell.ideal = None;
        let compared = compare(&cell, None, &Session::quiet()).expect("it runs");
        assert_eq!(compared.rows.len(), 3);
        let same = &compared.rows[1];
        assert_eq!(
            (same.gap_closed, same.to_stock.expect("one pair").low),
            (None, None)
        );
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin demo --predict`: what the lab says of the demo's table, in about a second; and beside the measured table, how far
//! that was off.

use unspin_experiment::{
    cells::{Cell, Finished},
    prediction::{Compared, planned, rates},
    shape,
};
use unspin_report::{Column, Document, GapClosed, Summary, Table, Unit};

use super::run::{POLICY, cells, fits};
use crate::{
    commands::{
        compare::{args::PredictionArguments, prediction},
        demo::args::DemoArguments,
    },
    terminal::{failure::Failure, output, progress::Experiment},
};

/// Seeds of each prediction.
const SEEDS: u32 = 3;

const COLUMNS: &[Column] = &[
    Column::new("shape", "VMs x vCPUs", Unit::Text),
    Column::new("lock", "lock", Unit::Text),
    Column::new("ideal_per_s", "ideal ops/s", Unit::Count),
    Column::new("stock_per_s", "stock ops/s", Unit::Count),
    Column::new("policy", "policy", Unit::Text),
    Column::new("steer_per_s", "policy ops/s", Unit::Count),
    Column::new("gap_closed", "gap closed", Unit::Ratio),
];

fn costs() -> Result<Vec<String>, Failure> {
    let arguments = PredictionArguments {
        lab: true,
        lab_costs: None,
        lab_seeds: SEEDS,
    };
    prediction::costs(&arguments, true)
}

/// Prints the predicted table.
///
/// # Errors
/// Ctrl-C; standard output that cannot be written.
pub fn run(arguments: &DemoArguments) -> Result<(), Failure> {
    let costs = costs()?;
    let progress = Experiment::new(false);
    let mut table = Table::new("prediction", "", COLUMNS);
    let mut cells = cells(arguments);
    cells.sort_by_key(|cell| cell.file);
    for cell in cells {
        let scenario = cell.scenario()?;
        let ple_window = scenario.host.ple_window.map(u64::from);
        let planned = planned(&scenario, &cell.plan, ple_window, &costs);
        let predicted = rates(&planned, SEEDS, &progress.session()?)?;
        // Ideal, stock, refuse-yields, and the one policy.
        let [ideal, stock, _, policy] = &predicted[..] else {
            continue;
        };
        let mean = |rates: &[f64]| Summary::of(rates).map(|summary| summary.mean);
        table.push(vec![
            shape(&scenario).into(),
            scenario.vms.first().map_or("", |vm| vm.lock.name()).into(),
            mean(ideal).into(),
            mean(stock).into(),
            POLICY.into(),
            mean(policy).into(),
            GapClosed::of(ideal, stock, policy)
                .filter(|_| !fits(cell.text))
                .map(|gap| gap.share)
                .into(),
        ]);
    }
    let mut document = output::document("demo --predict");
    document.note("What the lab PREDICTS for the demo's table, with the testbed's costs; none of it was measured:");
    document.table(table);
    Ok(output::print(&document, arguments.output)?)
}

/// Adds the lab's predictions beside what was measured in the testbed.
///
/// # Errors
/// Ctrl-C.
pub fn add(document: &mut Document, cells: &[Cell], finished: &[Finished]) -> Result<(), Failure> {
    let mut scenarios = Vec::new();
    for cell in cells {
        scenarios.push((cell.identity()?, cell.scenario()?, &cell.plan));
    }
    let mut compared = Vec::new();
    for one in finished {
        let of = scenarios
            .iter()
            .find(|(identity, ..)| *identity == one.cell);
        compared.extend(of.map(|(_, scenario, plan)| Compared {
            scenario,
            plan,
            rows: one.rows.iter().collect(),
        }));
    }
    prediction::add(document, &compared, &costs()?, SEEDS)
}

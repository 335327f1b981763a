// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin demo --predict`: what the lab says of the demo's table, in about a second; and beside the measured table, how far
//! that was off.

use unspin_experiment::{
    cells::{Cell, Finished},
    demo::{POLICY, cells, fits},
    prediction::{Compared, planned, rates},
    shape,
};
use unspin_report::{Document, GapClosed, Summary, Table, row};

use crate::{
    commands::{compare::prediction, demo::args::DemoArguments},
    terminal::{failure::Failure, output, progress::Experiment},
};

/// Seeds of each prediction.
const SEEDS: u32 = 3;

row! {
    "prediction", ["demo --predict"];
    /// What the lab predicts of a row of the demo's table; means over the seeds.
    struct PredictedRow {
        /// VMs x vCPUs, as in `2x4`.
        shape: String = ("VMs x vCPUs", Text),
        /// The first group's lock.
        lock: String = ("lock", Text),
        /// Acquisitions per second of all VMs together, of the ideal.
        ideal_per_s: Option<f64> = ("ideal ops/s", Count),
        /// Under the host's own scheduler.
        stock_per_s: Option<f64> = ("stock ops/s", Count),
        /// The policy.
        policy: String = ("policy", Text),
        /// With the policy.
        steer_per_s: Option<f64> = ("policy ops/s", Count),
        /// (policy - stock) / (ideal - stock); none where all fits.
        gap_closed: Option<f64> = ("gap closed", Ratio),
    }
}

/// The deterministic testbed's.
fn costs() -> Result<Vec<String>, Failure> {
    Ok(unspin_experiment::prediction::costs(None, true)?)
}

/// Prints the predicted table.
///
/// # Errors
/// Ctrl-C; standard output that cannot be written.
pub fn run(arguments: &DemoArguments) -> Result<(), Failure> {
    let costs = costs()?;
    let progress = Experiment::new(false);
    let mut rows = Vec::new();
    let mut cells = cells(arguments.pairs, false);
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
        rows.push(PredictedRow {
            shape: shape(&scenario),
            lock: scenario.vms[0].lock.name().to_owned(),
            ideal_per_s: mean(ideal),
            stock_per_s: mean(stock),
            policy: POLICY.to_owned(),
            steer_per_s: mean(policy),
            gap_closed: GapClosed::of(ideal, stock, policy)
                .filter(|_| !fits(cell.text))
                .map(|gap| gap.share),
        });
    }
    let mut document = output::document("demo --predict");
    document.note("What the lab PREDICTS for the demo's table, with the testbed's costs; none of it was measured:");
    document.table(Table::of("", rows));
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

// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin outcomes`: what every pause-loop exit was for, what became of it, and what it cost.

pub(crate) mod args;

use std::path::Path;

use anyhow::Context;
use args::{OutcomesArguments, WindowWord, is_scenario};
use unspin_analysis::{
    Symbols, WindowUnit,
    outcomes::{Assumed, Workload, cost, figures, reasons},
    read_symbols,
};
use unspin_experiment::{
    vm_run::{Watch, execute},
    watch::{Events, Observe},
};
use unspin_report::{Document, Machine, Table};
use unspin_scenario::Scenario;

use crate::terminal::{failure::Failure, output, progress::Experiment};

/// Reads the recordings and prints the tables.
pub fn run(arguments: &OutcomesArguments) -> Result<(), Failure> {
    let symbols = arguments.symbols.as_deref().map(read_symbols).transpose()?;
    let assumed = assumed(arguments);
    let mut workloads = Vec::new();
    for path in &arguments.recordings {
        workloads.push(match is_scenario(path) {
            true => run_now(path, arguments, &assumed)?,
            false => Workload::read(path, &assumed)?,
        });
    }
    if arguments.guests.len() > workloads.len() {
        let message = "there are more --guest files than recordings".to_owned();
        return Err(Failure::Usage(message));
    }
    for (path, workload) in arguments.guests.iter().zip(&mut workloads) {
        workload.add_guests(path)?;
    }
    let mut machines: Vec<&str> = workloads.iter().map(|found| &*found.machine).collect();
    machines.dedup();
    let mut document = Document::new("outcomes", machines.join("; "));
    for table in tables(&workloads, symbols.as_ref()) {
        document.table(table);
    }
    for line in workloads.iter().flat_map(Workload::notes) {
        document.note(line);
    }
    output::print(&document, arguments.output)?;
    Ok(())
}

/// Runs a scenario here and now, and analyses it, its events in memory.
fn run_now(
    path: &Path,
    arguments: &OutcomesArguments,
    assumed: &Assumed,
) -> Result<Workload, Failure> {
    let scenario = Scenario::load(path, &arguments.overrides.overrides()?)?;
    let watch = Watch::start(Observe::On, Events::Required)?;
    let run = execute(scenario, watch, &Experiment::new(false).session()?)?;
    let seen = run.seen.as_ref().context("nothing was observed")?;
    let machine = Machine::here(output::in_testbed()).to_string();
    Ok(seen.outcomes(&run.report, run.scenario.name.clone(), machine, assumed))
}

fn assumed(arguments: &OutcomesArguments) -> Assumed {
    let tsc_khz = arguments.tsc_khz;
    Assumed {
        window_unit: match arguments.window_unit {
            Some(WindowWord::Pauses) => WindowUnit::Pauses,
            Some(WindowWord::Cycles) => WindowUnit::Cycles { tsc_khz },
            None => WindowUnit::Unknown,
        },
        tsc_khz,
        linux_vectors: arguments.linux,
    }
}

/// In the order of the papers' figures.
fn tables(workloads: &[Workload], symbols: Option<&Symbols>) -> [Table; 9] {
    [
        Table::of(
            "Pause-loop exits (VEE'21, Figure 3)",
            figures::exits(workloads),
        ),
        Table::of(
            "Continuous runs, weighted by exits (VEE'21, Figure 4; ruling 29)",
            figures::runs(workloads),
        ),
        Table::of(
            "What they waited for (VEE'21, Figure 5; rulings 33 and 34)",
            reasons::reasons(workloads, symbols),
        ),
        Table::of(
            "What became of them (VEE'21, Figure 6; ruling 28)",
            figures::outcomes(workloads),
        ),
        Table::of(
            "Where they spun, the busiest locations of each VM",
            reasons::locations(workloads, symbols),
        ),
        Table::of(
            "Inefficiency: windows spun through and exits handled, of the vCPUs' CPU time, over epochs of 1,000 exits \
             (APPLE; ruling 17)",
            cost::inefficiency(workloads),
        ),
        Table::of("", cost::epochs(workloads)),
        Table::of(
            "IPIs: what their receivers were doing, and how long those off their pCPU took to get one",
            cost::ipis(workloads),
        ),
        Table::of("", cost::longest_ipis(workloads)),
    ]
}

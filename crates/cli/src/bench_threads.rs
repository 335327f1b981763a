// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin bench threads`: the locks between threads, as a table.

use unspin_abi::LockKind;
use unspin_bench::{
    Cell, ThreadsReport,
    threads::{self, ThreadsOptions},
};
use unspin_report::{Column, Summary, Table, Unit};
use unspin_scenario::Scenario;

use crate::{arguments::ThreadsArguments, failure::Failure, interrupt, output, progress::Steps};

/// What runs when no scenario is given.
const NATIVE: &str = include_str!("../../../scenarios/threads/native.toml");

const COLUMNS: &[Column] = &[
    Column::new("lock", "lock", Unit::Text),
    Column::new("threads", "threads", Unit::Count),
    Column::json_only("groups", Unit::Count),
    Column::json_only("cpus", Unit::Count),
    Column::new("samples", "samples", Unit::Count),
    Column::new("operations_per_second", "ops/s (mean)", Unit::Count),
    Column::new("operations_per_second_low", "95 % from", Unit::Count),
    Column::new("operations_per_second_high", "to", Unit::Count),
    Column::new("operations_per_second_least", "least", Unit::Count),
    Column::new("operations_per_second_most", "most", Unit::Count),
    Column::json_only("operations_per_second_deviation", Unit::Count),
    Column::new("waiting_share_percent", "waiting %", Unit::Percent),
    Column::new("longest_wait_ns", "longest wait", Unit::Nanoseconds),
    Column::new("fairness_ratio", "fairness", Unit::Ratio),
    Column::json_only("hold_mean_ns", Unit::Nanoseconds),
    Column::json_only("uncontended_cycles", Unit::Count),
    Column::json_only("tau_ns", Unit::Nanoseconds),
    Column::json_only("pauses", Unit::Count),
    Column::json_only("waits", Unit::Count),
    Column::json_only("acquisitions", Unit::Count),
    Column::new("stalls", "stalls", Unit::Count),
    Column::new("stalls_unheld", "of them unheld", Unit::Count),
    Column::new("waiter_share_of_stalls_percent", "unheld %", Unit::Percent),
];

/// Runs every lock with every number of threads, and prints a row for each.
pub fn run(arguments: &ThreadsArguments) -> Result<(), Failure> {
    let scenario = scenario(arguments)?;
    let locks = locks(&arguments.locks)?;
    let interrupt = interrupt::flag()?;
    let options = ThreadsOptions {
        scenario: &scenario,
        locks,
        threads: arguments.threads.clone(),
        repeat: arguments.repeat,
        interrupt: &interrupt,
    };
    let cells = options.locks.len().max(1) * options.threads.len().max(1);
    let steps = Steps::start(cells * arguments.repeat as usize, "samples");
    let report = threads::run(&options, &mut |done, _| steps.done(done))?;
    drop(steps);
    let mut table = Table::new("threads", "", COLUMNS);
    for cell in &report.cells {
        table.push(row(cell, &report));
    }
    let mut document = output::document("bench threads");
    document.note(format!(
        "{}: {} CPUs, seed {}, scenario {}",
        scenario.name,
        report.cpus,
        scenario.seed,
        scenario.hash()
    ));
    document.note(format!(
        "tau of preemptable_ticket: {} turns = {:.1} us here",
        report.tau_turns,
        report.tau_ns / 1e3
    ));
    document.table(table);
    output::print(&document, arguments.output)?;
    Ok(())
}

fn scenario(arguments: &ThreadsArguments) -> Result<Scenario, Failure> {
    let overrides = arguments.overrides.overrides()?;
    Ok(match &arguments.file {
        Some(file) => Scenario::load(file, &overrides)?,
        None => Scenario::parse_with(NATIVE, "the built-in scenario", "native", &overrides)?,
    })
}

fn locks(names: &[String]) -> Result<Vec<LockKind>, Failure> {
    let find = |name: &String| {
        LockKind::from_name(name).ok_or_else(|| {
            let known: Vec<_> = LockKind::all().map(LockKind::name).collect();
            Failure::Usage(format!(
                "--lock {name}: there is no such lock; there are {}",
                known.join(", ")
            ))
        })
    };
    names.iter().map(find).collect()
}

fn row(cell: &Cell, report: &ThreadsReport) -> Vec<unspin_report::Cell> {
    let figures = cell.figures();
    let rates = Summary::of(&cell.operations_per_second());
    vec![
        cell.lock.clone().into(),
        cell.threads.into(),
        cell.groups.into(),
        report.cpus.into(),
        cell.samples.len().into(),
        rates.map(|rates| rates.mean).into(),
        rates.map(|rates| rates.interval.low.max(0.0)).into(),
        rates.map(|rates| rates.interval.high).into(),
        rates.map(|rates| rates.least).into(),
        rates.map(|rates| rates.largest).into(),
        rates.map(|rates| rates.deviation).into(),
        figures.waiting_share_percent.into(),
        (figures.longest_wait_us * 1e3).into(),
        figures.fairness.into(),
        figures.hold_mean_ns.into(),
        figures.uncontended_cycles.into(),
        report.tau_ns.into(),
        figures.pauses.into(),
        figures.waits.into(),
        figures.acquisitions.into(),
        figures.stalls.into(),
        figures.stalls_unheld.into(),
        figures.waiter_share_of_stalls_percent.into(),
    ]
}

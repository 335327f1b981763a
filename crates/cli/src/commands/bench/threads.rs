// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin bench threads`: the locks between threads, as a table.

use unspin_experiment::{
    plot,
    threads::{Given, Matrix, Measured, NATIVE, Settings, measure},
};
use unspin_lockbench::Contender;
use unspin_report::{Document, Table};
use unspin_scenario::Scenario;

use crate::{
    commands::bench::args::{self, ThreadsArguments},
    terminal::{failure::Failure, output, progress::Experiment},
};

/// Runs every lock at every point, and prints a row for each, and how our best does against the best baseline.
pub fn run(arguments: &ThreadsArguments) -> Result<(), Failure> {
    let overrides = arguments.overrides.overrides()?;
    let mut scenario = match &arguments.file {
        Some(file) => Scenario::load(file, &overrides)?,
        None => Scenario::parse_with(NATIVE, "the built-in scenario", "native", &overrides)?,
    };
    let matrix = arguments.matrix.map(|matrix| match matrix {
        args::Matrix::Quick => Matrix::Quick,
        args::Matrix::Full => Matrix::Full,
    });
    if let (Some(matrix), None) = (matrix, &arguments.overrides.duration) {
        matrix.set_length(&mut scenario);
    }
    let settings = Settings {
        scenario: scenario.clone(),
        given: Given {
            locks: arguments.locks.clone(),
            baselines: arguments.baselines.clone(),
            threads: arguments.threads.clone(),
            holds: arguments.hold.clone(),
            thinks: arguments.think.clone(),
            neighbours: arguments.neighbours.clone(),
        },
        matrix,
        run_states: arguments.run_states.into(),
        grants: arguments.grants,
        slice_extension: arguments.slice_extension,
        repeat: arguments.repeat,
    };
    let measured = measure(settings, &Experiment::new(false).session()?)?;
    if let Some(file) = &arguments.plot {
        plot::write(file, &measured.marks(), "threads")?;
    }
    let mut document = output::document("bench threads");
    notes(&mut document, &scenario, &measured);
    document.table(Table::of("", measured.cell_rows()));
    if !measured.points.is_empty() {
        let title = "Our best against the best baseline whose Jain's index is not lower by more than 0.05, both chosen on one \
                     half of the runs, worst first";
        document.table(Table::of(title, measured.point_rows()));
    }
    output::print(&document, arguments.output)?;
    Ok(())
}

fn notes(document: &mut Document, scenario: &Scenario, measured: &Measured) {
    let report = &measured.report;
    document.note(format!(
        "{}: {} CPUs, seed {}, scenario {}",
        scenario.name,
        report.cpus,
        scenario.seed,
        scenario.hash()
    ));
    document.note(format!(
        "tau of preemptable_ticket: {} spins = {:.1} us here",
        report.tau_spins,
        report.tau_ns / 1e3
    ));
    document.note(format!("run_states: {}", measured.run_states));
    document.note(format!(
        "time-slice extension: {}",
        measured.slice_extension
    ));
    let missing = Contender::missing_baselines();
    if !missing.is_empty() {
        let missing = missing.join(", ");
        document.note(format!(
            "not in this build (libck-dev was missing): {missing}"
        ));
    }
}

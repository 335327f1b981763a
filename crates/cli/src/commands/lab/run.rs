// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin lab run`: one run of one scenario.

use unspin_experiment::lab_run::{Keep, Kept, run as run_lab};
use unspin_report::Table;

use crate::{
    commands::lab::{args::LabRunArguments, load},
    terminal::{failure::Failure, output, progress::Experiment},
};

/// Runs and prints the tables.
pub fn run(arguments: &LabRunArguments) -> Result<(), Failure> {
    let (scenario, lab) = load::load(&arguments.scenario)?;
    let (keep, path) = match (&arguments.trace, &arguments.record) {
        (Some(path), _) => (Keep::Trace(path), path.as_path()),
        (None, Some(folder)) => (Keep::Recording(folder), folder.as_path()),
        (None, None) => (Keep::Nothing, "".as_ref()),
    };
    let progress = Experiment::new(false);
    let ran = run_lab(&scenario, &lab, keep, &progress.session()?)?;
    let mut document = output::document("lab run");
    document.table(Table::of("", [ran.run_row(&scenario, &lab)]));
    document.table(Table::of("\nEvents", ran.event_rows()));
    document.table(Table::of("\nVMs", ran.vm_rows(&scenario)));
    document.table(Table::of("\nvCPUs", ran.vcpu_rows()));
    document.table(Table::of("\npCPUs", ran.cpu_rows()));
    let path = path.display();
    match ran.kept {
        Kept::Nothing => {}
        Kept::Trace(bytes) => document.note(format!(
            "trace: {path} ({bytes} bytes); open it with ui.perfetto.dev"
        )),
        Kept::Recording(events) => document.note(format!(
            "recording: {path} ({events} events); unspin outcomes, explain and threshold read it"
        )),
    }
    Ok(output::print(&document, arguments.output)?)
}

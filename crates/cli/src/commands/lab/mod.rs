// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin lab`: the simulated host; one run of one scenario here, the other commands beside it.

pub(crate) mod args;
pub(crate) mod calibrate;
pub(crate) mod compare;
pub(crate) mod conform;
pub(crate) mod find;
pub(crate) mod from;
pub(crate) mod sweep;

use unspin_agent::{Epochs, Explained, Numbered};
use unspin_experiment::lab_run::{Keep, Kept, run as run_lab};
use unspin_lab::Lab;
use unspin_report::Table;
use unspin_scenario::Scenario;

use crate::{
    commands::lab::args::LabRunArguments,
    terminal::{failure::Failure, options::ScenarioArguments, output, progress::Experiment},
};

/// The scenario, and the lab for it.
///
/// # Errors
/// Wrong input: nothing has run yet.
pub fn load(arguments: &ScenarioArguments) -> Result<(Scenario, Lab), Failure> {
    let scenario = arguments.load()?;
    let file = arguments.file.display();
    let lab = Lab::new(&scenario).map_err(|error| Failure::Usage(format!("{file}: {error}")))?;
    Ok((scenario, lab))
}

/// Runs and prints the tables.
pub fn run(arguments: &LabRunArguments) -> Result<(), Failure> {
    let (scenario, lab) = load(&arguments.scenario)?;
    let (keep, path) = match (&arguments.trace, &arguments.record) {
        (Some(path), _) => (Keep::Trace(path), path.as_path()),
        (None, Some(folder)) => (Keep::Recording(folder), folder.as_path()),
        (None, None) => (Keep::Nothing, "".as_ref()),
    };
    if let Some(wanted) = arguments.explain_choice {
        let vms: u32 = scenario.vms.iter().map(|vm| vm.count).sum();
        let known = match wanted {
            Explained::All => true,
            Explained::One(vm) => vm < vms,
        };
        if !lab.host().steering.auto || !known {
            return Err(Failure::Usage(format!(
                "--explain-choice: needs lab.policy = \"auto\" and a VM from 0 to {}",
                vms - 1
            )));
        }
    }
    let progress = Experiment::new(false);
    let ran = run_lab(&scenario, &lab, keep, &progress.session()?)?;
    let mut document = output::document("lab run");
    document.table(Table::of("", [ran.run_row(&scenario, &lab)]));
    document.table(Table::of("\nEvents", ran.event_rows()));
    document.table(Table::of("\nVMs", ran.vm_rows(&scenario)));
    document.table(Table::of("\nvCPUs", ran.vcpu_rows()));
    document.table(Table::of("\npCPUs", ran.cpu_rows()));
    let mut epochs = Epochs::of(Numbered::Lab, arguments.explain_choice, |set| {
        set.policies().to_string()
    });
    for step in &ran.outcome.auto_steps {
        output::say(epochs.add(step));
    }
    epochs.table(&mut document);
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

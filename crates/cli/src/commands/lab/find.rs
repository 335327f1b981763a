// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin lab find`: scenarios in which a policy harms.

use unspin_experiment::in_python::{FindPlan, find};
use unspin_report::Table;
use unspin_scenario::ScenarioText;

use crate::{
    commands::lab::args::LabFindArguments,
    terminal::{failure::Failure, output, progress::Experiment},
};

/// Searches, verifies and prints.
pub fn run(arguments: &LabFindArguments) -> Result<(), Failure> {
    let mut plain = arguments.scenario.overrides.clone();
    let set = std::mem::take(&mut plain.set);
    let text = ScenarioText::read(&arguments.scenario.file)?;
    let progress = Experiment::new(false);
    let plan = FindPlan {
        policy: &arguments.policy,
        trials: arguments.trials,
        seeds: arguments.seeds,
        verify_seeds: arguments.verify_seeds,
        keep: arguments.keep,
        search_seed: arguments.search_seed,
        workers: arguments.workers,
        out: arguments.out.as_deref(),
    };
    let found = find(&text, &plain.overrides()?, &set, plan, &progress.session()?)?;
    let mut document = output::document("lab find");
    document.table(Table::of("", [found.search]));
    document.table(Table::of(
        "\nWhat is harmed, the worst first",
        found.findings,
    ));
    Ok(output::print(&document, arguments.output)?)
}

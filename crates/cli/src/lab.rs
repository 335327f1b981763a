// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin lab`: the simulated host.

use unspin_lab::{Lab, LabError, RunError};
use unspin_scenario::Scenario;

use crate::{
    arguments::{LabVerb, ScenarioArguments},
    failure::Failure,
    lab_calibrate, lab_compare, lab_conform, lab_from, lab_run, lab_sweep,
};

/// Any of its commands.
pub fn run(verb: &LabVerb) -> Result<(), Failure> {
    match verb {
        LabVerb::Run(arguments) => lab_run::run(arguments),
        LabVerb::Sweep(arguments) => lab_sweep::run(arguments),
        LabVerb::From(arguments) => lab_from::run(arguments),
        LabVerb::Calibrate(arguments) => lab_calibrate::run(arguments),
        LabVerb::Conform(arguments) => lab_conform::run(arguments),
        LabVerb::Compare(arguments) => lab_compare::run(arguments),
    }
}

/// The scenario, and the lab for it.
///
/// # Errors
/// Wrong input: nothing has run yet.
pub fn load(arguments: &ScenarioArguments) -> Result<(Scenario, Lab), Failure> {
    let scenario = arguments.load()?;
    let file = arguments.file.display();
    let lab = Lab::new(&scenario).map_err(|error| refused(&file, &error))?;
    Ok((scenario, lab))
}

/// What the lab says of wrong input.
pub fn refused(of: &dyn std::fmt::Display, error: &LabError) -> Failure {
    Failure::Usage(format!("{of}: {error}"))
}

/// A run that ended before its time, in the seed that repeats it.
pub fn stuck(scenario: &Scenario, error: &RunError) -> Failure {
    let (name, seed) = (&scenario.name, scenario.seed);
    Failure::Failed(anyhow::anyhow!("{name}, seed {seed}: {error}"))
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! A scenario for the lab, and what it says of wrong input.

use unspin_lab::{Lab, LabError, RunError};
use unspin_scenario::Scenario;

use crate::terminal::{failure::Failure, options::ScenarioArguments};

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

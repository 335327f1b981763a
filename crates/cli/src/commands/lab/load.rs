// SPDX-License-Identifier: MIT OR Apache-2.0
//! A scenario for the lab, and what it says of wrong input.

use unspin_lab::Lab;
use unspin_scenario::Scenario;

use crate::terminal::{failure::Failure, options::ScenarioArguments};

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

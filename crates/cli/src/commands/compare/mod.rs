// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin compare`: policies on the same work.

pub(crate) mod args;
pub(crate) mod full;
pub(crate) mod prediction;
pub(crate) mod run;
pub(crate) mod tables;

use args::CompareArguments;

use crate::terminal::failure::Failure;

pub use run::run;

/// What things cost, if the lab is asked for.
///
/// # Errors
/// As [`prediction::costs`](unspin_experiment::prediction::costs).
pub fn costs(
    arguments: &CompareArguments,
    in_testbed: bool,
) -> Result<Option<Vec<String>>, Failure> {
    let asked = &arguments.prediction;
    let costs = || unspin_experiment::prediction::costs(asked.lab_costs.as_deref(), in_testbed);
    Ok(asked.lab.then(costs).transpose()?)
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin doctor`: what this machine can do, line by line, and how to get what is missing.

use unspin_report::{Table, row};

use crate::{
    commands::doctor::{args::DoctorArguments, checks as doctor_checks, kernel as doctor_kernel},
    terminal::{failure::Failure, output},
};

row! {
    "doctor", ["doctor"];
    /// One thing that was looked for on this machine.
    struct CheckRow {
        /// What was looked for.
        check: &'static str = ("what", Text),
        /// `ok`, `limited` (not good for everything) or `missing`.
        status: &'static str = ("status", Text),
        /// What was found.
        found: String = ("found", Text),
        /// What to do about it; null when there is nothing to do.
        advice: Option<String>,
    }
}

/// Prints every check. Something missing is a finding, not a failure: the exit status is 0 when all were made.
pub fn run(arguments: &DoctorArguments) -> Result<(), Failure> {
    if let Some(kernel) = &arguments.kernel {
        return doctor_kernel::run(kernel, arguments.output);
    }
    let checks = doctor_checks::all();
    let mut document = output::document("doctor");
    let rows = checks.iter().map(|check| CheckRow {
        check: check.name,
        status: check.status.name(),
        found: check.found.clone(),
        advice: Some(check.advice.clone()).filter(|advice| !advice.is_empty()),
    });
    document.table(Table::of("", rows));
    // Advice is long: below the table, one line for each check that has some.
    for check in checks.iter().filter(|check| !check.advice.is_empty()) {
        document.note(format!("{}: {}", check.name, check.advice));
    }
    output::print(&document, arguments.output)?;
    Ok(())
}

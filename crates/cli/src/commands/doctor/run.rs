// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin doctor`: what this machine can do, line by line, and how to get what is missing.

use schemars::JsonSchema;
use serde::Serialize;
use unspin_report::{Column, Table, Unit, row};

use crate::{
    commands::doctor::{args::DoctorArguments, checks as doctor_checks, kernel as doctor_kernel},
    terminal::{failure::Failure, output},
};

/// How a check ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// There, and good for everything.
    Ok,
    /// There, but not good for everything; the line says for what.
    Limited,
    /// Not there.
    Missing,
}

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// What was looked for.
    pub name: &'static str,
    /// How that ended.
    pub status: Status,
    /// What was found.
    pub found: String,
    /// What to do about it; empty when there is nothing to do.
    pub advice: String,
}

impl Check {
    /// There.
    pub fn ok(name: &'static str, found: impl Into<String>) -> Check {
        Check::new(name, Status::Ok, found, "")
    }

    /// There, with limits.
    pub fn limited(
        name: &'static str,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) -> Check {
        Check::new(name, Status::Limited, found, advice)
    }

    /// Not there.
    pub fn missing(
        name: &'static str,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) -> Check {
        Check::new(name, Status::Missing, found, advice)
    }

    fn new(
        name: &'static str,
        status: Status,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) -> Check {
        Check {
            name,
            status,
            found: found.into(),
            advice: advice.into(),
        }
    }
}

impl Status {
    fn name(self) -> &'static str {
        match self {
            Status::Ok => "ok",
            Status::Limited => "limited",
            Status::Missing => "missing",
        }
    }
}

const COLUMNS: &[Column] = &[
    Column::new("check", "what", Unit::Text),
    Column::new("status", "status", Unit::Text),
    Column::new("found", "found", Unit::Text),
];

/// One thing that was looked for on this machine.
#[derive(Serialize, JsonSchema)]
struct CheckRow {
    /// What was looked for.
    check: &'static str,
    /// `ok`, `limited` (not good for everything) or `missing`.
    status: &'static str,
    /// What was found.
    found: String,
    /// What to do about it; null when there is nothing to do.
    advice: Option<String>,
}

row!(CheckRow, "doctor", &["doctor"], COLUMNS);

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

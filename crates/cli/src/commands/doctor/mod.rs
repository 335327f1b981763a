// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin doctor`: what this machine can do.

pub(crate) mod args;
pub(crate) mod checks;
pub(crate) mod kernel;
pub(crate) mod run;

pub use run::run;

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

impl Status {
    fn name(self) -> &'static str {
        match self {
            Status::Ok => "ok",
            Status::Limited => "limited",
            Status::Missing => "missing",
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! What this machine can do of all this, thing by thing, and how to get what is missing: VMs, observing, steering, the testbed.

mod checks;
mod kernel;
mod release;

use serde::Serialize;
use unspin_report::row;

pub use checks::checks;
pub use kernel::{KernelFit, ProgramRow, fit};
pub use release::{KernelCommandRow, commands, installed};

row! {
    "doctor", ["doctor"];
    /// One thing that was looked for on this machine.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Check {
        /// What was looked for.
        pub check: &'static str = ("what", Text),
        /// `ok`, `limited` (not good for everything) or `missing`.
        #[schemars(with = "String")]
        pub status: Status = ("status", Text),
        /// What was found.
        pub found: String = ("found", Text),
        /// What to do about it; null when there is nothing to do.
        pub advice: Option<String>,
    }
}

impl Check {
    fn ok(check: &'static str, found: impl Into<String>) -> Check {
        Check {
            check,
            status: Status::Ok,
            found: found.into(),
            advice: None,
        }
    }

    fn limited(check: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Check {
        Check {
            status: Status::Limited,
            advice: Some(advice.into()),
            ..Check::ok(check, found)
        }
    }

    fn missing(check: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Check {
        Check {
            status: Status::Missing,
            advice: Some(advice.into()),
            ..Check::ok(check, found)
        }
    }
}

/// How a check ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// There, and good for everything.
    Ok,
    /// There, but not good for everything; what was found says for what.
    Limited,
    /// Not there.
    Missing,
}

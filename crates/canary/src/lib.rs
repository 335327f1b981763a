// SPDX-License-Identifier: MIT OR Apache-2.0
//! A policy tried on the VMs that run on this host: phases of our scheduler in ABBA order with phases of the kernel's own, ended
//! at once where a guard says that there is harm.
//!
//! [`run`] does it. What a guard is, [`Guard`] says, and where it calls it harm, [`Limits`].

mod error;
mod guard;
mod measured;
mod phase;
mod probe;
mod reading;
mod rows;
mod run;
mod sleeper;
mod verdict;
mod words;

pub use error::Error;
pub use guard::{Guard, Harm, Judged, Limits};
pub use measured::{Measured, Outcome};
pub use phase::Phase;
pub use probe::ProbeCommand;
pub use reading::{VmAbout, VmWindow, Window, percentile};
pub use rows::{CanaryHostRow, CanaryPhaseRow, CanaryRow, CanaryVmRow, tables};
pub use run::{Request, SAMPLE_MIN, run};
pub use verdict::Compared;
pub use words::{outcome, unsure};

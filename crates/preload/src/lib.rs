// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs an unmodified program with the locks of lib/preload in place of libc's, and reads what was counted in it.

mod error;
mod library;
mod program;
mod report;
mod run;
mod symbols;

pub use error::Error;
pub use library::place;
pub use program::Program;
pub use report::{HotLock, Passed, Report};
pub use run::{Ended, replace, run};

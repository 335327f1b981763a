// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin policy`, and how policies are named on the command line.

pub(crate) mod args;
pub(crate) mod choice;
pub(crate) mod decision_log;
pub(crate) mod disclosure;
pub(crate) mod run;

pub use run::run;

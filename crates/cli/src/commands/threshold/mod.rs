// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin threshold`: where spinning should end.

pub(crate) mod args;
pub(crate) mod run;
pub(crate) mod tables;

pub use run::run;

// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin lab conform`: predictions beside measurements.

pub(crate) mod measured_file;
pub(crate) mod run;

pub use run::run;

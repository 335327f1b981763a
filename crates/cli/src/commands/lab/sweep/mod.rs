// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin lab sweep`: a grid of scenarios.

pub(crate) mod axis;
pub(crate) mod folder;
pub(crate) mod grid;
pub(crate) mod rows;
pub(crate) mod run;
pub(crate) mod table_file;

pub use run::run;

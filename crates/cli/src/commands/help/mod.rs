// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin help`: on the terminal, as man pages, as a page of the book. All of it follows from the arguments' types.

pub(crate) mod args;
mod markdown;
pub(crate) mod run;
mod tables;

pub use run::run;

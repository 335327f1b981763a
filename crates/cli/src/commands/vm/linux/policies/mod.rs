// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin vm linux-policies`: policies with unmodified Linux guests.

pub(crate) mod args;
pub(crate) mod run;
mod tables;

pub use run::run;

// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin vm linux-policies`: policies on Linux guests that keep running.

pub(crate) mod args;
pub(crate) mod measure;
pub(crate) mod row;
pub(crate) mod run;

pub use run::run;

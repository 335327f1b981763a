// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin compare`: policies on the same work.

pub(crate) mod args;
pub(crate) mod full;
pub(crate) mod prediction;
pub(crate) mod run;
pub(crate) mod sentence;
pub(crate) mod tables;

pub use run::run;

// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin doctor`: what this machine can do.

pub(crate) mod args;
pub(crate) mod checks;
pub(crate) mod kernel;
pub(crate) mod run;
pub(crate) mod tools;

pub use run::run;

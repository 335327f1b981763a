// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin record`: events of this host into a folder.

pub(crate) mod args;
pub(crate) mod guests;
pub(crate) mod run;
pub(crate) mod tables;

pub use run::run;

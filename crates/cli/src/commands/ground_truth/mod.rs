// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin ground-truth`: what `explain` says, judged by the guests' own logs.

pub(crate) mod args;
pub(crate) mod run;

pub use run::run;

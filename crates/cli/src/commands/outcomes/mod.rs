// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin outcomes`: what pause-loop exits were for, and what became of them.

pub(crate) mod args;
pub(crate) mod cost;
pub(crate) mod live;
pub(crate) mod reasons;
pub(crate) mod run;
pub(crate) mod tables;

pub use run::run;

// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin lab`: the simulated host.

pub(crate) mod args;
pub(crate) mod calibrate;
pub(crate) mod compare;
pub(crate) mod conform;
pub(crate) mod from;
pub(crate) mod load;
pub(crate) mod run;
pub(crate) mod sweep;

pub use run::run;

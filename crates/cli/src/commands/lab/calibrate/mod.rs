// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin lab calibrate`: what things cost on this machine.

pub(crate) mod figures;
pub(crate) mod guest;
pub(crate) mod run;

pub use run::run;

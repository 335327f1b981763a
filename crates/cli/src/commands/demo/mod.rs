// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin demo`: stalled VMs in the testbed, and a remedy.

pub(crate) mod args;
mod predict;
pub(crate) mod run;

pub use run::run;

// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin testbed`: the emulated KVM host.

pub(crate) mod args;
pub(crate) mod boots;
pub(crate) mod compare;
pub(crate) mod run;

pub use run::run;

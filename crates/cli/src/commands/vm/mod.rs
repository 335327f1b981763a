// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin vm`: VMs on this host's KVM.

pub(crate) mod args;
pub(crate) mod linux;
pub(crate) mod run;

pub use run::run;

// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin vm`: VMs on this host's KVM.

pub(crate) mod args;
pub(crate) mod event_file;
pub(crate) mod ground_truth;
pub(crate) mod guest_log_file;
pub(crate) mod guests;
pub(crate) mod host_columns;
pub(crate) mod linux;
pub(crate) mod observe;
pub(crate) mod other_vms;
pub(crate) mod run;
pub(crate) mod tables;
pub(crate) mod waits;

pub use run::run;

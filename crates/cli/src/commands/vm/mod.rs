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
pub(crate) mod run;
pub(crate) mod tables;
pub(crate) mod waits;

use unspin_experiment::watch::Seen;
use unspin_scenario::Scenario;
use unspin_vmm::RunReport;

pub use run::run;

/// Everything that one run brought back.
pub struct Run {
    /// What ran.
    pub scenario: Scenario,
    /// What the VMM saw.
    pub report: RunReport,
    /// What BPF saw; `None` when it did not watch.
    pub seen: Option<Seen>,
}

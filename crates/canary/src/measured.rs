// SPDX-License-Identifier: MIT OR Apache-2.0
//! All that was measured, and what it comes to.

use std::time::Duration;

use crate::{guard::Harm, phase::Phase, reading::VmAbout, verdict::Compared};

/// What came of it.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Our scheduler was sent away.
    Harm(Harm),
    /// VMs do more under it, certainly.
    Better,
    /// Neither is shown.
    NoDifference,
    /// The session was interrupted before all phases were over.
    Interrupted,
}

/// All that was measured.
#[derive(Clone, Debug)]
pub struct Measured {
    /// In order. The last one may be cut short, by harm or the interrupt.
    pub phases: Vec<Phase>,
    /// VMs, by number.
    pub vms: Vec<VmAbout>,
    /// VMs that were not guarded, since there were too many threads.
    pub unguarded: usize,
    /// Pair by pair.
    pub compared: Compared,
    /// What it comes to.
    pub outcome: Outcome,
    /// For how long our scheduler has had the host since the last phase; `None`: it did not go on.
    pub kept: Option<Duration>,
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The pause-loop window on the command lines of Linux guests.

use clap::Args;
use unspin_scenario::{Host, Policy, Scheduler};

/// What the host below Linux guests has to be.
#[derive(Args, Clone, Copy, Debug)]
pub struct PauseLoopArguments {
    /// The pause-loop window: kvm_amd's pause_filter_count, kvm_intel's ple_window. In the testbed KVM is loaded with it,
    /// elsewhere it must be in force.
    #[arg(long, value_name = "NUMBER")]
    pub ple_window: Option<u32>,
    /// pause_filter_thresh, ple_gap.
    #[arg(long, value_name = "NUMBER")]
    pub ple_gap: Option<u32>,
    /// KVM leaves the window alone.
    #[arg(long)]
    pub ple_window_fixed: bool,
}

impl PauseLoopArguments {
    /// The same as a scenario has it.
    pub fn host(self) -> Host {
        Host {
            cpus: None,
            scheduler: Scheduler::Stock,
            policy: Policy::None,
            ple_window: self.ple_window,
            ple_gap: self.ple_gap,
            ple_window_fixed: self.ple_window_fixed,
        }
    }
}

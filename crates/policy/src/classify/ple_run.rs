// SPDX-License-Identifier: MIT OR Apache-2.0
//! Continuous runs of pause-loop exits: `policy/classify/ple_run.h`.

use crate::raw;

/// Whether a host interrupt between two exits ends a run (both are counted, ruling 29).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunRule {
    /// It ends the run, as in VEE'21.
    InterruptsEnd,
    /// It does not end the run.
    InterruptsIgnored,
}

/// The run of pause-loop exits in which a vCPU is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Run(raw::unspin_ple_run);

/// One pause-loop exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunExit {
    /// Guest instruction pointer; `None`: the host cannot read it, and the exit belongs to no run.
    pub location: Option<u64>,
    /// Exits since the vCPU's previous pause-loop exit, without host interrupts.
    pub other_exits: u32,
    /// Exits for host interrupts since the previous pause-loop exit.
    pub interrupt_exits: u32,
}

/// Lengths of runs, weighted by exits (VEE'21's Figure 4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunShares {
    /// Exits in runs.
    pub exits: u64,
    /// Those of them in runs longer than twice the VM's number of vCPUs.
    pub above_twice_vcpus: u64,
    /// Those of them in runs longer than 100.
    pub above_hundred: u64,
    /// Number of runs.
    pub runs: u64,
    /// Exits in the longest run.
    pub longest: u64,
}

impl Run {
    /// Adds an exit. Returns the length of the run that it ended; 0: none.
    pub fn add(&mut self, exit: RunExit, rule: RunRule) -> Option<u64> {
        let exit = raw::unspin_ple_run_exit {
            location: exit.location.unwrap_or(raw::UNSPIN_UNKNOWN as u64),
            other_exits: exit.other_exits,
            interrupt_exits: exit.interrupt_exits,
        };
        let rule = match rule {
            RunRule::InterruptsEnd => raw::UNSPIN_RUN_INTERRUPTS_END,
            RunRule::InterruptsIgnored => raw::UNSPIN_RUN_INTERRUPTS_IGNORED,
        };
        // SAFETY: both pointers are to valid structs, used for the length of the call only.
        some(unsafe { raw::unspin_ple_run_add(&mut self.0, &exit, rule) })
    }

    /// Ends the run and returns its length.
    pub fn end(&mut self) -> Option<u64> {
        // SAFETY: the pointer is to a valid struct, used for the length of the call only.
        some(unsafe { raw::unspin_ple_run_end(&mut self.0) })
    }

    /// Exits of the current run, the last one included; 0: there is no run.
    pub fn exits(&self) -> u64 {
        self.0.exits
    }
}

impl RunShares {
    /// Adds a run that has ended, in a VM with this many vCPUs.
    pub fn count(&mut self, exits: u64, vcpus: u64) {
        let mut shares = raw::unspin_ple_run_shares {
            exits: self.exits,
            above_twice_vcpus: self.above_twice_vcpus,
            above_hundred: self.above_hundred,
            runs: self.runs,
            longest: self.longest,
        };
        // SAFETY: the pointer is to a valid struct, used for the length of the call only.
        unsafe { raw::unspin_ple_run_count(&mut shares, exits, vcpus) };
        *self = RunShares {
            exits: shares.exits,
            above_twice_vcpus: shares.above_twice_vcpus,
            above_hundred: shares.above_hundred,
            runs: shares.runs,
            longest: shares.longest,
        };
    }
}

fn some(exits: u64) -> Option<u64> {
    (exits != 0).then_some(exits)
}

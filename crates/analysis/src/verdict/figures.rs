// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a verdict on a VM follows from.

use crate::explain::cause::{Cause, CauseTimes};

/// Figures of one VM over a recording, or a part of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VmFigures {
    /// Wall time in which it was seen, nanoseconds.
    pub seen_ns: u64,
    /// CPU time of its vCPUs.
    pub running_ns: u64,
    /// Time for which they could run and had no CPU.
    pub waiting_ns: u64,
    /// Time asleep after halts of the guest, but for `io_ns`.
    pub halted_ns: u64,
    /// Time asleep for I/O: in the host for a page or an emulated device, or halted until a thread of its own VMM that is no vCPU
    /// (or its vhost thread) woke it.
    pub io_ns: u64,
    /// Wall time for which all its vCPUs slept and at least one not by its guest's doing, stops of 100 ms and more.
    pub stopped_ns: u64,
    /// The longest of these.
    pub longest_stop_ns: u64,
    /// CPU time spent spinning, by cause.
    pub spin_time: CauseTimes,
    /// Pause-loop exits.
    pub pause_exits: u64,
}

impl VmFigures {
    /// CPU time spun for somebody who was off its CPU.
    pub fn preempted_ns(&self) -> u64 {
        let causes = Cause::ALL.into_iter().filter(|cause| cause.is_preemption());
        causes.map(|cause| self.spin_time.of(cause)).sum()
    }

    /// The cause of most of that, if there is any.
    pub fn preempted_cause(&self) -> Option<Cause> {
        let mut times = CauseTimes::default();
        for cause in Cause::ALL.into_iter().filter(|cause| cause.is_preemption()) {
            times.add(cause, self.spin_time.of(cause));
        }
        times.majority()
    }
}

/// Whether spinning can be seen at all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Sight {
    /// Pause-loop exits are recorded, as far as is known.
    #[default]
    Seen,
    /// They are not, and why.
    Blind(String),
}

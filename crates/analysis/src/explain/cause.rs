// SPDX-License-Identifier: MIT OR Apache-2.0
//! For whom a vCPU spun: the words that explanation and ground truth share.

use serde::Serialize;

/// Why a vCPU on its CPU could only wait. The first four name another vCPU that was off its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The lock's holder was off its CPU (LHP).
    HolderPreempted,
    /// The lock was free, and the waiter whose turn it was, was off its CPU (LWP).
    NextWaiterPreempted,
    /// A function call (TLB shootdown, ruling 34), and the receiver it waited for had been preempted in user mode.
    CallUser,
    /// The same, preempted in kernel mode.
    CallKernel,
    /// The same, halted.
    CallHalted,
    /// Whoever was waited for had a CPU.
    Contention,
    /// The evidence does not say.
    Unknown,
}

impl Cause {
    /// All of them, in the order of tables.
    pub const ALL: [Cause; 7] = [
        Cause::HolderPreempted,
        Cause::NextWaiterPreempted,
        Cause::CallUser,
        Cause::CallKernel,
        Cause::CallHalted,
        Cause::Contention,
        Cause::Unknown,
    ];

    /// Whether it names somebody who was off its CPU.
    pub fn is_preemption(self) -> bool {
        !matches!(self, Cause::Contention | Cause::Unknown)
    }

    /// Its place in [`Cause::ALL`].
    pub fn index(self) -> usize {
        self as usize
    }

    /// The word for it in tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Cause::HolderPreempted => "holder_preempted",
            Cause::NextWaiterPreempted => "next_waiter_preempted",
            Cause::CallUser => "call_user",
            Cause::CallKernel => "call_kernel",
            Cause::CallHalted => "call_halted",
            Cause::Contention => "contention",
            Cause::Unknown => "unknown",
        }
    }
}

/// Nanoseconds by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CauseTimes([u64; Cause::ALL.len()]);

impl CauseTimes {
    /// Adds so many nanoseconds.
    pub fn add(&mut self, cause: Cause, ns: u64) {
        self.0[cause.index()] += ns;
    }

    /// Nanoseconds of that cause.
    pub fn of(&self, cause: Cause) -> u64 {
        self.0[cause.index()]
    }

    /// Adds others.
    pub fn merge(&mut self, others: &CauseTimes) {
        for (mine, theirs) in self.0.iter_mut().zip(others.0) {
            *mine += theirs;
        }
    }

    /// All together.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The cause of most of the time; of equals the first in the order of tables. `None` without any.
    pub fn majority(&self) -> Option<Cause> {
        let most = *self.0.iter().max()?;
        let first = Cause::ALL.into_iter().find(|&cause| self.of(cause) == most);
        first.filter(|_| most > 0)
    }

    /// A lead that is less than a quarter of a pause-loop window is none: when a wait ended is known to within a window, and
    /// its middle, taken for it, is wrong by a quarter of a window on average.
    pub fn margin_ns(window_ns: u64) -> u64 {
        window_ns / 4
    }

    /// The cause of most of the time whatever the unknown part was; `Unknown` when that could tip the balance. `None` without
    /// any time.
    pub fn certain(&self, margin_ns: u64) -> Option<Cause> {
        let first = self.majority()?;
        let unknown = self.of(Cause::Unknown);
        let baselines = Cause::ALL
            .into_iter()
            .filter(|&cause| cause != first && cause != Cause::Unknown);
        let second = baselines.map(|cause| self.of(cause)).max().unwrap_or(0);
        let safe = first != Cause::Unknown && self.of(first) >= second + unknown + margin_ns;
        Some(if safe { first } else { Cause::Unknown })
    }
}

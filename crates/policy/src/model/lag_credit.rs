// SPDX-License-Identifier: MIT OR Apache-2.0
//! The upstream proposal of June 2026: `policy/model/lag_credit.h`.

use crate::raw;

/// Margin per runnable task, ns. Ours: the proposal's text gives none.
pub const LAG_MARGIN_NS: u64 = raw::UNSPIN_LAG_MARGIN_NS as u64;

/// One level of the target's hierarchy, in the queue in which it waits. Virtual times wrap around.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LagLevel {
    /// The queue's average virtual time.
    pub average_vtime: u64,
    /// The entity's virtual time.
    pub target_vtime: u64,
    /// The greatest lag that the scheduler preserves, virtual time, below 2^63.
    pub limit_vtime: u64,
    /// Margin per runnable task, virtual time.
    pub margin_vtime: u64,
    /// Runnable tasks of the run queue, the current one included.
    pub runnable: u32,
}

impl LagLevel {
    /// The entity's virtual time from now on.
    pub fn credited_vtime(&self) -> u64 {
        let facts = raw::unspin_lag_facts {
            average_vtime: self.average_vtime,
            target_vtime: self.target_vtime,
            limit_vtime: self.limit_vtime,
            margin_vtime: self.margin_vtime,
            runnable: self.runnable,
            unused: 0,
        };
        // SAFETY: reads a valid struct for the length of the call.
        unsafe { raw::unspin_lag_credited(&facts) }
    }
}

/// Whether a directed yield may end the yielder's slice protection; `last_ns`: when one last did on this run queue.
pub fn lag_credit_forces(now_ns: u64, last_ns: Option<u64>) -> bool {
    // SAFETY: a function of numbers alone.
    unsafe { raw::unspin_lag_forces(now_ns, last_ns.unwrap_or(raw::UNSPIN_UNKNOWN as u64)) }
}

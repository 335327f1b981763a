// SPDX-License-Identifier: MIT OR Apache-2.0
//! `policy/mechanics/starvation_bound.h`.

use super::Weight;
use crate::raw;

/// Tasks of each queue that are checked.
pub const LAST_COMPARED: usize = raw::UNSPIN_LAST_COMPARED as usize;

/// The rate at which a queue's clock advances.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockRate(raw::unspin_clock_rate);

impl ClockRate {
    /// Measures the rate if that is due. Returns whether it was due and the rate is known.
    pub fn measure(&mut self, clock_ns: u64, now_ns: u64) -> bool {
        let since_ns = self.0.since_ns;
        // SAFETY: a function of numbers alone.
        if !unsafe { raw::unspin_rate_is_due(since_ns, now_ns) } {
            return false;
        }
        self.0.since_ns = now_ns;
        // SAFETY: a valid struct for the length of the call.
        unsafe { raw::unspin_measure_rate(&mut self.0, since_ns, clock_ns, now_ns) }
    }

    /// How far ahead of a clock a task may wait, weighted ns.
    pub fn farthest_ahead_ns(&self, slice_ns: u64) -> u64 {
        // SAFETY: functions of numbers alone, here and below.
        unsafe { raw::unspin_farthest_ahead(self.0.in_time_ns, slice_ns) }
    }

    /// The latest virtual time in a pCPU's own queue. `self`: the pCPU's rate; `front_ns`: the position of the last
    /// task that was first in that queue.
    pub fn latest_own_ns(&self, front_ns: u64, offset_ns: u64, slice_ns: u64) -> u64 {
        let ahead_ns = self.farthest_ahead_ns(slice_ns);
        // SAFETY: as above.
        unsafe { raw::unspin_latest_own(front_ns, ahead_ns, offset_ns) }
    }

    /// The same in the shared queue, served by the pCPU whose rate is `self`; `shared`: the shared queue's rate.
    pub fn latest_shared_ns(
        &self,
        front_ns: u64,
        shared_now_ns: u64,
        shared: &ClockRate,
        slice_ns: u64,
    ) -> u64 {
        let ahead_ns = self.farthest_ahead_ns(slice_ns);
        let in_time_ns = shared.0.in_time_ns;
        // SAFETY: as above.
        unsafe { raw::unspin_latest_shared(front_ns, ahead_ns, shared_now_ns, in_time_ns) }
    }
}

/// The virtual time of a task that waits, and was charged by a weight which may have grown since.
pub fn reweighted_vtime_ns(vtime_ns: u64, clock_ns: u64, charged: Weight, weight: Weight) -> u64 {
    // SAFETY: as above; weights are 1 or more.
    unsafe { raw::unspin_reweighted_vtime(vtime_ns, clock_ns, charged.raw(), weight.raw()) }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! `policy/mechanics/wakeup.h`.

use super::Weight;
use crate::raw;

/// How long a task is expected to run at its next wake-up, ns of CPU time, after a run of `ran_ns`; at most a slice.
pub fn expected_burst_ns(burst_ns: u64, ran_ns: u64, slice_ns: u64) -> u64 {
    // SAFETY: functions of numbers alone, here and below.
    unsafe { raw::unspin_expected_burst(burst_ns, ran_ns, slice_ns) }
}

/// How long runs of a task are in the mean, ns of CPU time, after one of `ran_ns`; at most a slice.
pub fn mean_burst_ns(mean_ns: u64, ran_ns: u64, slice_ns: u64) -> u64 {
    // SAFETY: as above.
    unsafe { raw::unspin_mean_burst(mean_ns, ran_ns, slice_ns) }
}

/// By how much a task is behind its queue's clock when it goes to sleep; 0 if it is not.
pub fn lag_ns(vtime_ns: u64, clock_ns: u64) -> u64 {
    // SAFETY: as above.
    unsafe { raw::unspin_lag(vtime_ns, clock_ns) }
}

/// The virtual time of a task that wakes up, from that of [`placed_vtime_ns`](super::placed_vtime_ns). `lag_ns`:
/// [`lag_ns`] when it went to sleep.
pub fn woken_vtime_ns(
    vtime_ns: u64,
    weight: Weight,
    lag_ns: u64,
    burst_ns: u64,
    clock_ns: u64,
    slice_ns: u64,
) -> u64 {
    // SAFETY: as above.
    unsafe { raw::unspin_wake_vtime(vtime_ns, weight.raw(), lag_ns, burst_ns, clock_ns, slice_ns) }
}

/// Whether a task that wakes up at this position preempts one at `runner_ns`.
pub fn wakeup_preempts(position_ns: u64, weight: Weight, burst_ns: u64, runner_ns: u64) -> bool {
    // SAFETY: as above.
    unsafe { raw::unspin_wakeup_preempts(position_ns, weight.raw(), burst_ns, runner_ns) }
}

/// Whether a task that has had its CPU for `ran_ns` goes on, whoever wakes up; `vcpu`: it is one.
pub fn is_protected(vcpu: bool, ran_ns: u64) -> bool {
    // SAFETY: as above.
    unsafe { raw::unspin_is_protected(vcpu, ran_ns) }
}

/// Whether a CPU whose task goes to sleep is handed over to the one that it has woken, which has come to `heir_ns`, past the first of
/// those that wait, which has come to `first_ns`.
pub fn is_handed_over(heir_ns: u64, first_ns: u64, slice_ns: u64) -> bool {
    // SAFETY: as above.
    unsafe { raw::unspin_is_handed_over(heir_ns, first_ns, slice_ns) }
}

/// Whether a task hands its CPU over that goes to sleep and has woken so many others as it was about to.
pub fn hands_over(woken: u32) -> bool {
    // SAFETY: as above.
    unsafe { raw::unspin_hands_over(woken) }
}

/// Whether a CPU may go to an heir without a look at its queues, which was taken at `looked_ns` last.
pub fn may_skip_queues(looked_ns: u64, now_ns: u64, slice_ns: u64) -> bool {
    // SAFETY: as above.
    unsafe { raw::unspin_may_skip_queues(looked_ns, now_ns, slice_ns) }
}

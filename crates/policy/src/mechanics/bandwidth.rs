// SPDX-License-Identifier: MIT OR Apache-2.0
//! `policy/mechanics/bandwidth.h`.

use crate::raw;

/// The shortest slice to which the rest of a quota may cut one, ns.
pub const LEAST_THROTTLED_SLICE_NS: u64 = raw::UNSPIN_LEAST_THROTTLED_SLICE_NS as u64;
/// The longest time for which a task is throttled, ns.
pub const LONGEST_THROTTLED_NS: u64 = raw::UNSPIN_LONGEST_THROTTLED_NS as u64;

/// The quota of a cgroup (`cpu.max`), and what is left of it in the current period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bandwidth(raw::unspin_bandwidth);

impl Bandwidth {
    /// Sets `cpu.max` and `cpu.max.burst`; quota and period are 1 or more, us.
    pub fn set(&mut self, quota_us: u64, period_us: u64, burst_us: u64, now_ns: u64) {
        // SAFETY: a valid struct for the length of the call.
        unsafe {
            raw::unspin_set_bandwidth(&mut self.0, quota_us, period_us, burst_us, now_ns);
        }
    }

    /// Charges CPU time of the cgroup's tasks, ns.
    pub fn charge(&mut self, ran_ns: u64) {
        self.0.left_ns -= ran_ns as i64;
    }

    /// What is left of the quota now, ns; 0 or less while the cgroup's tasks are throttled.
    pub fn left_ns(&mut self, now_ns: u64) -> i64 {
        let own = &mut self.0;
        // SAFETY: functions of numbers alone; the period is 1 or more once it is set.
        unsafe {
            let periods = raw::unspin_periods_over(own.refill_ns, own.period_ns, now_ns);
            if periods > 0 {
                own.refill_ns += periods * own.period_ns;
                own.left_ns += raw::unspin_refill(own.left_ns, own.quota_ns, own.burst_ns, periods);
            }
        }
        own.left_ns
    }

    /// When some of the quota will be available again, ns. Called while none is left.
    pub fn throttled_until_ns(&self) -> u64 {
        let own = &self.0;
        // SAFETY: as above.
        unsafe {
            raw::unspin_throttled_until(own.left_ns, own.quota_ns, own.period_ns, own.refill_ns)
        }
    }
}

/// The length of a slice when `left_ns` of the quota is left, ns.
pub fn slice_in_quota_ns(slice_ns: u64, left_ns: i64) -> u64 {
    // SAFETY: as above.
    unsafe { raw::unspin_slice_in_quota(slice_ns, left_ns) }
}

/// Whether a task that has been throttled since `since_ns` (0: it is not throttled) runs although no quota is left.
pub fn throttled_too_long(since_ns: u64, now_ns: u64) -> bool {
    // SAFETY: as above.
    unsafe { raw::unspin_throttled_too_long(since_ns, now_ns) }
}

/// When a task is checked again that has been throttled since `since_ns` and is throttled until `until_ns`.
pub fn throttle_ends_ns(until_ns: u64, since_ns: u64) -> u64 {
    // SAFETY: as above.
    unsafe { raw::unspin_throttle_ends(until_ns, since_ns) }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! `policy/mechanics/crowd.h`.

use crate::raw;

/// Tasks that wait for each CPU where that is a crowd.
pub const CROWD: u64 = raw::UNSPIN_CROWD as u64;
/// Tasks with short runs that a CPU keeps in mind.
pub const CROWD_NOTES: usize = raw::UNSPIN_CROWD_NOTES as usize;

/// Whether those who wait for a CPU are a crowd, in its own queue and its part of the one that so many CPUs (1 or more, online) share.
pub fn is_crowd(own: usize, shared: usize, cpus: u32) -> bool {
    // SAFETY: functions of numbers alone, here and below; `cpus` is above 0.
    unsafe { raw::unspin_is_crowd(own as u64, shared as u64, u64::from(cpus)) }
}

/// Whether they are counted again, which was done last at `counted_ns`.
pub fn crowd_is_due(counted_ns: u64, now_ns: u64) -> bool {
    // SAFETY: as above.
    unsafe { raw::unspin_crowd_is_due(counted_ns, now_ns) }
}

/// Whether a domain has no crowd any more in which one was counted at `crowd_ns` last.
pub fn crowd_is_over(crowd_ns: u64, now_ns: u64) -> bool {
    // SAFETY: as above.
    unsafe { raw::unspin_crowd_is_over(crowd_ns, now_ns) }
}

/// Where a CPU that keeps so many notes, and has written so many, writes the next one: below [`CROWD_NOTES`].
pub fn note_slot(notes: u32, written: u32) -> u32 {
    // SAFETY: as above.
    unsafe { raw::unspin_note_slot(notes, written) }
}

/// Whether a task whose runs are that long in the mean ([`mean_burst_ns`](super::mean_burst_ns)) has its share in parts in a crowd.
pub fn is_short(mean_ns: u64, slice_ns: u64) -> bool {
    // SAFETY: as above.
    unsafe { raw::unspin_is_short(mean_ns, slice_ns) }
}

/// The clock by which a task is placed that wakes up or is new, where the fair clock, by its queue's time, is at `fair_ns`.
pub fn crowd_clock_ns(clock_ns: u64, fair_ns: u64, slice_ns: u64) -> u64 {
    // SAFETY: as above.
    unsafe { raw::unspin_crowd_clock(clock_ns, fair_ns, slice_ns) }
}

/// What one of so many CPUs of one domain adds to a fair share by running tasks for `ran_ns`; all that are runnable weigh so much, as
/// [`GroupWeight::sum`](super::GroupWeight::sum) of the root.
pub fn fair_share_ns(ran_ns: u64, weight: i64, cpus: u32) -> u64 {
    // SAFETY: as above.
    unsafe { raw::unspin_fair_share(ran_ns, weight, cpus, cpus) }
}

/// How far a fair share of a domain has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FairClock {
    /// That position, weighted ns.
    pub at_ns: u64,
}

impl FairClock {
    /// One CPU's part of a share ([`fair_share_ns`]) has come so much further; the queue's clock is at `queue_ns`.
    pub fn advance(&mut self, share_ns: u64, queue_ns: u64, slice_ns: u64) {
        // SAFETY: as above.
        self.at_ns = unsafe {
            let come_ns = raw::unspin_fair_advance(self.at_ns, share_ns, queue_ns, slice_ns);
            let at_ns = self.at_ns.wrapping_add(come_ns);
            raw::unspin_fair_bounded(at_ns, queue_ns, slice_ns)
        };
    }

    /// Whether the share of a task at that position has come so far.
    pub fn is_due(&self, position_ns: u64) -> bool {
        // SAFETY: as above.
        unsafe { raw::unspin_share_is_due(self.at_ns, position_ns) }
    }
}

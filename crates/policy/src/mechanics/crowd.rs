// SPDX-License-Identifier: MIT OR Apache-2.0
//! `policy/mechanics/crowd.h`.

use crate::raw;

/// Tasks that wait for each CPU where that is a crowd.
pub const CROWD: u64 = raw::UNSPIN_CROWD as u64;
/// Tasks with short runs that a CPU keeps in mind.
pub const CROWD_NOTES: usize = raw::UNSPIN_CROWD_NOTES as usize;

/// How many wait for a CPU, in its own queue and its part of the one that so many CPUs (1 or more) share; `None`: no crowd.
pub fn crowd(own: usize, shared: usize, cpus: u32) -> Option<u64> {
    // SAFETY: functions of numbers alone, here and below; `cpus` is above 0.
    let waiting = unsafe { raw::unspin_crowd(own as u64, shared as u64, u64::from(cpus)) };
    (waiting > 0).then_some(waiting)
}

/// Whether they are counted again, which was done last at `counted_ns`.
pub fn crowd_is_due(counted_ns: u64, now_ns: u64) -> bool {
    // SAFETY: as above.
    unsafe { raw::unspin_crowd_is_due(counted_ns, now_ns) }
}

/// Where a CPU that keeps so many notes, and has replaced so many, writes the next one: below [`CROWD_NOTES`].
pub fn note_slot(notes: u32, replaced: u32) -> u32 {
    // SAFETY: as above.
    unsafe { raw::unspin_note_slot(notes, replaced) }
}

/// Whether a task whose runs are expected to be that long has its share in parts in a crowd.
pub fn is_short(burst_ns: u64, slice_ns: u64) -> bool {
    // SAFETY: as above.
    unsafe { raw::unspin_is_short(burst_ns, slice_ns) }
}

/// How far a fair share of a CPU has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FairClock(raw::unspin_fair_clock);

impl FairClock {
    /// The CPU has served so much virtual time in all, a crowd of `waiting` tasks waits for it, 0: none, and the clock of their
    /// queue is at `queue_ns`, weighted ns.
    pub fn advance(&mut self, served_ns: u64, waiting: u64, queue_ns: u64, slice_ns: u64) {
        // SAFETY: as above.
        self.0 =
            unsafe { raw::unspin_fair_clock_now(self.0, served_ns, waiting, queue_ns, slice_ns) };
    }

    /// The position to which a fair share has come, weighted ns.
    pub fn at_ns(&self) -> u64 {
        self.0.at_ns
    }

    /// Whether the share of a task at that position has come so far.
    pub fn is_due(&self, position_ns: u64) -> bool {
        // SAFETY: as above.
        unsafe { raw::unspin_share_is_due(self.0, position_ns) }
    }
}

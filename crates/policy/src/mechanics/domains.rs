// SPDX-License-Identifier: MIT OR Apache-2.0
//! `policy/mechanics/domains.h`.

use crate::raw;

/// CPUs of a domain at most.
pub const DOMAIN_CPUS_MAX: usize = raw::UNSPIN_DOMAIN_CPUS_MAX as usize;

/// How far the queue of a domain is among those of others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// The clock of its queue, weighted ns.
    pub clock_ns: u64,
    /// What makes it comparable.
    pub offset_ns: u64,
}

impl Standing {
    /// Comparable with other domains'.
    pub fn ns(self) -> u64 {
        // SAFETY: functions of numbers alone, here and below.
        unsafe { raw::unspin_standing(self.clock_ns, self.offset_ns) }
    }

    /// A task begins a slice there; `waits`: another one waits in its queue. `first_ns`: the standing of the first domain.
    pub fn advance(&mut self, waits: bool, first_ns: &mut u64, slice_ns: u64) {
        if !waits {
            // SAFETY: as above.
            self.offset_ns = unsafe {
                raw::unspin_offset_without_claim(self.clock_ns, self.offset_ns, *first_ns, slice_ns)
            };
        }
        // SAFETY: as above.
        *first_ns = unsafe { raw::unspin_first_standing(*first_ns, self.ns(), slice_ns) };
    }

    /// Whether its busy CPUs take a task that waits in the other one.
    pub fn takes_from(self, other: Standing, slice_ns: u64) -> bool {
        // SAFETY: as above.
        unsafe { raw::unspin_takes_from(self.ns(), other.ns(), slice_ns) }
    }
}

/// Where the queue of one CPU stands when it stood at `own_ns` by what its tasks have run; `alone`: a task of it runs and none
/// waits there, nor in its domain's queue.
pub fn own_standing(own_ns: u64, alone: bool, first_ns: u64, slice_ns: u64) -> u64 {
    // SAFETY: as above.
    unsafe { raw::unspin_own_standing(own_ns, alone, first_ns, slice_ns) }
}

/// Whether a domain that last searched for a task to take at `taken_ns` searches again.
pub fn takes_again(taken_ns: u64, now_ns: u64) -> bool {
    // SAFETY: as above.
    unsafe { raw::unspin_takes_again(taken_ns, now_ns) }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! `policy/mechanics/buddy.h` and `policy/mechanics/gang.h`.

use crate::raw;

/// The virtual times that a pCPU compares after a yield as a yield buddy, or after a call for a gang.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BuddyPlaces {
    /// The candidate's, with its credit.
    pub candidate_ns: u64,
    /// The least among the tasks that wait for this pCPU, except the yielder.
    pub waiting_ns: u64,
    /// The yielder's, with what it was raised by; `None`: it is not runnable.
    pub yielder_ns: Option<u64>,
    /// The candidate is not run if it is ahead of the first by more than this, ns of virtual time.
    pub threshold_ns: u32,
}

/// Which task runs then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BuddyOutcome {
    /// The candidate begins a slice of its own.
    Runs,
    /// The first of the waiting tasks runs; the yielder is passed over.
    OthersRun,
    /// The choice is the same as without the yield.
    IsTooUnfair,
}

impl BuddyPlaces {
    /// Which task runs.
    pub fn outcome(&self) -> BuddyOutcome {
        let places = raw::unspin_buddy_places {
            candidate_ns: self.candidate_ns,
            waiting_ns: self.waiting_ns,
            yielder_ns: self.yielder_ns.unwrap_or(0),
            yielder_runnable: self.yielder_ns.is_some().into(),
            threshold_ns: self.threshold_ns,
        };
        // SAFETY: reads a valid struct for the length of the call.
        match unsafe { raw::unspin_buddy_outcome(&places) } {
            raw::UNSPIN_BUDDY_RUNS => BuddyOutcome::Runs,
            raw::UNSPIN_BUDDY_OTHERS_RUN => BuddyOutcome::OthersRun,
            _ => BuddyOutcome::IsTooUnfair,
        }
    }
}

/// What runs on a pCPU, as far as gangs need it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GangPlace(raw::unspin_gang_place);

impl GangPlace {
    /// A vCPU of this VM (`None`: another task), in a slice that began at `since_ns`; `borrows`: on time of another
    /// task.
    pub fn new(vm: Option<u32>, borrows: bool, since_ns: u64) -> GangPlace {
        // VMs are numbered from 0; in C 0 means none.
        let number = vm.map_or(0, |vm| u64::from(vm) + 1);
        // SAFETY: a function of numbers alone.
        let vm = unsafe { raw::unspin_gang_vm(number, borrows) };
        GangPlace(raw::unspin_gang_place { vm, since_ns })
    }

    /// Whether this slice may be cut for that VM; `called`: a vCPU is called to this pCPU already.
    pub fn may_cut(&self, called: bool, vm: u32, now_ns: u64) -> bool {
        // SAFETY: reads a valid struct for the length of the call.
        unsafe { raw::unspin_gang_may_cut(&self.0, called, u64::from(vm) + 1, now_ns) }
    }
}

/// The time until which a call made now is valid, ns.
pub fn called_until_ns(now_ns: u64) -> u64 {
    // SAFETY: a function of numbers alone.
    unsafe { raw::unspin_called_until(now_ns) }
}

/// Whether a call that is valid until `called_until_ns` still is.
pub fn is_called(called_until_ns: u64, now_ns: u64) -> bool {
    // SAFETY: as above.
    unsafe { raw::unspin_is_called(called_until_ns, now_ns) }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! `policy/mechanics/buddy.h` and `policy/mechanics/gang.h`.

use crate::raw;

/// Positions when a pCPU chooses after a yield buddy, or after a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BuddyPlaces {
    /// The candidate's, with what it was credited.
    pub candidate_ns: u64,
    /// The least of those who wait for that pCPU but for the yielder.
    pub waiting_ns: u64,
    /// The yielder's, with what it was raised by; `None`: it does not want to run.
    pub yielder_ns: Option<u64>,
    /// What is too unfair.
    pub threshold_ns: u32,
}

/// Who runs then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BuddyOutcome {
    /// The candidate begins a slice of its own.
    Runs,
    /// The least of those who wait; the yielder is passed over.
    OthersRun,
    /// As if there had been no yield.
    IsTooUnfair,
}

impl BuddyPlaces {
    /// Who runs.
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

/// What runs on a pCPU, for gangs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GangPlace(raw::unspin_gang_place);

impl GangPlace {
    /// A vCPU of that VM (`None`: somebody else), on a slice that began then; `borrows`: on time that is not its own.
    pub fn new(vm: Option<u32>, borrows: bool, since_ns: u64) -> GangPlace {
        // VMs are numbered from 0, and 0 is nobody's there.
        let number = vm.map_or(0, |vm| u64::from(vm) + 1);
        // SAFETY: a function of numbers alone.
        let vm = unsafe { raw::unspin_gang_vm(number, borrows) };
        GangPlace(raw::unspin_gang_place { vm, since_ns })
    }

    /// Whether that slice may be cut for that VM; `called`: somebody is called there already.
    pub fn may_cut(&self, called: bool, vm: u32, now_ns: u64) -> bool {
        // SAFETY: reads a valid struct for the length of the call.
        unsafe { raw::unspin_gang_may_cut(&self.0, called, u64::from(vm) + 1, now_ns) }
    }
}

/// Until when a call made now is to be taken up.
pub fn called_until_ns(now_ns: u64) -> u64 {
    // SAFETY: a function of numbers alone.
    unsafe { raw::unspin_called_until(now_ns) }
}

/// Whether a call until then still stands.
pub fn is_called(called_until_ns: u64, now_ns: u64) -> bool {
    // SAFETY: as above.
    unsafe { raw::unspin_is_called(called_until_ns, now_ns) }
}

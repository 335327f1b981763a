// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which policies a VM has, by trial: `policy/auto/controller.h`.

use super::{Trial, UsefulTime};
use crate::{CandidateRule, raw, steering::Policies};

/// How long an epoch lasts, ns.
pub const AUTO_EPOCH_NS: u64 = raw::UNSPIN_AUTO_EPOCH_NS as u64;
/// The first part of it, which is left out while policies are tried, ns.
pub const AUTO_SETTLE_NS: u64 = raw::UNSPIN_AUTO_SETTLE_NS as u64;
/// Sets of policies that are chosen among.
pub const AUTO_SETS: u32 = raw::UNSPIN_AUTO_SET_COUNT;

/// A set, by number; 0: the first one of every VM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AutoSet(u32);

impl AutoSet {
    /// That one.
    pub const FIRST: AutoSet = AutoSet(0);

    /// All of them.
    pub fn all() -> impl Iterator<Item = AutoSet> {
        (0..AUTO_SETS).map(AutoSet)
    }

    /// Its policies.
    pub fn policies(self) -> Policies {
        // SAFETY: a function of a number alone.
        let bits = unsafe { raw::unspin_auto_policies(self.0) };
        let times_ns = [0, raw::UNSPIN_RECENT_NS, raw::UNSPIN_THRESHOLD_NS];
        let rule = CandidateRule::Strict.number();
        Policies::of_numbers(bits, times_ns, rule, 0)
    }

    /// The slice of a vCPU's thread that goes with it where the host's own scheduler stays, ns; `None`: the kernel's own.
    pub fn slice_ns(self) -> Option<u32> {
        // SAFETY: as above.
        let ns = unsafe { raw::unspin_auto_slice_ns(self.0) };
        (ns != 0).then_some(ns)
    }

    /// Its number, from 0 on.
    pub fn number(self) -> u32 {
        self.0
    }
}

/// What the end of an epoch has led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AutoReason {
    /// Nothing.
    GoesOn,
    /// A trial begins.
    Tries,
    /// The set on trial acts from now on.
    Better,
    /// It does not: it is no better.
    NotBetter,
    /// It does not: no difference could be shown.
    NotResolved,
    /// Another load, which is not known: all sets are to be tried.
    LoadChanged,
    /// A load that was there before has returned: its set is used again.
    LoadBack,
    /// The VM spins more than under the first set, and gets that one back.
    Harms,
}

/// What one VM did in the part of an epoch that was measured.
pub use raw::unspin_auto_epoch as AutoEpoch;

/// The choice of one VM.
#[derive(Clone, Copy, Debug)]
pub struct Auto(raw::unspin_auto);

impl Auto {
    /// For a VM that has appeared; `seed` determines the orders of its trials.
    pub fn new(seed: u64) -> Auto {
        let mut vm = raw::unspin_auto::default();
        // SAFETY: the pointer is to a valid struct, used for the length of the call only.
        unsafe { raw::unspin_auto_start(&mut vm, seed) };
        Auto(vm)
    }

    /// Its epoch has ended. Then [`Auto::set_now`] is the set of the next one. An epoch of no length is none.
    pub fn end_of_epoch(&mut self, length_ns: u64, grown: &UsefulTime) -> AutoReason {
        if length_ns == 0 {
            return AutoReason::GoesOn;
        }
        let epoch = AutoEpoch {
            length_ns,
            grown: *grown,
        };
        // SAFETY: as above, of both.
        match unsafe { raw::unspin_auto_end_of_epoch(&mut self.0, &epoch) } {
            raw::UNSPIN_AUTO_TRIES => AutoReason::Tries,
            raw::UNSPIN_AUTO_BETTER => AutoReason::Better,
            raw::UNSPIN_AUTO_NOT_BETTER => AutoReason::NotBetter,
            raw::UNSPIN_AUTO_NOT_RESOLVED => AutoReason::NotResolved,
            raw::UNSPIN_AUTO_LOAD_CHANGED => AutoReason::LoadChanged,
            raw::UNSPIN_AUTO_LOAD_BACK => AutoReason::LoadBack,
            raw::UNSPIN_AUTO_HARMS => AutoReason::Harms,
            _ => AutoReason::GoesOn,
        }
    }

    /// The set of the epoch that runs.
    pub fn set_now(&self) -> AutoSet {
        // SAFETY: as above.
        AutoSet(unsafe { raw::unspin_auto_set_now(&self.0) })
    }

    /// What is known of the load that is there.
    fn load(&self) -> &raw::unspin_auto_load {
        &self.0.loads[self.0.load as usize % self.0.loads.len()]
    }

    /// The set that acts outside of trials.
    pub fn acting(&self) -> AutoSet {
        AutoSet(self.load().acting)
    }

    /// The set on trial.
    pub fn on_trial(&self) -> Option<AutoSet> {
        let tried_now = self.load().tried_now;
        (tried_now < AUTO_SETS).then_some(AutoSet(tried_now))
    }

    /// The pairs of the present trial, or of the last one.
    pub fn trial(&self) -> Trial {
        Trial(self.load().trial)
    }
}

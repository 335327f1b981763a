// SPDX-License-Identifier: MIT OR Apache-2.0
//! An epoch of a VM and the choice made at its end, as `steer` and the lab print them.

use std::time::Duration;

use super::{Auto, AutoReason, AutoSet, TrialInterval, UsefulTime};

/// The word for the policy that chooses a set for each VM by trial.
pub const AUTO: &str = "auto";

/// One epoch of one VM.
#[derive(Clone, Debug, PartialEq)]
pub struct AutoStep {
    /// Its process; in the lab its number.
    pub vm: u32,
    /// When it ended, since the choosing began.
    pub at: Duration,
    /// The set under which it ran.
    pub ran_under: AutoSet,
    /// How long the part of it was that was measured.
    pub length: Duration,
    /// What the VM did in that.
    pub grown: UsefulTime,
    /// What its end has led to.
    pub reason: AutoReason,
    /// The set that is in force outside of trials from then on.
    pub acting: AutoSet,
    /// The one that acted before.
    pub acted: AutoSet,
    /// The set on trial: one that begins, continues or has ended.
    pub on_trial: Option<AutoSet>,
    /// Pairs of epochs of that trial so far.
    pub pairs: u32,
    /// The trial's result so far, if there is a trial: how much more work the VM does under the set on trial.
    pub interval: Option<TrialInterval>,
}

impl Auto {
    /// As [`Auto::end_of_epoch`], with the details that are printed.
    pub fn step(
        &mut self,
        vm: u32,
        at: Duration,
        length: Duration,
        grown: &UsefulTime,
    ) -> AutoStep {
        let (ran_under, acted, tried) = (self.set_now(), self.acting(), self.on_trial());
        let length_ns = u64::try_from(length.as_nanos()).unwrap_or(u64::MAX);
        let reason = self.end_of_epoch(length_ns, grown);
        let on_trial = self.on_trial().or(tried);
        let trial = on_trial.map(|_| self.trial());
        AutoStep {
            vm,
            at,
            ran_under,
            length,
            grown: *grown,
            reason,
            acting: self.acting(),
            acted,
            on_trial,
            pairs: trial.map_or(0, |trial| trial.pairs()),
            interval: trial.and_then(|trial| trial.interval()),
        }
    }
}

/// The seed of the orders of a VM's trials, from a seed and the VM's number.
pub fn auto_seed(seed: u64, vm: u32) -> u64 {
    // 2^64 / the golden ratio: VMs with numbers that follow one another differ in all bits.
    seed ^ u64::from(vm).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether a VM does more work under one policy than under another: `policy/auto/trial.h`.

use crate::raw;

/// Most pairs of a trial.
pub const TRIAL_PAIRS: u32 = raw::UNSPIN_TRIAL_PAIRS;

/// The result of the pairs so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrialVerdict {
    /// Nothing yet.
    Open,
    /// The policy on trial is better by a hundredth or more.
    Better,
    /// It is not.
    NotBetter,
    /// Not after the most pairs either.
    Unresolved,
}

/// The policy on trial, as a multiple of what acts: with a confidence of 99.5 % on each side.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrialInterval {
    /// At least.
    pub low: f64,
    /// Mean.
    pub middle: f64,
    /// At most; infinite where what acts may have done nothing.
    pub high: f64,
}

/// Pairs of epochs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Trial(pub(super) raw::unspin_trial);

impl Trial {
    /// Adds a pair: useful time per time under what acts and under the policy on trial, any unit, below 2^47.
    pub fn add(&mut self, acting: u64, tried: u64) {
        // SAFETY: the pointer is to a valid struct, used for the length of the call only.
        unsafe { raw::unspin_trial_add(&mut self.0, acting, tried) }
    }

    /// Pairs so far.
    pub fn pairs(&self) -> u32 {
        self.0.pairs
    }

    /// Their result.
    pub fn verdict(&self) -> TrialVerdict {
        self.verdict_of(false)
    }

    /// The result if two clear pairs are enough to drop a policy.
    pub fn verdict_in_haste(&self) -> TrialVerdict {
        self.verdict_of(true)
    }

    fn verdict_of(&self, hasty: bool) -> TrialVerdict {
        // SAFETY: as above.
        match unsafe { raw::unspin_trial_verdict(&self.0, hasty) } {
            raw::UNSPIN_TRIAL_BETTER => TrialVerdict::Better,
            raw::UNSPIN_TRIAL_NOT_BETTER => TrialVerdict::NotBetter,
            raw::UNSPIN_TRIAL_UNRESOLVED => TrialVerdict::Unresolved,
            _ => TrialVerdict::Open,
        }
    }

    /// How much more the VM did; `None` below two pairs.
    pub fn interval(&self) -> Option<TrialInterval> {
        if !(2..=TRIAL_PAIRS).contains(&self.0.pairs) {
            return None;
        }
        // SAFETY: as above; the pairs are as many as it is defined for.
        let parts = unsafe { raw::unspin_trial_interval_of(&self.0) };
        let ratio = |part: u32| f64::from(part) / f64::from(65_536 - part.min(65_536));
        Some(TrialInterval {
            low: ratio(parts.low),
            middle: ratio(parts.middle),
            high: ratio(parts.high),
        })
    }
}

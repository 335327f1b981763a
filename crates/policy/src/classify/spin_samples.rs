// SPDX-License-Identifier: MIT OR Apache-2.0
//! When a vCPU that may be spinning is sampled, and from which sample on it spins: `policy/classify/spin_samples.h`.

use crate::raw;

/// The samples of one vCPU; by default it is not sampled.
#[derive(Clone, Copy, Debug, Default)]
pub struct SpinSamples(raw::unspin_spin_samples);

impl SpinSamples {
    /// There is reason to sample it from now on; `waited`: it was seen waiting.
    pub fn begin(&mut self, waited: bool) {
        // SAFETY: the pointer is to a valid struct, used for the length of the call only.
        unsafe { raw::unspin_samples_begin(&mut self.0, waited) };
    }

    /// A sample finds it waiting or not. Returns whether it spins.
    pub fn sampled(&mut self, waits: bool) -> bool {
        // SAFETY: as above.
        unsafe { raw::unspin_sampled(&mut self.0, waits) }
    }

    /// Time to the next sample, ns; `None`: there is none.
    pub fn interval_ns(&self) -> Option<u64> {
        let ns = self.0.interval_ns;
        (ns != 0).then_some(ns.into())
    }
}

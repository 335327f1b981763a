// SPDX-License-Identifier: MIT OR Apache-2.0
//! What was measured in one phase.

use crate::reading::Window;

/// A phase: one scheduler for a while, what follows a change left out.
#[derive(Clone, Debug, PartialEq)]
pub struct Phase {
    /// Of which pair, from 0 on.
    pub pair: usize,
    /// Whether our scheduler had the host.
    pub steered: bool,
    /// All its windows together.
    pub sum: Window,
    /// What the probe printed in runs that began and ended in it.
    pub probe: Vec<f64>,
    /// Whether it was not cut short.
    pub whole: bool,
    /// What the policy `auto` had chosen at its end, by VM process.
    pub policies: Vec<(u32, String)>,
}

impl Phase {
    pub(crate) fn new(pair: usize, steered: bool) -> Phase {
        Phase {
            pair,
            steered,
            sum: Window::default(),
            probe: Vec::new(),
            whole: false,
            policies: Vec::new(),
        }
    }

    /// Useful time a second of that VM, in CPUs; `None`: it was not there.
    pub fn useful_per_s(&self, vm: usize) -> Option<f64> {
        let vm = self.sum.vms.get(&vm)?;
        self.per_s(vm.useful_ns())
    }

    /// The same of all VMs together.
    pub fn all_useful_per_s(&self) -> Option<f64> {
        self.per_s(self.sum.vms.values().map(|vm| vm.useful_ns()).sum())
    }

    /// Mean of what the probe printed; `None`: nothing.
    pub fn probe_mean(&self) -> Option<f64> {
        (!self.probe.is_empty()).then(|| self.probe.iter().sum::<f64>() / self.probe.len() as f64)
    }

    /// Per second, ns as s.
    fn per_s(&self, ns: u64) -> Option<f64> {
        let length_ns = self.sum.length.as_nanos();
        (length_ns > 0).then(|| ns as f64 / length_ns as f64)
    }
}

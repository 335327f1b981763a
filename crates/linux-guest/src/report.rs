// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a run of Linux guests brought.

use crate::talk::{Counts, Run};

/// The run as a whole.
#[derive(Clone, Debug)]
pub struct Report {
    /// The command that each guest repeated.
    pub command: String,
    /// From the order to begin until every VM had done its runs, by this host's clock.
    pub window_ns: u64,
    /// Each VM.
    pub vms: Vec<VmReport>,
    /// The guest kernel's symbols, as its /proc/kallsyms has them, when they were asked for.
    pub symbols: Option<String>,
}

/// One VM.
#[derive(Clone, Debug)]
pub struct VmReport {
    /// `linux0`, `linux1`, ...; QEMU's process is named so too.
    pub name: String,
    /// Process id of its QEMU.
    pub process: u32,
    /// The guest kernel's release.
    pub kernel: Option<String>,
    /// From the start of QEMU until the guest was ready, by this host's clock.
    pub boot_ns: Option<u64>,
    /// From the start of the guest's kernel until then, by the guest's clock.
    pub guest_boot_ns: Option<u64>,
    /// The runs that were waited for.
    pub runs: Vec<Run>,
}

impl VmReport {
    /// Mean time of a run; `None` without one.
    pub fn mean_load_ns(&self) -> Option<f64> {
        let total: f64 = self.runs.iter().map(|run| run.load_ns as f64).sum();
        (!self.runs.is_empty()).then(|| total / self.runs.len() as f64)
    }

    /// Shortest and longest run; `None` without one.
    pub fn range_load_ns(&self) -> Option<(u64, u64)> {
        let times = || self.runs.iter().map(|run| run.load_ns);
        Some((times().min()?, times().max()?))
    }

    /// What the guest counted in its runs; `None` without one.
    pub fn counts(&self) -> Option<Counts> {
        self.runs.iter().map(|run| run.counts).reduce(Counts::plus)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_run_nothing_is_known() {
        let mut vm = VmReport {
            name: "linux0".into(),
            process: 1,
            kernel: None,
            boot_ns: None,
            guest_boot_ns: None,
            runs: Vec::new(),
        };
        assert_eq!(
            (vm.mean_load_ns(), vm.range_load_ns(), vm.counts()),
            (None, None, None)
        );
        for load_ns in [3, 1, 5] {
            let counts = Counts {
                function_calls: load_ns,
                ..Counts::default()
            };
            vm.runs.push(Run { load_ns, counts });
        }
        assert_eq!(vm.mean_load_ns(), Some(3.0));
        assert_eq!(vm.range_load_ns(), Some((1, 5)));
        assert_eq!(vm.counts().map(|counts| counts.function_calls), Some(9));
    }
}

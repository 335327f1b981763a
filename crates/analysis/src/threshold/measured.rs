// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a recording says of waits: as the host sees them, and as its guests measured them.

use std::collections::BTreeMap;

use unspin_recording::{GuestStatistics, GuestVm, Recorded};

use crate::{
    SourceError, SpinWaits, VmWaits, WaitHistogram, WindowTimes,
    cpu_time::{CpuTimer, CpuTimes},
};

/// All of it.
pub struct Measured {
    /// What is missing or damaged, in words.
    pub problems: Vec<String>,
    /// What people call the VMs.
    pub names: BTreeMap<u32, String>,
    /// CPU times.
    pub times: CpuTimes,
    /// Waits as the host sees them, by VM.
    pub waits: BTreeMap<u32, VmWaits>,
    /// How long windows take.
    pub windows: WindowTimes,
    /// What the guests measured, by the recording's number of the VM.
    pub guests: BTreeMap<u32, GuestVm>,
    /// Nanoseconds of a TSC tick, where guests measured.
    pub tick_ns: Option<f64>,
}

impl Measured {
    /// Two passes over the events: first how long windows take, then the waits.
    pub fn of(recorded: &Recorded) -> Measured {
        let mut windows = WindowTimes::default();
        let mut timer = CpuTimer::default();
        let mut events = recorded.events();
        for event in events.by_ref() {
            windows.see(&event);
            timer.see(&event);
        }
        let mut problems = [recorded.problems(), &events.problems()].concat();
        let mut waits = SpinWaits::new(&windows);
        recorded.events().for_each(|event| waits.see(&event));
        let guests = GuestStatistics::read(recorded.folder()).unwrap_or_else(|error| {
            problems.push(format!("left out: {error}"));
            None
        });
        let times = timer.finish();
        let facts = recorded.facts();
        let waits = waits.finish();
        let vms = times.vm_ns.keys().chain(waits.keys());
        Measured {
            problems,
            names: vms.map(|&vm| (vm, facts.vm_name(vm))).collect(),
            waits,
            windows,
            tick_ns: guests.as_ref().map(|guests| 1e9 / guests.tsc_hz as f64),
            guests: guests
                .into_iter()
                .flat_map(|guests| guests.vms)
                .filter_map(|guest| Some((guest.vm?, guest)))
                .collect(),
            times,
        }
    }

    /// That there is such a VM.
    ///
    /// # Errors
    /// When there is none; says which there are.
    pub fn check_vm(&self, vm: u32) -> Result<(), SourceError> {
        if self.times.vm_ns.contains_key(&vm) || self.waits.contains_key(&vm) {
            return Ok(());
        }
        let numbers: Vec<String> = self.times.vm_ns.keys().map(u32::to_string).collect();
        Err(SourceError::Usage(format!(
            "the recording has no VM {vm}; it has: {}",
            numbers.join(", ")
        )))
    }

    /// Waits as the host sees them: of one VM, or of all.
    pub fn host_histogram(&self, vm: Option<u32>) -> WaitHistogram {
        let mut histogram = WaitHistogram::default();
        for (_, waits) in self
            .waits
            .iter()
            .filter(|(other, _)| is_wanted(vm, **other))
        {
            histogram.merge(&waits.histogram);
        }
        histogram
    }

    /// Waits for locks as the guests measured them; `None`: they did not tell.
    pub fn guest_histogram(&self, vm: Option<u32>) -> Option<WaitHistogram> {
        let tick_ns = self.tick_ns?;
        let mut sum: Option<WaitHistogram> = None;
        for (_, guest) in self
            .guests
            .iter()
            .filter(|(other, _)| is_wanted(vm, **other))
        {
            let counts = guest.lock_wait_count.as_slice().try_into().ok()?;
            let sums = guest.lock_wait_sum_cycles.as_slice().try_into().ok()?;
            let histogram = WaitHistogram::new(counts, sums, tick_ns);
            match &mut sum {
                Some(sum) => sum.merge(&histogram),
                None => sum = Some(histogram),
            }
        }
        sum
    }

    /// CPU time in the recording: of one VM, or of all; ns.
    pub fn running_ns(&self, vm: Option<u32>) -> u64 {
        let vms = self.times.vm_ns.iter();
        vms.filter(|(other, _)| is_wanted(vm, **other))
            .map(|(_, &ns)| ns)
            .sum()
    }

    /// The shortest wait that the host can see, ns.
    pub fn unseen_below_ns(&self, vm: Option<u32>) -> Option<u64> {
        let vms = self.waits.keys().filter(|other| is_wanted(vm, **other));
        vms.filter_map(|&vm| self.windows.shortest_ns(vm)).min()
    }
}

fn is_wanted(vm: Option<u32>, other: u32) -> bool {
    vm.is_none_or(|vm| vm == other)
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the guests of a run measured themselves, beside the recording of that run.

use std::path::Path;

use unspin_recording::{GuestStatistics, GuestVm, Recorded, SCHEMA_VERSION, facts::Facts};
use unspin_vmm::{RunReport, Shares, VmReport};

use crate::Error;

/// Writes what the guests of `report` measured into the recording of that run.
///
/// # Errors
/// When the recording cannot be read, or the file not be written.
pub fn write(folder: &Path, report: &RunReport) -> Result<(), Error> {
    let recorded = Recorded::open(folder)?;
    let tsc_hz = report.clock.tsc_hz();
    let vms = report.vms.iter();
    let statistics = GuestStatistics {
        schema_version: SCHEMA_VERSION,
        tsc_hz,
        vms: vms.map(|vm| of_vm(vm, tsc_hz, recorded.facts())).collect(),
    };
    Ok(statistics.write(folder)?)
}

fn of_vm(vm: &VmReport, tsc_hz: u64, facts: &Facts) -> GuestVm {
    let shares = Shares::of_vm(vm, tsc_hz);
    let mut found = GuestVm {
        name: vm.name.clone(),
        vm: number(vm, facts),
        cpu_ns: shares.cpu_ns(),
        spinning_ns: shares.spin_ns(),
        lock_wait_count: vec![0; 64],
        lock_wait_sum_cycles: vec![0; 64],
    };
    for vcpu in &vm.vcpus {
        let histogram = &vcpu.window.lock_wait;
        for bucket in 0..64 {
            let count = &mut found.lock_wait_count[bucket];
            *count = count.saturating_add(histogram.count[bucket]);
            let sum = &mut found.lock_wait_sum_cycles[bucket];
            *sum = sum.saturating_add(histogram.sum_cycles[bucket]);
        }
    }
    found
}

/// The recording's number of the VM that these threads ran.
fn number(vm: &VmReport, facts: &Facts) -> Option<u32> {
    let is_its = |thread: u32| vm.vcpus.iter().any(|vcpu| vcpu.thread_id == thread);
    let found = facts
        .vms
        .iter()
        .find(|facts| facts.vcpus.iter().any(|vcpu| is_its(vcpu.thread)))?;
    Some(found.vm)
}

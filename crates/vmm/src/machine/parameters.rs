// SPDX-License-Identifier: MIT OR Apache-2.0
//! From a scenario's VM to the parameter block that the guest reads (abi/guest/memory.h).
use std::mem::size_of;

use unspin_abi as abi;
use unspin_scenario::{Distribution, EcsAblation, Length, LockSharing, Scenario, Vm, WorkUnit};

use crate::{Error, host::clock::WorkRate, options::Fault};

/// A wait of more iterations is a stall: VEE'13 section 3 ("2,048 iterations"), ruling 10.
pub const STALL_SPINS: u32 = 2048;

/// What the block needs that the scenario does not say.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings {
    /// Rate of the APIC timer at divide by 1.
    pub apic_timer_hz: u32,
    /// Needed when some distribution is in nanoseconds.
    pub work_rate: Option<WorkRate>,
    /// Rate of the TSC, needed when the load of some VM changes.
    pub tsc_hz: Option<u64>,
    /// What the guest does wrong on purpose.
    pub fault: Fault,
}

/// The block of VM number `number` (counted through all groups), an instance of `vm`.
///
/// # Errors
/// `LogTooLarge` and `WorkTooLong`, for a scenario that was not checked, or work that this machine's rate makes too
/// long.
pub fn build(
    scenario: &Scenario,
    vm: &Vm,
    number: u32,
    surroundings: Surroundings,
) -> Result<abi::unspin_guest_parameters, Error> {
    let loops = |name, distribution| quantile_loops(name, distribution, surroundings.work_rate);
    Ok(abi::unspin_guest_parameters {
        magic: abi::UNSPIN_GUEST_MAGIC,
        version: abi::UNSPIN_GUEST_VERSION,
        seed: scenario.vm_seed(number),
        vcpus: vm.vcpus,
        lock_kind: vm.lock.number(),
        locks: match vm.locks {
            LockSharing::Shared(locks) => locks,
            LockSharing::Private => 0,
        },
        iterations: match scenario.length {
            Length::Iterations(iterations) => iterations,
            Length::DurationNs(_) => 0,
        },
        shootdown_every_iterations: vm.shootdown_every_iterations,
        wakeup_every_iterations: vm.wakeup_every_iterations,
        pause_every_spins: vm.pause_every_spins,
        tick_hz: vm.tick_hz,
        apic_timer_hz: surroundings.apic_timer_hz,
        log_records: checked_log_records(vm)?,
        log_minimum_spins: vm.log_minimum_spins,
        stall_spins: STALL_SPINS,
        user_work: loops("user_work", &vm.user_work)?,
        kernel_work: loops("kernel_work", &vm.kernel_work)?,
        hold: loops("hold", &vm.hold)?,
        stop: 0,
        fault_injection: surroundings.fault.number(),
        pv_page: vm.pv_page.into(),
        help_after_spins: vm.help_after_spins,
        tasks_per_vcpu: vm.tasks_per_vcpu,
        workload: vm.workload.number(),
        reader_percent: vm.reader_percent,
        ecs_no_save: (vm.ecs_ablation == EcsAblation::NoSave).into(),
        load_cycles: load_cycles(vm, surroundings.tsc_hz),
    })
}

/// Whether some distribution of the scenario is in nanoseconds, so that the machine must be calibrated.
pub fn needs_work_rate(scenario: &Scenario) -> bool {
    scenario.vms.iter().any(|vm| {
        [&vm.user_work, &vm.kernel_work, &vm.hold]
            .iter()
            .any(|distribution| distribution.unit == WorkUnit::Nanoseconds)
    })
}

/// Whether the load of some VM changes, so that the TSC's rate is needed.
pub fn needs_tsc_rate(scenario: &Scenario) -> bool {
    scenario.vms.iter().any(|vm| vm.load_changes_every_ms > 0)
}

/// TSC cycles after which the VM's load changes; 0: never.
fn load_cycles(vm: &Vm, tsc_hz: Option<u64>) -> u64 {
    match vm.load_changes_every_ms {
        0 => 0,
        every_ms => {
            let tsc_hz = tsc_hz.expect("run() measures the rate when a load changes");
            (tsc_hz / 1_000).max(1) * u64::from(every_ms)
        }
    }
}

fn checked_log_records(vm: &Vm) -> Result<u32, Error> {
    let record_bytes = size_of::<abi::unspin_guest_wait>() as u32;
    let most = abi::UNSPIN_GUEST_LOG_BYTES / record_bytes / vm.vcpus.max(1);
    if vm.log_records > most {
        return Err(Error::LogTooLarge {
            records: vm.log_records,
            vcpus: vm.vcpus,
            most,
        });
    }
    Ok(vm.log_records)
}

fn quantile_loops(
    name: &'static str,
    distribution: &Distribution,
    work_rate: Option<WorkRate>,
) -> Result<abi::unspin_distribution, Error> {
    let mut quantile_loops = [0u32; abi::UNSPIN_QUANTILES as usize];
    let table = distribution.quantile_table();
    for (loops, value) in quantile_loops.iter_mut().zip(table) {
        let (exact, unit) = match distribution.unit {
            WorkUnit::Loops => (value, "loops"),
            WorkUnit::Nanoseconds => {
                let rate = work_rate.expect("run() calibrates when a distribution is in ns");
                (rate.loops(value), "ns")
            }
        };
        *loops = u32::try_from(exact).map_err(|_| Error::WorkTooLong {
            distribution: name,
            value,
            unit,
        })?;
    }
    Ok(abi::unspin_distribution { quantile_loops })
}

#[cfg(test)]
pub(crate) mod tests;

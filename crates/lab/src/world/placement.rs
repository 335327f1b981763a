// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where a VM's tasks belong: groups of the host scheduler, their weights, and the pCPUs they may use.

use unspin_scenario::{LabGroups, Scenario};

use crate::{
    ids::{Cpu, Group},
    scheduler::{Allowed, HostScheduler, NICE_0_WEIGHT},
};

/// What the scenario says of the VMs of one `[[vm]]`.
pub(super) struct Placement {
    weight: u32,
    each_vcpu: bool,
    pub allowed: Allowed,
}

impl Placement {
    /// For the `[[vm]]` of that number.
    pub fn new(scenario: &Scenario, number: usize) -> Placement {
        let lab = scenario.lab.as_ref();
        let weight = lab.and_then(|lab| lab.weights.get(number));
        let pins = lab.and_then(|lab| lab.pins.get(number));
        Placement {
            weight: weight.map_or(NICE_0_WEIGHT, |weight| scheduler_weight(*weight)),
            each_vcpu: lab.is_some_and(|lab| lab.groups == LabGroups::Vcpu),
            allowed: pins.map_or(Allowed::All, |cpus| {
                Allowed::Only(cpus.iter().copied().map(Cpu).collect())
            }),
        }
    }

    /// The group of each of a VM's vCPUs, made now.
    pub fn groups(&self, scheduler: &mut dyn HostScheduler, vcpus: u32) -> Vec<Group> {
        let of_vm = scheduler.add_group(Group(0), self.weight);
        let of_vcpu = |_| match self.each_vcpu {
            true => scheduler.add_group(of_vm, NICE_0_WEIGHT),
            false => of_vm,
        };
        (0..vcpus).map(of_vcpu).collect()
    }
}

/// `sched_weight_from_cgroup()` (kernel/sched/sched.h, Linux 7.2): 100 is 1,024. Rounded to the nearest.
fn scheduler_weight(weight: u32) -> u32 {
    // At most 10,000 * 1,024.
    ((weight * NICE_0_WEIGHT + 50) / 100).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_the_kernels() {
        assert_eq!(
            [1, 50, 100, 10_000].map(scheduler_weight),
            [10, 512, 1_024, 102_400]
        );
    }
}

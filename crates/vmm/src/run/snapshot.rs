// SPDX-License-Identifier: MIT OR Apache-2.0
//! Statistics of running VMs at one time, and what they grew by between two.
use unspin_abi as abi;

use crate::{
    host::clock::monotonic_ns,
    run::{construct::FleetVm, fleet::Fleet, report::growth},
};

/// Statistics of all VMs at one time; the VMs' times differ by what reading takes.
#[derive(Clone, Debug)]
pub struct Snapshot {
    pub(crate) vms: Vec<VmSnapshot>,
}

#[derive(Clone, Debug)]
pub(crate) struct VmSnapshot {
    pub(crate) monotonic_ns: u64,
    pub(crate) vcpus: Vec<VcpuSnapshot>,
}

#[derive(Clone, Debug)]
pub(crate) struct VcpuSnapshot {
    pub(crate) statistics: abi::unspin_guest_statistics,
    pub(crate) cpu_time_ns: u64,
}

/// What one VM did between two snapshots.
#[derive(Clone, Debug)]
pub struct VmGrowth {
    /// Between the two readings of this VM.
    pub window_ns: u64,
    /// By vCPU number.
    pub vcpus: Vec<VcpuGrowth>,
}

/// What one vCPU did between two snapshots.
#[derive(Clone, Debug)]
pub struct VcpuGrowth {
    /// What its statistics grew by.
    pub window: abi::unspin_guest_statistics,
    /// CPU time of its thread, guest and KVM together.
    pub cpu_time_ns: u64,
}

impl Snapshot {
    /// Reads every vCPU of every VM.
    pub(crate) fn take(fleet: &Fleet) -> Snapshot {
        let vm = |vm: &FleetVm| VmSnapshot {
            monotonic_ns: monotonic_ns(),
            vcpus: (0..)
                .zip(&vm.vcpus)
                .map(|(number, vcpu)| VcpuSnapshot {
                    statistics: vm.machine.memory.statistics(number),
                    cpu_time_ns: vcpu.cpu_time_ns(),
                })
                .collect(),
        };
        Snapshot {
            vms: fleet.vms.iter().map(vm).collect(),
        }
    }

    /// What each VM did from `begin`, an earlier snapshot of the same VMs, until this one. In order of VM numbers.
    pub fn since(&self, begin: &Snapshot) -> Vec<VmGrowth> {
        let pairs = begin.vms.iter().zip(&self.vms);
        pairs.map(|(begin, end)| end.since(begin)).collect()
    }
}

impl VmSnapshot {
    fn since(&self, begin: &VmSnapshot) -> VmGrowth {
        VmGrowth {
            window_ns: self.monotonic_ns.saturating_sub(begin.monotonic_ns),
            vcpus: begin
                .vcpus
                .iter()
                .zip(&self.vcpus)
                .map(|(begin, end)| VcpuGrowth {
                    window: growth(&begin.statistics, &end.statistics),
                    cpu_time_ns: end.cpu_time_ns.saturating_sub(begin.cpu_time_ns),
                })
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(at_ns: u64, operations: u64, cpu_time_ns: u64) -> Snapshot {
        let statistics = abi::unspin_guest_statistics {
            operations,
            ..Default::default()
        };
        Snapshot {
            vms: vec![VmSnapshot {
                monotonic_ns: at_ns,
                vcpus: vec![VcpuSnapshot {
                    statistics,
                    cpu_time_ns,
                }],
            }],
        }
    }

    #[test]
    fn a_window_is_the_difference_of_its_ends() {
        let grown = snapshot(1_500, 90, 700).since(&snapshot(1_000, 40, 300));
        assert_eq!(grown.len(), 1);
        assert_eq!(grown[0].window_ns, 500);
        let vcpu = &grown[0].vcpus[0];
        assert_eq!((vcpu.window.operations, vcpu.cpu_time_ns), (50, 400));
    }
}

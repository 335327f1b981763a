// SPDX-License-Identifier: MIT OR Apache-2.0
//! What runs of `unspin bench vm` measured, and the figures that its table shows of them.

use unspin_abi::{LockKind, unspin_guest_statistics};
use unspin_lockbench::latency::jain;
use unspin_scenario::Distribution;
use unspin_vmm::{RunReport, VcpuReport};

use crate::buckets::{add_buckets, percentile_cycles};

/// One lock at one point.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The lock.
    pub lock: LockKind,
    /// The first lock a second time: what a ratio of 1 looks like.
    pub is_again: bool,
    /// Number of the point: cells of one point differ in their locks alone.
    pub point: usize,
    /// VMs that are measured.
    pub vms: u32,
    /// vCPUs of each.
    pub vcpus: u32,
    /// Work inside the lock.
    pub hold: Distribution,
    /// Work in user mode.
    pub think: Distribution,
    /// VMs of one vCPU beside them.
    pub neighbours: u32,
    /// One per repetition, in that order.
    pub samples: Vec<Sample>,
}

/// One run: the VMs that are measured, neighbours left out.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Operations of all VMs per second.
    pub operations_per_second: f64,
    /// What it follows from, vCPU after vCPU, VM after VM.
    pub vcpus: Vec<VcpuReport>,
    /// Rate of the TSC.
    pub tsc_hz: u64,
}

impl Sample {
    /// Of the first group.
    pub fn of(report: &RunReport) -> Sample {
        let vms = || report.vms.iter().filter(|vm| vm.group == 0);
        let rate = vms().flat_map(|vm| {
            vm.vcpus
                .iter()
                .map(|vcpu| vcpu.window.operations as f64 * 1e9 / vm.window_ns as f64)
        });
        Sample {
            operations_per_second: rate.sum(),
            vcpus: vms().flat_map(|vm| vm.vcpus.iter().cloned()).collect(),
            tsc_hz: report.clock.tsc_hz(),
        }
    }
}

impl Cell {
    /// Operations per second of each repetition.
    pub fn rates(&self) -> Vec<f64> {
        let rate = |sample: &Sample| sample.operations_per_second;
        self.samples.iter().map(rate).collect()
    }

    /// Sum over all vCPUs and repetitions, in the windows.
    pub fn sum(&self, of: impl Fn(&unspin_guest_statistics) -> u64) -> u64 {
        let vcpus = self.samples.iter().flat_map(|sample| &sample.vcpus);
        vcpus.fold(0, |sum, vcpu| sum.saturating_add(of(&vcpu.window)))
    }

    /// Jain's index over the operations of vCPUs, each one's summed over the repetitions; `None` without operations.
    pub fn jain(&self) -> Option<f64> {
        let mut shares = vec![0u64; (self.vms * self.vcpus) as usize];
        for sample in &self.samples {
            for (share, vcpu) in shares.iter_mut().zip(&sample.vcpus) {
                *share = share.saturating_add(vcpu.window.operations);
            }
        }
        jain(&shares)
    }

    /// CPU time of the vCPU threads per operation; `None` without operations.
    pub fn cpu_ns_per_operation(&self) -> Option<f64> {
        let vcpus = self.samples.iter().flat_map(|sample| &sample.vcpus);
        let cpu_ns: u64 = vcpus.map(|vcpu| vcpu.cpu_time_ns).sum();
        let operations = self.sum(|window| window.operations);
        (operations > 0).then(|| cpu_ns as f64 / operations as f64)
    }

    /// The upper bound of the bucket that holds the wait of this rank, of the acquisitions that found the lock taken;
    /// `None` when none did.
    pub fn wait_ns(&self, per_mille: u32) -> Option<f64> {
        let mut counts = Vec::new();
        for vcpu in self.samples.iter().flat_map(|sample| &sample.vcpus) {
            add_buckets(&mut counts, &vcpu.window.lock_wait.count);
        }
        let cycles = percentile_cycles(&counts, per_mille)?;
        Some(cycles * 1e9 / self.tsc_hz()?)
    }

    /// The longest wait of any vCPU in the whole runs, warm-up included; `None` when nobody waited.
    pub fn longest_ns(&self) -> Option<f64> {
        let vcpus = self.samples.iter().flat_map(|sample| &sample.vcpus);
        let cycles = vcpus
            .map(|vcpu| vcpu.statistics.longest_wait_cycles)
            .max()?;
        let tsc_hz = self.tsc_hz()?;
        (cycles > 0).then(|| cycles as f64 * 1e9 / tsc_hz)
    }

    /// The TSC's rate does not change (constant_tsc): any sample's will do.
    fn tsc_hz(&self) -> Option<f64> {
        let hz = self.samples.first()?.tsc_hz;
        (hz > 0).then_some(hz as f64)
    }
}

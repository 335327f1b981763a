// SPDX-License-Identifier: MIT OR Apache-2.0
//! What happened between two views, as rows: VMs by what they waste, their vCPUs, and for whom they spun.

use std::cmp::Ordering;

use unspin_report::row;

use crate::rates::{HostRates, Rates, VmRates};

row! {
    "vm", ["top"];
    /// A VM; those that waste most CPU time come first.
    pub struct VmRow {
        /// Its name; `vm7` where its VMM says none.
        pub vm: String = ("VM", Text),
        /// Its VMM's process.
        pub process: Option<u32>,
        /// vCPUs that have run.
        pub vcpus: usize = ("vCPUs", Count),
        #[serde(flatten)]
        rates: RateKeys = (of RateKeys),
        /// Directed yields that succeeded, of those tried; percent.
        pub yields_percent: Option<f64> = ("yields %", Percent),
        /// Sampled: what most of its spin time was for.
        pub sampled_cause: Option<String> = ("mostly for", Text),
        /// Sampled: that cause's share of its spin time; percent.
        pub sampled_percent: Option<f64> = ("%", Percent),
        /// Sampled bursts that say so.
        pub bursts: u64,
    }
}

row! {
    "vcpu", ["top"];
    /// A vCPU's thread.
    pub struct VcpuRow {
        /// Its VM.
        pub vm: String = ("VM", Text),
        /// Its number.
        pub vcpu: u32 = ("vCPU", Count),
        /// The thread.
        pub thread: u32,
        #[serde(flatten)]
        rates: RateKeys = (of RateKeys),
    }
}

row! {
    "blame", ["top"];
    /// Sampled: for whom a VM spun in the last bursts, and who ran instead; the largest first.
    pub struct BlameRow {
        /// The VM that spun.
        pub vm: String = ("VM", Text),
        /// What it spun for: `holder_preempted`, `next_waiter_preempted`, `call_user`, `call_kernel`, `call_halted`, `contention` or `unknown`.
        pub cause: String = ("spun for", Text),
        /// The vCPU that was off its CPU; null: nobody was.
        pub vcpu: Option<u16> = ("vCPU", Count),
        /// Who ran on the CPU that it had left.
        pub instead: Option<String> = ("who ran instead", Text),
        /// Share of the VM's spin time; percent.
        pub spin_percent: f64 = ("of spin time %", Percent),
    }
}

row! {
    keys;
    /// What was done; null: not known here.
    pub struct RateKeys {
        /// CPU time, guest and KVM together; percent of one CPU.
        pub run_percent: f64 = ("run %", Percent),
        /// Time in which it could have run and had no CPU; percent of one vCPU's time.
        pub wait_percent: f64 = ("wait %", Percent),
        /// Time halted; percent of one vCPU's time.
        pub halted_percent: Option<f64> = ("halted %", Percent),
        /// CPU time wasted by spinning, in the guest and in KVM for pause-loop exits; percent of one CPU.
        pub waste_percent: Option<f64> = ("waste %", Percent),
        /// The same; percent of its CPU time.
        pub spin_percent: Option<f64> = ("of CPU time %", Percent),
        /// Pause-loop exits a second.
        pub ple_exits_per_second: Option<f64> = ("PLE/s", Count),
        /// Slices a second that ended while it spun.
        pub slices_lost_per_second: Option<f64> = ("lost/s", Count),
    }
}

impl From<&Rates> for RateKeys {
    fn from(rates: &Rates) -> RateKeys {
        RateKeys {
            run_percent: rates.run_percent,
            wait_percent: rates.wait_percent,
            halted_percent: rates.halted_percent,
            waste_percent: rates.waste_percent,
            spin_percent: rates.spin_percent,
            ple_exits_per_second: rates.ple_exits_per_second,
            slices_lost_per_second: rates.slices_lost_per_second,
        }
    }
}

/// VMs by what they waste, the most first; of equals by CPU time, then in order of appearance.
pub fn by_waste(one: &VmRates, other: &VmRates) -> Ordering {
    let key = |vm: &VmRates| (vm.total.waste_percent.unwrap_or(0.0), vm.total.run_percent);
    let ((waste, run), (other_waste, other_run)) = (key(one), key(other));
    other_waste
        .total_cmp(&waste)
        .then(other_run.total_cmp(&run))
        .then(one.number.cmp(&other.number))
}

fn sorted(host: &HostRates) -> Vec<&VmRates> {
    let mut vms: Vec<&VmRates> = host.vms.iter().collect();
    vms.sort_by(|one, other| by_waste(one, other));
    vms
}

/// Every VM.
pub fn vms(host: &HostRates) -> Vec<VmRow> {
    let row = |vm: &VmRates| VmRow {
        vm: vm.name.clone(),
        process: vm.process,
        vcpus: vm.vcpus.len(),
        rates: (&vm.total).into(),
        yields_percent: vm.total.yields_percent,
        sampled_cause: vm.mostly().map(|(cause, _)| cause.to_owned()),
        sampled_percent: vm.mostly().map(|(_, percent)| percent),
        bursts: vm.recent.bursts,
    };
    sorted(host).into_iter().map(row).collect()
}

/// Every vCPU, in the order of VMs.
pub fn vcpus(host: &HostRates) -> Vec<VcpuRow> {
    let of_vm = |vm: &VmRates| {
        let vcpus = vm.vcpus.iter();
        let rows = vcpus.map(|vcpu| VcpuRow {
            vm: vm.name.clone(),
            vcpu: vcpu.vcpu,
            thread: vcpu.thread,
            rates: (&vcpu.rates).into(),
        });
        rows.collect::<Vec<_>>()
    };
    sorted(host).into_iter().flat_map(of_vm).collect()
}

/// Whom spin time can be blamed on, in the order of VMs.
pub fn blame(host: &HostRates) -> Vec<BlameRow> {
    let of_vm = |vm: &VmRates| {
        let total = vm.recent.sampled.total_ns().max(1) as f64;
        let blame = vm.recent.blame.iter();
        let rows = blame.map(|blame| BlameRow {
            vm: vm.name.clone(),
            cause: blame.cause.clone(),
            vcpu: blame.vcpu,
            instead: blame.instead.clone(),
            spin_percent: 100.0 * blame.spin_ns as f64 / total,
        });
        rows.collect::<Vec<_>>()
    };
    sorted(host).into_iter().flat_map(of_vm).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vm(number: u64, waste_percent: Option<f64>, run_percent: f64) -> VmRates {
        let total = Rates {
            waste_percent,
            run_percent,
            ..Rates::default()
        };
        VmRates {
            number,
            total,
            ..VmRates::default()
        }
    }

    #[test]
    fn those_that_waste_most_come_first() {
        let host = HostRates {
            vms: vec![
                vm(1, Some(1.0), 50.0),
                vm(2, Some(9.0), 10.0),
                vm(3, None, 90.0),
                vm(4, Some(1.0), 50.0),
            ],
            ..HostRates::default()
        };
        let numbers: Vec<u64> = sorted(&host).iter().map(|vm| vm.number).collect();
        assert_eq!(numbers, [2, 1, 4, 3]);
        assert_eq!(vms(&host).len(), 4);
    }
}

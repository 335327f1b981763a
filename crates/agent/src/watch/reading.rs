// SPDX-License-Identifier: MIT OR Apache-2.0
//! What was counted at one moment, by VM and vCPU.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use unspin_abi as abi;

/// Counters of one vCPU, or their sums over a VM. All only grow, up to what a later reading knows better (a halt that goes on).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchCounters {
    /// On a CPU, guest and KVM together; ns.
    pub run_ns: u64,
    /// Runnable without a CPU (steal time, as the guest sees it); ns.
    pub wait_ns: u64,
    /// Halted by its guest; ns.
    pub halted_ns: u64,
    /// Inside its guest; ns.
    pub guest_ns: u64,
    /// Of that in spin loops; ns.
    pub spin_ns: u64,
    /// On a CPU, in KVM, for pause-loop exits: wasted as spin time is, but outside the guest; ns.
    pub handling_ns: u64,
    /// Exits, all.
    pub exits: u64,
    /// Pause-loop exits.
    pub ple_exits: u64,
    /// Of them with the guest in user mode; 0 on Intel.
    pub ple_exits_user: u64,
    /// Directed yields that KVM tried for them.
    pub yields_tried: u64,
    /// Of those, yields after which the target runs next.
    pub yields_succeeded: u64,
    /// Slices that ended while it spun.
    pub slices_lost: u64,
}

macro_rules! each_field {
    ($mine:expr, $other:expr, $do:expr, $($field:ident),*) => {
        WatchCounters { $($field: $do($mine.$field, $other.$field)),* }
    };
}

impl WatchCounters {
    fn with(&self, other: &WatchCounters, how: impl Fn(u64, u64) -> u64) -> WatchCounters {
        each_field!(
            self,
            other,
            how,
            run_ns,
            wait_ns,
            halted_ns,
            guest_ns,
            spin_ns,
            handling_ns,
            exits,
            ple_exits,
            ple_exits_user,
            yields_tried,
            yields_succeeded,
            slices_lost
        )
    }

    /// CPU time wasted by spinning: in the guest, and in KVM for the pause-loop exits that follow; ns.
    pub fn waste_ns(&self) -> u64 {
        self.spin_ns.saturating_add(self.handling_ns)
    }

    /// Both together.
    #[must_use]
    pub fn plus(&self, other: &WatchCounters) -> WatchCounters {
        self.with(other, u64::saturating_add)
    }

    /// What was counted since `earlier`; what has not grown is 0.
    #[must_use]
    pub fn since(&self, earlier: &WatchCounters) -> WatchCounters {
        self.with(earlier, u64::saturating_sub)
    }

    /// Of each the larger one.
    #[must_use]
    pub fn at_least(&self, other: &WatchCounters) -> WatchCounters {
        self.with(other, u64::max)
    }

    pub(super) fn from_abi(raw: &abi::unspin_watch_counters) -> WatchCounters {
        WatchCounters {
            run_ns: raw.run_ns,
            wait_ns: raw.wait_ns,
            halted_ns: raw.halted_ns,
            guest_ns: raw.guest_ns,
            spin_ns: raw.spin_ns,
            handling_ns: raw.handling_ns,
            exits: raw.exits,
            ple_exits: raw.ple_exits,
            ple_exits_user: raw.ple_exits_user,
            yields_tried: raw.yields_tried,
            yields_succeeded: raw.yields_succeeded,
            slices_lost: raw.slices_lost,
        }
    }
}

/// All VMs of the host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WatchedHost {
    /// When it was read; `CLOCK_MONOTONIC`, ns.
    pub time_ns: u64,
    /// By number.
    pub vms: Vec<WatchedVm>,
    /// Whether directed yields are counted; if not, they are 0.
    pub sees_yields: bool,
    /// Whether KVM's exits are told apart; if not, halts, spinning, pause-loop exits and lost slices are 0. It takes kvm_amd or kvm_intel.
    pub sees_exits: bool,
    /// Exits for which the kernel had no memory.
    pub unseen_exits: u64,
}

/// One VM.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WatchedVm {
    /// From 1, in order of appearance since the attach; numbers may be left out, none is given twice.
    pub number: u64,
    /// Process of its vCPUs' threads; `None`: it has none now.
    pub process: Option<u32>,
    /// Sums over its threads, those that have ended included.
    pub total: WatchCounters,
    /// Its vCPUs' threads, by vCPU and thread.
    pub vcpus: Vec<WatchedVcpu>,
}

/// One vCPU's thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WatchedVcpu {
    /// KVM's number of the vCPU.
    pub vcpu: u32,
    /// The thread.
    pub thread: u32,
    /// When it was first seen to serve the vCPU; `CLOCK_MONOTONIC`, ns.
    pub since_ns: u64,
    /// Since then.
    pub counters: WatchCounters,
}

/// The host from what its maps and the iterator say.
pub(super) fn host(
    time_ns: u64,
    vms: &[(u64, abi::unspin_watch_vm)],
    records: &[abi::unspin_watch_record],
) -> WatchedHost {
    let mut by_number: BTreeMap<u64, WatchedVm> = BTreeMap::new();
    // Number 0: the kernel is just giving it one.
    for (_, vm) in vms.iter().filter(|(_, vm)| vm.number != 0) {
        let total = WatchCounters::from_abi(&vm.ended);
        let number = vm.number;
        let vm = WatchedVm {
            number,
            total,
            ..WatchedVm::default()
        };
        by_number.insert(number, vm);
    }
    for record in records {
        // A VM that appeared since the map was read comes without ended threads.
        let vm = by_number.entry(record.vm).or_insert_with(|| WatchedVm {
            number: record.vm,
            ..WatchedVm::default()
        });
        let vcpu = vcpu(time_ns, record);
        vm.process = Some(record.process);
        vm.total = vm.total.plus(&vcpu.counters);
        vm.vcpus.push(vcpu);
    }
    for vm in by_number.values_mut() {
        vm.vcpus.sort_by_key(|vcpu| (vcpu.vcpu, vcpu.thread));
    }
    WatchedHost {
        time_ns,
        vms: by_number.into_values().collect(),
        ..WatchedHost::default()
    }
}

/// With the halt that goes on counted up to now.
fn vcpu(time_ns: u64, record: &abi::unspin_watch_record) -> WatchedVcpu {
    let mut counters = WatchCounters::from_abi(&record.counters);
    if record.halted_since_ns != 0 {
        counters.halted_ns += time_ns.saturating_sub(record.halted_since_ns);
    }
    WatchedVcpu {
        vcpu: record.vcpu,
        thread: record.thread,
        since_ns: record.since_ns,
        counters,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(run_ns: u64) -> abi::unspin_watch_counters {
        abi::unspin_watch_counters {
            run_ns,
            slices_lost: 1,
            ..Default::default()
        }
    }

    fn record(vm: u64, vcpu: u32, run_ns: u64) -> abi::unspin_watch_record {
        abi::unspin_watch_record {
            vm,
            vcpu,
            process: 100,
            thread: 200 + vcpu,
            since_ns: 5,
            counters: counters(run_ns),
            ..Default::default()
        }
    }

    fn kept(number: u64, run_ns: u64) -> (u64, abi::unspin_watch_vm) {
        let vm = abi::unspin_watch_vm {
            number,
            ended: counters(run_ns),
            places: [0; 33],
        };
        (number + 1000, vm)
    }

    #[test]
    fn a_vm_is_the_sum_of_its_threads_and_of_those_that_ended() {
        let host = host(50, &[kept(1, 7)], &[record(1, 1, 20), record(1, 0, 10)]);
        let [vm] = &host.vms[..] else {
            panic!("{host:?}")
        };
        assert_eq!((vm.process, vm.total.run_ns), (Some(100), 37));
        assert_eq!(vm.total.slices_lost, 3);
        let numbers: Vec<u32> = vm.vcpus.iter().map(|vcpu| vcpu.vcpu).collect();
        assert_eq!(numbers, [0, 1]);
    }

    #[test]
    fn a_vm_without_threads_stays_and_one_without_a_number_is_not_there_yet() {
        let host = host(50, &[kept(0, 0), kept(3, 9)], &[record(8, 0, 1)]);
        let seen: Vec<(u64, Option<u32>)> =
            host.vms.iter().map(|vm| (vm.number, vm.process)).collect();
        assert_eq!(seen, [(3, None), (8, Some(100))]);
    }

    #[test]
    fn a_halt_that_goes_on_is_counted_up_to_now() {
        let mut halted = record(1, 0, 1);
        halted.counters.halted_ns = 100;
        halted.halted_since_ns = 40;
        assert_eq!(vcpu(50, &halted).counters.halted_ns, 110);
        // Of a clock that is behind nothing is taken away.
        assert_eq!(vcpu(30, &halted).counters.halted_ns, 100);
    }

    #[test]
    fn differences_are_never_below_zero() {
        let (small, large) = (
            WatchCounters {
                run_ns: 1,
                exits: 9,
                ..WatchCounters::default()
            },
            WatchCounters {
                run_ns: 5,
                exits: 8,
                ..WatchCounters::default()
            },
        );
        let grown = large.since(&small);
        assert_eq!((grown.run_ns, grown.exits), (4, 0));
        let most = large.at_least(&small);
        assert_eq!((most.run_ns, most.exits), (5, 9));
    }
}

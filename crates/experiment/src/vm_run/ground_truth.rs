// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why vCPUs stalled: what the guest can tell by itself (Table 1 of VEE'13, ruling 10) beside what really happened (the
//! guest's log joined with the host's switches).

use std::collections::BTreeMap;

use unspin_abi::{UNSPIN_WAIT_LOCK, unspin_guest_statistics};
use unspin_events::{
    GuestWait, SwitchTrace, VcpuCounters,
    ground_truth::{self, GroundTruth, Table1},
};
use unspin_report::row;
use unspin_vmm::VmReport;

use super::Run;
use crate::{Error, watch::Seen};

row! {
    "table1", ["vm run"];
    /// VEE'13's Table 1 of a VM, as its guest counts: waits of more than `stall_spins` spins, and whether anybody held the lock
    /// then (ruling 10).
    pub struct Table1Row {
        /// The VM.
        vm: String = ("VM", Text),
        /// Its lock.
        lock: Option<&'static str> = ("lock", Text),
        /// Acquisitions (N).
        acquisitions: u64 = ("acquisitions N", Count),
        /// Stalls (Nh + Nw).
        stalls: u64 = ("stalls Nh + Nw", Count),
        /// Of these, those with nobody holding the lock (Nw).
        stalls_unheld: u64 = ("unheld Nw", Count),
        /// Nw / (Nh + Nw); percent.
        stalls_unheld_percent: Option<f64> = ("Nw / (Nh + Nw) %", Percent),
        /// Waits in the guest's log.
        log_kept: u64 = ("waits logged", Count),
        /// Waits for which the log had no room.
        log_dropped: u64 = ("no room for", Count),
        /// Records of the log that cannot be.
        log_refused: u64 = ("not believed", Count),
    }
}

row! {
    "ground-truth", ["vm run"];
    /// Why a VM's vCPUs stalled: the waits of its log joined with the host's switches.
    pub struct GroundTruthRow {
        /// The VM.
        vm: String = ("VM", Text),
        /// Stalls of lock waits.
        lock_stalls: u64 = ("lock stalls", Count),
        /// Stalls with the holder off its pCPU (LHP).
        holder_off_cpu: u64 = ("LHP", Count),
        /// Stalls with the holder running.
        holder_running: u64 = ("running", Count),
        /// Stalls with the lock free and the waiter that got it next off its pCPU (LWP).
        next_waiter_off_cpu: u64 = ("LWP", Count),
        /// Stalls with the lock free and the waiter that got it next running.
        next_waiter_running: u64 = ("running", Count),
        /// Stalls with the lock free, and one that came later got it next.
        next_came_later: u64 = ("came later", Count),
        /// Stalls with the lock free, and the log does not say who got it next.
        next_unknown: u64 = ("unknown", Count),
        /// Stalls whose vCPU in question was not observed by the host.
        unobserved: u64 = ("unobserved", Count),
        /// Waiters further back in the queue that were off their pCPU, of all lock stalls.
        deeper_waiters_off_cpu: u64 = ("deeper waiters off CPU", Count),
        /// Lock stalls with such a waiter.
        stalls_with_deeper_waiter_off_cpu: u64,
        /// Shootdowns that stalled with a receiver off its pCPU that had not answered.
        shootdown_stalls_receiver_off_cpu: u64 = ("shootdowns: receiver off CPU", Count),
        /// Shootdowns that stalled with all such receivers running.
        shootdown_stalls_receivers_running: u64 = ("all running", Count),
        /// Lock stalls with the holder's steal-time flag `preempted` set, and the holder off its pCPU.
        flag_set_and_off_cpu: u64,
        /// The flag clear, and the holder running.
        flag_clear_and_running: u64,
        /// The flag set, but the holder running.
        flag_set_but_running: u64 = ("`preempted` set, running", Count),
        /// The flag clear, but the holder off its pCPU.
        flag_clear_but_off_cpu: u64 = ("clear, off CPU", Count),
        /// Waits of the log that were joined.
        waits_joined: u64,
    }
}

impl Run {
    /// Of each VM: Table 1; and the ground truth, none when the run was not watched.
    ///
    /// # Errors
    /// A log that cannot be joined.
    pub fn stall_rows(&self) -> Result<(Vec<Table1Row>, Vec<GroundTruthRow>), Error> {
        let (mut counted, mut truths) = (Vec::new(), Vec::new());
        for vm in &self.report.vms {
            let (waits, refused) = waits(vm);
            counted.push(table_1_row(self, vm, refused));
            if let Some(seen) = &self.seen {
                truths.push(ground_truth_row(vm, &join(self, seen, vm, &waits)?));
            }
        }
        Ok((counted, truths))
    }
}

/// The VM's log, and how many of its records cannot be.
pub fn waits(vm: &VmReport) -> (Vec<GuestWait>, u64) {
    let count = vm.vcpus.len() as u16;
    let mut refused = 0;
    let mut waits = Vec::new();
    for vcpu in &vm.vcpus {
        for raw in &vcpu.waits {
            // The host's trace is in host time: what KVM added to the TSC for the guest comes off first.
            let mut raw = *raw;
            let host = |tsc: u64| tsc.wrapping_sub(vcpu.tsc_offset as u64);
            raw.begin_tsc = host(raw.begin_tsc);
            raw.end_tsc = host(raw.end_tsc);
            if u32::from(raw.kind) == UNSPIN_WAIT_LOCK {
                raw.released_tsc = host(raw.released_tsc);
            }
            if raw.stall_tsc != 0 {
                raw.stall_tsc = host(raw.stall_tsc);
            }
            match GuestWait::from_abi(vcpu.number as u16, count, &raw) {
                Ok(wait) => waits.push(wait),
                Err(_) => refused += 1,
            }
        }
    }
    (waits, refused)
}

fn table_1_row(run: &Run, vm: &VmReport, refused: u64) -> Table1Row {
    let sum = |of: fn(&unspin_guest_statistics) -> u64| -> u64 {
        vm.vcpus.iter().map(|vcpu| of(&vcpu.statistics)).sum()
    };
    let own = Table1 {
        acquisitions: sum(|s| s.operations),
        stalls: sum(|s| s.stalls),
        stalls_unheld: sum(|s| s.stalls_unheld),
    };
    let group = run.scenario.vms.get(vm.group);
    Table1Row {
        vm: vm.name.clone(),
        lock: group.map(|group| group.lock.name()),
        acquisitions: own.acquisitions,
        stalls: own.stalls,
        stalls_unheld: own.stalls_unheld,
        stalls_unheld_percent: own.unheld_share().map(|share| 100.0 * share),
        log_kept: sum(|s| s.log_kept),
        log_dropped: sum(|s| s.log_dropped),
        log_refused: refused,
    }
}

fn join(run: &Run, seen: &Seen, vm: &VmReport, waits: &[GuestWait]) -> Result<GroundTruth, Error> {
    let clock = &run.report.clock;
    let threads: BTreeMap<u32, &VcpuCounters> = seen
        .counters
        .iter()
        .map(|counters| (counters.thread, counters))
        .collect();
    let observed: Vec<&VcpuCounters> = vm
        .vcpus
        .iter()
        .filter_map(|vcpu| threads.get(&vcpu.thread_id).copied())
        .collect();
    // The observer numbers VMs in the order in which it saw them, which need not be ours.
    let Some(number) = observed.first().map(|counters| counters.vm) else {
        return Ok(ground_truth::join(waits, clock, &SwitchTrace::default()));
    };
    let vcpus = observed.iter().map(|counters| counters.vcpu as u16);
    let trace = SwitchTrace::new(number, vcpus, &seen.events);
    Ok(ground_truth::join(waits, clock, &trace))
}

fn ground_truth_row(vm: &VmReport, ground_truth: &GroundTruth) -> GroundTruthRow {
    let (stalls, flag) = (&ground_truth.lock_stalls, &ground_truth.holder_flag);
    GroundTruthRow {
        vm: vm.name.clone(),
        lock_stalls: stalls.total(),
        holder_off_cpu: stalls.holder_off_cpu,
        holder_running: stalls.holder_running,
        next_waiter_off_cpu: stalls.next_waiter_off_cpu,
        next_waiter_running: stalls.next_waiter_running,
        next_came_later: stalls.next_came_later,
        next_unknown: stalls.next_unknown,
        unobserved: stalls.unobserved,
        deeper_waiters_off_cpu: ground_truth.deeper_waiters_off_cpu,
        stalls_with_deeper_waiter_off_cpu: ground_truth.stalls_with_deeper_waiter_off_cpu,
        shootdown_stalls_receiver_off_cpu: ground_truth.shootdown_stalls_receiver_off_cpu,
        shootdown_stalls_receivers_running: ground_truth.shootdown_stalls_receivers_running,
        flag_set_and_off_cpu: flag.set_and_off_cpu,
        flag_clear_and_running: flag.clear_and_running,
        flag_set_but_running: flag.set_but_running,
        flag_clear_but_off_cpu: flag.clear_but_off_cpu,
        waits_joined: ground_truth.waits,
    }
}

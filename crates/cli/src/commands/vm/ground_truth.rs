// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why vCPUs stalled: what the guest can tell by itself (Table 1 of VEE'13, ruling 10) beside what really happened (the
//! guest's log joined with the host's switches).

use std::collections::BTreeMap;

use unspin_abi::{UNSPIN_WAIT_LOCK, unspin_guest_statistics};
use unspin_events::{
    GuestWait, SwitchTrace, VcpuCounters,
    ground_truth::{self, GroundTruth, Table1},
};
use unspin_experiment::watch::Seen;
use unspin_report::{Cell, Column, Document, Table, Unit};
use unspin_vmm::VmReport;

use crate::{commands::vm::run::Run, terminal::failure::Failure};

const TABLE_1: &[Column] = &[
    Column::new("vm", "VM", Unit::Text),
    Column::new("lock", "lock", Unit::Text),
    Column::new("acquisitions", "acquisitions N", Unit::Count),
    Column::new("stalls", "stalls Nh + Nw", Unit::Count),
    Column::new("stalls_unheld", "unheld Nw", Unit::Count),
    Column::new("stalls_unheld_percent", "Nw / (Nh + Nw) %", Unit::Percent),
    Column::new("log_kept", "waits logged", Unit::Count),
    Column::new("log_dropped", "no room for", Unit::Count),
    Column::new("log_refused", "not believed", Unit::Count),
];

const GROUND_TRUTH: &[Column] = &[
    Column::new("vm", "VM", Unit::Text),
    Column::new("lock_stalls", "lock stalls", Unit::Count),
    Column::new("holder_off_cpu", "LHP", Unit::Count),
    Column::new("holder_running", "running", Unit::Count),
    Column::new("next_waiter_off_cpu", "LWP", Unit::Count),
    Column::new("next_waiter_running", "running", Unit::Count),
    Column::new("next_came_later", "came later", Unit::Count),
    Column::new("next_unknown", "unknown", Unit::Count),
    Column::new("unobserved", "unobserved", Unit::Count),
    Column::new(
        "deeper_waiters_off_cpu",
        "deeper waiters off CPU",
        Unit::Count,
    ),
    Column::json_only("stalls_with_deeper_waiter_off_cpu", Unit::Count),
    Column::new(
        "shootdown_stalls_receiver_off_cpu",
        "shootdowns: receiver off CPU",
        Unit::Count,
    ),
    Column::new(
        "shootdown_stalls_receivers_running",
        "all running",
        Unit::Count,
    ),
    Column::json_only("flag_set_and_off_cpu", Unit::Count),
    Column::json_only("flag_clear_and_running", Unit::Count),
    Column::new(
        "flag_set_but_running",
        "`preempted` set, running",
        Unit::Count,
    ),
    Column::new("flag_clear_but_off_cpu", "clear, off CPU", Unit::Count),
    Column::json_only("waits_joined", Unit::Count),
];

/// Adds Table 1, and the ground truth when the run was watched.
pub fn add(document: &mut Document, run: &Run) -> Result<(), Failure> {
    let mut table = Table::new(
        "table1",
        "VEE'13 Table 1, as the guest counts: waits of more than 2,048 spins, and whether anybody held the lock then",
        TABLE_1,
    );
    let mut truths = Table::new(
        "ground-truth",
        "Ground truth of the stalls in the log: the guest's waits joined with the host's switches",
        GROUND_TRUTH,
    );
    for vm in &run.report.vms {
        let (waits, refused) = waits(vm);
        table.push(table_1_row(run, vm, refused));
        if let Some(seen) = &run.seen {
            truths.push(ground_truth_row(vm, &join(run, seen, vm, &waits)?));
        }
    }
    document.table(table);
    if !truths.is_empty() {
        document.table(truths);
    }
    Ok(())
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

fn table_1_row(run: &Run, vm: &VmReport, refused: u64) -> Vec<Cell> {
    let sum = |of: fn(&unspin_guest_statistics) -> u64| -> u64 {
        vm.vcpus.iter().map(|vcpu| of(&vcpu.statistics)).sum()
    };
    let own = Table1 {
        acquisitions: sum(|s| s.operations),
        stalls: sum(|s| s.stalls),
        stalls_unheld: sum(|s| s.stalls_unheld),
    };
    vec![
        vm.name.as_str().into(),
        run.scenario
            .vms
            .get(vm.group)
            .map(|group| group.lock.name())
            .into(),
        own.acquisitions.into(),
        own.stalls.into(),
        own.stalls_unheld.into(),
        own.unheld_share().map(|share| 100.0 * share).into(),
        sum(|s| s.log_kept).into(),
        sum(|s| s.log_dropped).into(),
        refused.into(),
    ]
}

fn join(
    run: &Run,
    seen: &Seen,
    vm: &VmReport,
    waits: &[GuestWait],
) -> Result<GroundTruth, Failure> {
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

fn ground_truth_row(vm: &VmReport, ground_truth: &GroundTruth) -> Vec<Cell> {
    let (stalls, flag) = (&ground_truth.lock_stalls, &ground_truth.holder_flag);
    vec![
        vm.name.as_str().into(),
        stalls.total().into(),
        stalls.holder_off_cpu.into(),
        stalls.holder_running.into(),
        stalls.next_waiter_off_cpu.into(),
        stalls.next_waiter_running.into(),
        stalls.next_came_later.into(),
        stalls.next_unknown.into(),
        stalls.unobserved.into(),
        ground_truth.deeper_waiters_off_cpu.into(),
        ground_truth.stalls_with_deeper_waiter_off_cpu.into(),
        ground_truth.shootdown_stalls_receiver_off_cpu.into(),
        ground_truth.shootdown_stalls_receivers_running.into(),
        flag.set_and_off_cpu.into(),
        flag.clear_and_running.into(),
        flag.set_but_running.into(),
        flag.clear_but_off_cpu.into(),
        ground_truth.waits.into(),
    ]
}

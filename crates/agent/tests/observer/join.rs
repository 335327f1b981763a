// SPDX-License-Identifier: MIT OR Apache-2.0
//! The guest's ground truth and the host's trace, joined, against what the guest counted by itself.

use unspin_agent::EventMask;
use unspin_events::{
    Event, GuestWait, SwitchTrace, VcpuCounters,
    ground_truth::{self, GroundTruth, Table1},
};
use unspin_scenario::Vm;
use unspin_testbed::check;
use unspin_vmm::{RunReport, VcpuReport, VmReport};

use crate::{
    checks::recorded,
    vms::{loops, vm},
};

fn ground_truth_of(
    vm: &VmReport,
    report: &RunReport,
    counters: &[VcpuCounters],
    events: &[Event],
) -> GroundTruth {
    let mut waits = Vec::new();
    for vcpu in &vm.vcpus {
        assert_eq!(vcpu.statistics.log_dropped, 0, "the log holds every wait");
        for raw in &vcpu.waits {
            let mut raw = *raw;
            for tsc in [&mut raw.begin_tsc, &mut raw.end_tsc, &mut raw.stall_tsc] {
                *tsc = if *tsc == 0 {
                    0
                } else {
                    tsc.wrapping_sub(vcpu.tsc_offset as u64)
                };
            }
            let wait = GuestWait::from_abi(vcpu.number as u16, vm.vcpus.len() as u16, &raw);
            waits.push(wait.expect("our own guest does not lie"));
        }
    }
    let observed = counters.iter().map(|counters| counters.vcpu as u16);
    ground_truth::join(
        &waits,
        &report.clock,
        &SwitchTrace::new(0, observed, events),
    )
}

check!(COUNTED: truth_agrees_with_the_guests_own_table);
/// The causes of stalls add up to what the guest counted.
pub fn truth_agrees_with_the_guests_own_table() {
    // Long holds, and an exit after few spins only, so that many waits pass 2,048 spins.
    let vm = Vm {
        pause_every_spins: 64,
        user_work: loops(1_000),
        hold: loops(20_000),
        ..vm(4)
    };
    let (report, events, counters) = recorded(200, vm, EventMask::SWITCHES);
    let vm = &report.vms[0];
    let ground_truth = ground_truth_of(vm, &report, &counters, &events);
    let sum = |of: fn(&VcpuReport) -> u64| vm.vcpus.iter().map(of).sum();
    let table = Table1 {
        acquisitions: sum(|vcpu| vcpu.statistics.operations),
        stalls: sum(|vcpu| vcpu.statistics.stalls),
        stalls_unheld: sum(|vcpu| vcpu.statistics.stalls_unheld),
    };
    let stalls = &ground_truth.lock_stalls;
    eprintln!("{table:?} {ground_truth:?}");
    assert_eq!(
        table.acquisitions, ground_truth.waits,
        "the log holds every acquisition"
    );
    assert!(table.stalls > 0, "{table:?}");
    assert_eq!(stalls.unobserved, 0, "{ground_truth:?}");
    assert_eq!(
        (stalls.total(), stalls.unheld()),
        (table.stalls, table.stalls_unheld),
        "{ground_truth:?}"
    );
    let flag = &ground_truth.holder_flag;
    assert_eq!(
        flag.set_and_off_cpu + flag.clear_and_running + flag.disagreements(),
        stalls.holder_off_cpu + stalls.holder_running,
        "{ground_truth:?}"
    );
}
